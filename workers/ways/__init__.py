"""Ways step: Lean in a fork of an image, from a snapshot of the header, or cold; one interface."""
