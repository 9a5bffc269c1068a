"""Everything around a farm fails while it works: ``python -m tests.chaos --seed 1 --lines 2000``.

The lines are judged twice, in peace and while every few seconds something is killed, stopped, filled, wiped
or restarted. Then every line must have the verdict it had in peace, and nothing may be left over. The exit
status is 0 when all of that holds.
"""

from __future__ import annotations

import argparse
import signal
import sys
from statistics import median

from tests.chaos.disturbances import DISTURBANCES
from tests.chaos.run import Cost, Plan, Result, run


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left then, either
    options = _options()
    went_wrong = False
    for seed in range(options.seed, options.seed + options.seeds):
        result = run(_plan(options, seed))
        sys.stdout.write(_report(result))
        sys.stdout.flush()
        went_wrong |= bool(result.complaints)
    return 1 if went_wrong else 0


def _plan(options: argparse.Namespace, seed: int) -> Plan:
    return Plan(
        seed=seed,
        lines=options.lines,
        seconds=options.seconds,
        only=tuple(options.only or ()),
        most=options.most,
        pause_seconds=(0.4 * options.pause, options.pause),
        attempts=options.attempts or None,
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Disturb a farm at work.")
    parser.add_argument("--seed", type=int, default=1, help="what all chance comes from (1)")
    parser.add_argument("--seeds", type=int, default=1, help="so many seeds, one after the other (1)")
    parser.add_argument("--lines", type=int, default=2000, help="lines of the manifest (2000)")
    parser.add_argument("--seconds", type=float, default=3600.0, help="disturb for so long at most (3600)")
    parser.add_argument("--most", type=int, help="disturb so many times at most")
    parser.add_argument("--pause", type=float, default=5.0, help="the longest pause between two (5)")
    parser.add_argument(
        "--only", action="append", choices=list(DISTURBANCES), help="this alone; can be given several times"
    )
    parser.add_argument(
        "--attempts", type=int, default=8, help="FARM_ATTEMPTS of the workers, 0 for the default (8)"
    )
    return parser.parse_args()


def _report(result: Result) -> str:
    head = f"seed {result.plan.seed}: {'WRONG' if result.complaints else 'all right'}"
    told = [
        head,
        f"{'disturbance':<20}{'times':>6}{'median s':>10}{'most s':>8}   until the next verdict",
        *map(_row, result.costs),
        f"the longest time between two verdicts was {result.longest_gap:.1f} s; attempts: {result.attempts}",
    ]
    if result.complaints:
        told.append(result.story)
    return "".join(f"{line}\n" for line in told)


def _row(cost: Cost) -> str:
    seconds = (
        (f"{median(cost.seconds):10.1f}{max(cost.seconds):8.1f}") if cost.seconds else f"{'-':>10}{'-':>8}"
    )
    return f"{cost.name:<20}{cost.times:>6}{seconds}"


if __name__ == "__main__":
    sys.exit(main())
