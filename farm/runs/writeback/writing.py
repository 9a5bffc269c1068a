"""Export step, whole manifests: cuts them into pieces, and yields their text with verdicts in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, cast

import psycopg
from sqlalchemy import Engine

from farm.errors import FarmError
from farm.manifest.lines import Lines
from farm.runs.children.pieces import pieces
from farm.runs.children.pool import Pool
from farm.runs.writeback.editing import Written, connecting, write
from farm.runs.writeback.fields import Marking
from farm.store.postgres import driver_arguments, reaching


class Writing:
    """Writes one run's verdicts into its manifests, one after the other; made by `writing`.

    `lines` is how many of the newest manifest's lines have got one.
    """

    def __init__(self, pool: Pool[Written]) -> None:
        self._pool = pool
        self.lines = 0

    def manifest(self, number: int) -> Callable[[Lines], Iterator[bytes]]:
        """Return a function that yields the text of this manifest with its verdicts, in bounded memory.

        It raises `ManifestError`, `ServerDown`, and `FarmError` when a child dies.
        """
        self.lines = 0
        return lambda lines: self._texts(lines, number)

    def _texts(self, lines: Lines, number: int) -> Iterator[bytes]:
        for answer in self._pool.answers(pieces(lines, number)):
            written: Written | None = answer
            while written is not None:
                self.lines += written.lines
                yield written.text
                written = None if written.rest is None else self._pool.here(written.rest)


@contextmanager
def writing(engine: Engine, marking: Marking, *, processes: int | None = None) -> Iterator[Writing]:
    """Write a run's verdicts; all children have ended at the end of the block.

    ``processes`` are those of `Pool`. Raises `ServerDown`.
    """
    with reaching(engine), engine.connect() as connection:
        # Each query is for one piece: no transaction is open between two pieces.
        own = connection.execution_options(isolation_level="AUTOCOMMIT").connection.driver_connection
        pool = Pool(
            here=partial(write, marking, lambda: cast("psycopg.Connection[Any]", own)),
            begin=partial(connecting, marking, driver_arguments(engine)),
            errors=(FarmError, psycopg.Error),
            doing="writes verdicts into manifest lines",
            outcome="the manifest is as it was: export again, with more memory free if it was short",
            processes=processes,
        )
        with closing(pool):
            yield Writing(pool)
