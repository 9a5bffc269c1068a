"""The tests here judge the machine that `python -m tests.vm` starts: outside of it there is none."""

from __future__ import annotations

import os

if "FARM_TEST_VM" not in os.environ:
    collect_ignore = ["test_emulated.py"]
