"""Preparation step, whole manifests: cut into pieces, and their blocks in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial

from farm.errors import ManifestError
from farm.judging.submit_options import SubmitOptions
from farm.manifest.entries import empty
from farm.manifest.faults import Faults
from farm.manifest.lines import Lines
from farm.runs.children.pieces import ManifestPiece, pieces
from farm.runs.children.pool import Pool
from farm.runs.prepare.blocks import preparer
from farm.runs.prepare.problems import EnvironmentProblem, problem_of
from farm.store.environments import ServedEnvironment
from farm.store.new_lines import Block

#: Gives the blocks of an open manifest, which has this number, in bounded memory.
Prepare = Callable[[Lines, int], Iterator[Block]]


@contextmanager
def preparing(
    options: SubmitOptions, known: Iterable[ServedEnvironment], *, processes: int | None = None
) -> Iterator[Prepare]:
    """Give a function that prepares manifests of a run; no child outlives the block.

    After the first invalid line it yields no more blocks, and raises `ManifestError` when it has searched for
    others; `FarmError` when a child dies. ``known`` are the valid environments; ``processes`` are those of
    `Pool`. Raises `UsageError` for the
    run's own environment: at once where there is no other, else at the first line that needs it.
    """
    served = {each.name: each for each in known}
    problem = problem_of(options.environment, served, options.assurance)
    if problem is not None and not served:
        raise problem.error()
    begin = partial(preparer, options, served)
    pool = Pool(
        here=begin(),
        begin=begin,
        doing="prepares manifest lines",
        outcome="nothing was submitted: submit again, with more memory free if it was short",
        processes=processes,
    )
    with closing(pool):
        yield partial(_blocks, pool, problem)


def _blocks(
    pool: Pool[Block | None], problem: EnvironmentProblem | None, lines: Lines, number: int
) -> Iterator[Block]:
    faults, unread = Faults(), list[ManifestError]()

    def readable() -> Iterator[ManifestPiece]:
        try:
            for piece in pieces(lines, number):
                if faults.ends_before(piece.first):
                    return
                yield piece
        except ManifestError as error:
            unread.append(error)  # errors in earlier lines are reported first

    block = None
    for answer in pool.answers(readable()):
        if answer is None:
            continue
        block = answer
        _refuse_usual(problem, block)
        faults.add_all(block.faults)
        if not faults:
            yield block
    faults.add_all(unread)
    if faults:
        raise faults.error()
    if block is None:
        raise empty(lines.path)


def _refuse_usual(problem: EnvironmentProblem | None, block: Block) -> None:
    """Raise `UsageError` where a line needs the run's own environment, and that has a problem."""
    if problem is not None and any(each.problem == problem.words for each in block.faults):
        raise problem.error()
