"""How many tactics a second one image of HOL Light judges: ``python -m tests.bench.hol_light``.

It needs Debian's packages hol-light and libnum-ocaml-dev. Each tactic is judged as a worker does it, in a
fork with limits, and must come out as it should.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from farm_workers.box.isolation import prepared
from farm_workers.systems.hol_light.environment import HolLightEnvironment, environment
from farm_workers.systems.hol_light.judge import HolLightJudge

from farm.assembly.challenge import Challenge
from farm.judging.job import Check
from farm.judging.verdict import Reason, judge

#: Goals and tactics that provers write most, and one that fails.
TACTICS = (
    ("{n} + 1 = 1 + {n}", "ARITH_TAC", Reason.OK),
    ("!x:real. x <= x + &{n}", "REAL_ARITH_TAC", Reason.OK),
    ("!x y. x < y ==> x <= y + {n}", "REPEAT STRIP_TAC THEN POP_ASSUM MP_TAC THEN ARITH_TAC", Reason.OK),
    ("{n} + 1 = {n}", "ARITH_TAC", Reason.ERROR),
)


def main() -> None:
    """Print a line for each number of checks at once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=400, help="how many at each number at once")
    checks = parser.parse_args().checks
    with tempfile.TemporaryDirectory() as folder, prepared(Path(folder)) as isolation:
        hol_light = environment("hol", {}, Path(folder))
        judge_ = HolLightJudge(isolation)
        try:
            began = time.monotonic()
            _require(judge_, hol_light, 0)
            print(f"isolation {isolation.name}; loaded in {time.monotonic() - began:.0f} s")
            for at_once in (1, 2, 4):
                _measure(judge_, hol_light, checks, at_once)
            (_, size), *_ = judge_.images()
            print(f"the image: {size >> 20} MiB")
        finally:
            judge_.close()


def _measure(judge_: HolLightJudge, hol_light: HolLightEnvironment, checks: int, at_once: int) -> None:
    began = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        seconds = sorted(pool.map(lambda number: _require(judge_, hol_light, number), range(checks)))
    rate = checks / (time.monotonic() - began)
    median, late = seconds[len(seconds) // 2], seconds[len(seconds) * 95 // 100]
    print(f"{at_once} at once: {rate:.1f} tactics/s; median {median * 1e3:.0f} ms, p95 {late * 1e3:.0f} ms")


def _require(judge_: HolLightJudge, hol_light: HolLightEnvironment, number: int) -> float:
    """Return the seconds of a check; raises AssertionError where it came out wrong."""
    goal, tactic, expected = TACTICS[number % len(TACTICS)]
    goal = goal.format(n=number)
    program = f"prove(`{goal}`,\n{tactic}\n);;\n"
    began = time.monotonic()
    report = judge_.check(Check.of(program=program, challenge=Challenge(program=goal, name="g")), hol_light)
    verdict = judge(report)
    assert verdict.reason is expected, verdict.detail
    return time.monotonic() - began


if __name__ == "__main__":
    main()
