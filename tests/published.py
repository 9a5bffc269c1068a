"""The statements of public benchmarks as manifests, in the folder that ``FARM_TEST_DATA`` names.

Tests that read them are collected only where the variable is set: see `tests/unit/conftest.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

#: Each file, the word of its benchmark, and the number of its problems by split.
FILES = {
    "minif2f-test.jsonl": ("minif2f", {"test": 244}),
    "minif2f-valid.jsonl": ("minif2f", {"valid": 244}),
    "proofnet-valid.jsonl": ("proofnet", {"valid": 185}),
    "putnam-test.jsonl": ("putnam-bench", {"test": 660}),
}


def file(name: str) -> Path:
    """Return the path of one of the files. Raises FileNotFoundError, which names the variable."""
    path = Path(os.environ["FARM_TEST_DATA"], name)
    if not path.is_file():
        raise FileNotFoundError(f"FARM_TEST_DATA names a folder without {name}: there is no {path}")
    return path
