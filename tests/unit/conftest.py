"""Which files of unit tests are collected: those over public benchmarks only where their folder is named."""

from __future__ import annotations

import os

collect_ignore = (
    [] if os.environ.get("FARM_TEST_DATA") else ["test_published_statements.py", "test_round_trip.py"]
)
