"""The summary step: the figures of a run at its end, or before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from farm.store.queries import Queries, Solved, StoredRun, Tally


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """The progress of a run, and the worth of its verdicts.

    `forgeable` counts verdicts that a proof could forge, `contested` those whose contrary another key proved,
    `brought` lines whose program is the user's own
    `predicted_proof`, and `holed`, by toolchain, lines that a kernel with known holes proved.
    """

    tally: Tally
    solved: Solved
    forgeable: int
    contested: int
    brought: int
    holed: Mapping[str, int]

    @classmethod
    def of(cls, queries: Queries, run: StoredRun) -> Summary:
        """Return the summary of a run as it is now; raises `ServerDown`."""
        return cls(
            tally=queries.tally(run.id),
            solved=queries.solved(run.id),
            forgeable=queries.forgeable(run.id),
            contested=queries.contested(run.id),
            brought=queries.brought(run.id),
            holed=queries.holed(run.id),
        )
