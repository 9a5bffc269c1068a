"""Export step, whole manifests: cuts them into pieces, and yields their text with verdicts in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial

from farm.errors import FarmError
from farm.manifest.lines import Lines
from farm.runs.children.pieces import pieces
from farm.runs.children.pool import Pool
from farm.runs.writeback.editing import Written, connecting, write
from farm.runs.writeback.fields import Marking
from farm.store.postgres import Engine, autocommitting, driver_arguments
from farm.store.records import ReadError, line_reader


class Writing:
    """Writes one run's verdicts into its manifests, one after the other; made by `writing`.

    `lines` is how many of the newest manifest's lines have got one.
    """

    def __init__(self, pool: Pool[Written]) -> None:
        self._pool = pool
        self.lines = 0

    def manifest(self, number: int) -> Callable[[Lines], Iterator[bytes]]:
        """Return a function that yields this manifest's text with its verdicts, in bounded memory.

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
    """Write a run's verdicts; no child outlives the block.

    ``processes`` are those of `Pool`. Raises `ServerDown`.
    """
    # Autocommit: no transaction stays open between the reads of two pieces.
    with autocommitting(engine) as connection:
        pool = Pool(
            here=partial(write, marking, line_reader(lambda: connection)),
            begin=partial(connecting, marking, driver_arguments(engine)),
            errors=(FarmError, ReadError),
            doing="writes verdicts into manifest lines",
            outcome="the manifest is as it was: export again, with more memory free if it was short",
            processes=processes,
        )
        with closing(pool):
            yield Writing(pool)
