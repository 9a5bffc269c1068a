"""A rolling upgrade under load: ``python -m tests.rolling``.

The release of tests/deploy/previous.txt is at work on two workers and a service, and clients of it ask all
the time; then the release of this checkout takes over, and an invented next one takes over from that. The
exit status is 0 when no line was lost, none was judged twice, and every verdict is the right one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.rolling import releases
from tests.rolling.run import Plan, Result, roll


def main() -> int:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="farm-releases-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        this = releases.this(folder / "this")
        pairs = [(releases.previous(folder / "previous"), this), (this, releases.following(folder / "next"))]
        results = [
            roll(Plan(old=old, new=new, verdicts=options.verdicts, lines=options.lines)) for old, new in pairs
        ]
    sys.stdout.write("".join(map(_report, results)))
    return 1 if any(result.complaints for result in results) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.rolling", description="Upgrade a farm at work.")
    parser.add_argument("--verdicts", type=int, default=500, help="verdicts between two steps (500)")
    parser.add_argument("--lines", type=int, default=1000, help="lines of each manifest (1000)")
    return parser.parse_args()


def _report(result: Result) -> str:
    old, new = result.plan.old, result.plan.new
    told = [
        f"{old.version} -> {new.version}: {'WRONG' if result.complaints else 'all right'}",
        f"{result.items} items over HTTP, {result.lines} lines of manifests; verdicts by {result.made_by}",
        f"attempts: {result.outcomes}",
        f"farm db upgrade took {result.migration_seconds:.1f} s, with the start of the command; the longest "
        f"time between two verdicts was {result.longest_pause:.1f} s",
        *result.complaints,
        *(f"  {each}" for each in result.journal),
    ]
    return "".join(f"{line}\n" for line in told)


if __name__ == "__main__":
    sys.exit(main())
