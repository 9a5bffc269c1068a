"""The glance step: the unfinished runs of the whole farm, and the result of the newest run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from farm.errors import UnknownRun
from farm.store.overview import Overview, Queue, Unfinished
from farm.store.queries import Queries, StoredRun, Tally
from farm.store.workers import Worker, Workers

#: A run and how far it is.
Progress = tuple[StoredRun, Tally]


@dataclass(frozen=True, kw_only=True, slots=True)
class Glance:
    """The state of the whole farm; runs are those of manifests, the newest first, batches are only counted.

    `newest` is the newest of all runs, finished or not; None while there are only batches.
    """

    unfinished: Sequence[Progress]
    newest: Progress | None
    newest_finished: Progress | None
    left: Unfinished
    queues: Sequence[Queue]
    workers: Sequence[Worker]

    @classmethod
    def of(cls, queries: Queries) -> Glance:
        """Look at the farm; raises `UnknownRun` where nothing was ever submitted, and `ServerDown`."""
        overview = Overview(queries.engine)
        left, queues = overview.unfinished(), overview.queues()
        newest = queries.runs(most=len(left.runs) + 1)
        if not (newest or left.batches or queues):
            raise UnknownRun("there is no run yet; create one with: farm submit MANIFEST")
        unfinished = [(run, queries.tally(run.id)) for run in queries.runs_named([*left.runs])]
        finished = [run for run in newest if run.id not in left.runs][:1]
        ended = [(run, queries.tally(run.id)) for run in finished]
        found = [*unfinished, *ended]
        return cls(
            unfinished=unfinished,
            newest=next((each for each in found if newest and each[0].id == newest[0].id), None),
            newest_finished=ended[0] if ended else None,
            left=left,
            queues=queues,
            workers=Workers(queries.engine).all(),
        )
