"""Benchmarks, the second look: a run with ``--confirm strict`` beside the same run without.

Of ten answers to a statement two are proved. Both runs go through the whole farm, in turns, and each turn has
statements that the farm has not seen before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from farm import broker
from farm.assurance import STRICT, Assurance
from farm.settings import usable_cpus
from farm.submit import submit
from tests.bench.cold import judging_seconds, worker
from workers.bench.around.site import FarmAtWork, farm_at_work, options
from workers.bench.figures import Figure
from workers.environments import EMBEDDED

#: How often the two take turns, and the statements of each turn.
TURNS, STATEMENTS = 6, 40
_STATEMENT = "theorem swap_{n} (p q : Prop) (h : p ∧ q) : q ∧ p ∧ {n} = {n} := by"
_RIGHT = "  constructor\n  · exact h.right\n  · exact ⟨h.left, rfl⟩\n  -- {i}\n"
_WRONG = "  constructor\n  · exact h.left\n  · exact ⟨h.left, rfl⟩\n  -- {i}\n"
#: Which of ten answers are right.
_ANSWERS = (_WRONG, _WRONG, _RIGHT, _WRONG, _WRONG, _WRONG, _WRONG, _RIGHT, _WRONG, _WRONG)


def confirmed_checks() -> Iterator[Figure]:
    """Check the same kind of answers with and without a second look, in turns."""
    once, twice = Assurance(), Assurance(confirm=STRICT)
    with farm_at_work() as farm, worker(farm, usable_cpus(), way="resident"):
        rates: dict[str | None, list[float]] = {None: [], STRICT: []}
        for turn in range(TURNS + 1):
            pair = (once, twice) if turn % 2 else (twice, once)
            for place, assurance in enumerate(pair):
                manifest = _manifest(farm.home.parent / f"{turn}-{place}.jsonl", 2 * turn + place)
                rate = _rate(farm, manifest, assurance)
                if turn:  # the first one has servers and headers to start
                    rates[assurance.confirm].append(rate)
    fast, confirmed = rates[None], rates[STRICT]
    ratios = tuple(c / f for c, f in zip(confirmed, fast, strict=True))
    yield Figure(key="fast", name="tier fast, 20 % proved", unit="checks/s", samples=tuple(fast))
    yield Figure(
        key="confirmed", name="the same with --confirm strict", unit="checks/s", samples=tuple(confirmed)
    )
    yield Figure(
        key="confirmed_over_fast",
        name="confirmed / fast",
        unit="",
        samples=(median(ratios),),
        at_least=0.5,
    )


def _manifest(path: Path, turn: int) -> Path:
    lines = []
    for statement in range(STATEMENTS):
        number = turn * STATEMENTS + statement
        for i, answer in enumerate(_ANSWERS):
            lines.append(
                {
                    "name": f"swap_{number}",
                    "header": "prelude\nimport Core\n",
                    "formal_statement": f"{_STATEMENT.format(n=number)}\n  sorry",
                    "generation": f"```lean\n{_STATEMENT.format(n=number)}\n{answer.format(i=i)}```",
                }
            )
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def _rate(farm: FarmAtWork, manifest: Path, assurance: Assurance) -> float:
    """Return the checks per second from the first call to the last verdict."""
    known = farm.queries.served()
    run = submit(farm.store, [manifest], options(EMBEDDED, assurance), known=known).run_id
    begun = farm.now()
    broker.call(farm.app, [EMBEDDED])
    while (tally := farm.queries.tally(run)).unfinished:
        time.sleep(0.1)
    assert tally.verdicts.get(("proved", "ok")) == 2 * STATEMENTS, tally.verdicts
    assert tally.confirmed == (2 * STATEMENTS if assurance.confirm else 0)
    return tally.total / judging_seconds(farm, run, begun)
