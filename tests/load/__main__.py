"""Clients keep a farm busy over HTTP while its parts fail: ``python -m tests.load --minutes 10``.

They submit small batches in every way there is, while checks lose their worker and Redis, PostgreSQL and the
service are restarted. The exit status is 0 when every item has its one verdict, the right one, and neither
the catalogue nor the latency has grown.
"""

from __future__ import annotations

import argparse
import signal
import sys

from tests.load.run import Latency, Plan, Result, run


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left then, either
    options = _options()
    seconds = 60 * options.minutes
    result = run(
        Plan(
            seed=options.seed,
            seconds=seconds,
            calm_seconds=min(60.0, seconds / 5),
            rate=options.rate,
            killed=options.killed,
            repeats=options.repeats,
        )
    )
    sys.stdout.write(_report(result))
    return 1 if result.complaints else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.load", description="Keep a farm busy over HTTP.")
    parser.add_argument("--minutes", type=float, default=10.0, help="for so long (10)")
    parser.add_argument("--rate", type=float, default=1000.0, help="batches of 8 a minute, at most (1000)")
    parser.add_argument(
        "--killed", type=float, default=0.01, help="share of the checks that lose their worker (0.01)"
    )
    parser.add_argument(
        "--repeats", type=float, default=0.125, help="share of the items that were asked before (0.125)"
    )
    parser.add_argument("--seed", type=int, default=1, help="what all chance comes from (1)")
    return parser.parse_args()


def _report(result: Result) -> str:
    before, after = result.catalogues
    scaled = "" if result.rate == result.plan.rate else f" instead of {result.plan.rate:.0f}"
    told = [
        f"seed {result.plan.seed}: {'WRONG' if result.complaints else 'all right'}",
        f"{result.rate:.0f} batches of 8 a minute{scaled}; the farm judges {result.capacity:.0f} at most",
        f"{result.items} items, {result.cancelled} of them cancelled; held back {result.held_back} batches",
        f"batches by the way they were asked for: {result.ways}",
        f"killed Leans: {result.killed}; attempts: {result.outcomes}",
        *(
            _row(name, latency)
            for name, latency in zip(("at first", "at last"), result.latencies, strict=True)
        ),
        f"catalogue: {before}",
        f"        -> {after}",
        f"most memory: {', '.join(f'{name} {mib:.0f} MiB' for name, mib in result.memory_mib.items())}",
    ]
    if result.complaints:
        told.append(result.story)
    return "".join(f"{line}\n" for line in told)


def _row(name: str, latency: Latency) -> str:
    return f"{name}: p50 {latency.p50:.3f} s, p99 {latency.p99:.3f} s of {latency.batches} batches"


if __name__ == "__main__":
    sys.exit(main())
