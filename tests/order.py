"""The files of tests that take longest, which a run begins with: ``python -m tests.order`` notes them.

Several processes share the files of a run. One that begins a long file last works on alone while the others
have nothing left to do.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from tests.budget import FILE

_ORDER = Path(__file__).with_name("order.txt")
#: Files that take fewer seconds fill the gaps at the end.
_LEAST = 3.0


def longest() -> dict[str, float]:
    """Return the seconds of the files that take longest, as they were written down."""
    rows = (line.split() for line in _ORDER.read_text().splitlines() if not line.startswith("#"))
    return {file: float(seconds) for seconds, file in rows}


def main() -> int:
    """Write down the seconds of each file of the run that `tests.budget` recorded last."""
    taken: Counter[str] = Counter()
    for test, seconds in json.loads(FILE.read_text())["seconds"].items():
        taken[test.partition("::")[0]] += seconds
    known = {file: seconds for file, seconds in {**longest(), **taken}.items() if Path(file).exists()}
    rows = [f"{seconds:6.0f} {file}" for file, seconds in Counter(known).most_common() if seconds >= _LEAST]
    _ORDER.write_text(
        "# Seconds of files, of which a run begins with the longest: python -m tests.order\n"
        + "\n".join(rows)
        + "\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
