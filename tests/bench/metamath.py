"""Figures of Metamath on this machine: proofs of set.mm judged and confirmed in a second.

    python -m tests.bench.metamath [--all]

With `--all` the farm's verifier verifies every proof of the database as well.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from farm_workers.box.isolation import prepared
from farm_workers.systems.metamath.database import Database, Theorem
from farm_workers.systems.metamath.proof import Proving, Size

from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.verdict import judge
from tests.metamath import DATABASES, Judging, check, judging

_PROOFS, _AT_ONCE = 600, 2

_T = TypeVar("_T")


def main() -> None:
    """Measure, and print a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="verify every proof of the database, too")
    given = parser.parse_args()
    theorems: list[Theorem] = []
    text = (DATABASES / "set.mm").read_text(encoding="ascii")
    database, seconds = _timed(lambda: Database(text, theorems.append if not given.all else None))
    print(f"reading set.mm: {seconds:.1f} s")
    if given.all:
        _verify_all(text)
        return
    chosen = random.Random(1).sample(theorems, _PROOFS)
    checks = [_restated(database, theorem, number) for number, theorem in enumerate(chosen)]
    wrong = [check("wrong1 $p |- ( 2 + 2 ) = 5 $= ? $.", "( 2p2e4 ) A") for _ in checks]
    with (
        tempfile.TemporaryDirectory() as home,
        prepared(Path(home) / "work") as isolation,
        judging(isolation, Path(home), "set.mm") as here,
    ):
        _, seconds = _timed(lambda: here.judge.require_sound(here.environment))
        print(f"until it serves: {seconds:.1f} s, {isolation.name}")
        print(f"memory of its image: {here.judge.images()[0][1] >> 20} MiB")
        _figure("wrong proofs judged", here, wrong)
        _figure("proofs of set.mm judged and confirmed", here, checks)


def _timed(work: Callable[[], _T]) -> tuple[_T, float]:
    began = time.monotonic()
    return work(), time.monotonic() - began


def _restated(database: Database, theorem: Theorem, number: int) -> Check:
    """Return the check of a theorem of the database under a label of its own."""
    words, hypotheses = database.words, [h for h in theorem.frame.hypotheses if not h.variable]
    names = {h.label: f"again{number}.{place}" for place, h in enumerate(hypotheses)}
    apart = [f"$d {words(one)} {words(other)} $." for one, other in sorted(theorem.disjoint)]
    given = [f"{names[h.label]} $e {words(h.expression)} $." for h in hypotheses]
    tokens = [names.get(token, token) for token in theorem.proof.split()]
    stated = f"again{number} $p {words(theorem.frame.statement)} $= ? $."
    return check(" ".join(["${", *apart, *given, stated, "$}"]), " ".join(tokens))


def _figure(name: str, here: Judging, checks: Sequence[Check]) -> None:
    began = time.monotonic()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        begun = list(pool.map(here.begin, checks))
        judged = time.monotonic() - began
        reports: list[Report] = [each.result() if isinstance(each, Future) else each for each in begun]
    seconds = time.monotonic() - began
    outcomes = sorted({str(judge(report).outcome) for report in reports})
    print(
        f"{name}: {len(checks) / judged:.0f} a second; all done, {len(checks) / seconds:.0f} a second "
        f"({', '.join(outcomes)})"
    )


def _verify_all(text: str) -> None:
    """Verify each proof as it is read."""
    counts = [0]

    class Verifying(Database):
        def __init__(self, source: str) -> None:
            super().__init__(source, self._verify)

        def _verify(self, theorem: Theorem) -> None:
            Proving(theorem, self.frames, self.variables, Size()).verify()
            counts[0] += 1

    _, seconds = _timed(lambda: Verifying(text))
    print(f"all {counts[0]} proofs of set.mm accepted: {seconds:.1f} s")


if __name__ == "__main__":
    main()
