"""The ways to run Lean: forks of images, prepared processes, and cold; one interface."""
