"""Lean, where lines are made: its record; `farm.assembly` assembles its lines."""
