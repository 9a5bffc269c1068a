"""Run the long instruments, and print a table of them: ``python -m tests.nightly``.

Names run those instruments alone. The exit status is 0 when every instrument passed, 1 when one failed.
"""

from __future__ import annotations

import argparse
import sys

from tests.nightly.instruments import INSTRUMENTS, run, table


def main() -> int:
    """Run the instruments that the command line names, all without a name."""
    by_name = {each.name: each for each in INSTRUMENTS}
    parser = argparse.ArgumentParser(prog="python -m tests.nightly", description="Run the long instruments.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(by_name)} (all)")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in by_name]:
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(by_name)}")
    wanted = [by_name[name] for name in options.names] or list(INSTRUMENTS)
    ran = run(wanted)
    sys.stdout.write(table(ran))
    return 1 if any(each.status for each in ran) else 0


if __name__ == "__main__":
    sys.exit(main())
