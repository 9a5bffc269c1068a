"""Environments: finds the proof systems and libraries of this machine, and identifies each by a digest."""
