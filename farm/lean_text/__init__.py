"""Lean text: finds the code in a text without running Lean. Pure."""
