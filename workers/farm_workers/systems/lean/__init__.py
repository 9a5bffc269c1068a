"""Lean, where lines are checked: its record and judge; `farm_workers.checking` takes a check through Lean."""
