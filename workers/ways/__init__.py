"""The ways to run Lean: cold, from a snapshot of the header, and resident; one interface."""
