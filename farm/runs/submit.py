"""The submit step: manifests become a run in the store, or are found there; then verdicts are awaited."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from farm import tracing
from farm.completions import Completions
from farm.errors import ServerDown
from farm.judging.submit_options import SubmitOptions
from farm.manifest.lines import opened
from farm.pauses import pause_after
from farm.runs.ids import RUN_LETTERS, new_id
from farm.runs.prepare.manifests import Prepare, preparing
from farm.store.environments import UNSERVED_SECONDS, Pending, ServedEnvironment
from farm.store.loading import Load, loading
from farm.store.queries import Queries, Tally
from farm.store.submitting import one_by_one, run_of
from farm.store.transitions import Store

# The pauses of a watch grow from the first to the longest.
_FIRST_SECONDS, _LONGEST_SECONDS = 0.1, 1.0
# But each is this many times as long as counting took.
_COUNTING = 20.0
# Of a run with more unfinished lines a watch does not ask by which checks it will end.
_MOST_AWAITED = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted:
    """A run that was submitted, or `resumed`: the same manifests had been, with the same options.

    If it was not resumed, it has so many `lines`, of which so many are `shared` with equal ones.
    """

    run_id: str
    resumed: bool
    lines: int = 0
    shared: int = 0


def submit(
    store: Store,
    paths: Sequence[Path],
    options: SubmitOptions,
    *,
    known: Sequence[ServedEnvironment],
    new_run: bool = False,
    queue_limit: int | None = None,
    seen: Callable[[int], None] = lambda _lines: None,
) -> Submitted:
    """Load a run of these manifests, or find an equal one; nothing is stored unless every line is valid.

    A run is equal if its files and options are the same, and the files are as they were submitted or as the
    farm wrote them since; with `new_run` none is searched. ``known`` are the valid environments; ``seen`` is
    called with the number of lines read since its last call. At most `queue_limit` checks may wait.
    Raises `ManifestError` with file, line and field, `UsageError`, `QueueFull` and `ServerDown`.
    """
    with (
        tracing.root("farm.submit", options.span_attributes) as span,
        store.transaction() as connection,
        one_by_one(connection, b"\n".join(map(os.fsencode, paths))),
        preparing(options, known) as prepare,
    ):
        if not new_run and (found := run_of(connection, paths, options)) is not None:
            span.set_attributes(run_id=found, resumed=True)
            return Submitted(run_id=found, resumed=True)
        run_id = new_id(RUN_LETTERS)
        with loading(
            connection, run_id, options, queue_limit=queue_limit, traceparent=span.traceparent
        ) as load:
            _add(load, paths, prepare, seen)
        span.set_attributes(run_id=run_id, lines=load.lines)
    return Submitted(run_id=run_id, resumed=False, lines=load.lines, shared=load.shared)


def _add(load: Load, paths: Sequence[Path], prepare: Prepare, seen: Callable[[int], None]) -> None:
    for number, path in enumerate(paths):
        load.open_manifest(path)
        with opened(path) as lines:
            for block in prepare(lines, number):
                load.add(block)
                seen(block.lines)
            load.close_manifest(lines.fingerprint())


def watch(
    queries: Queries, run_id: str, *, completions: Completions, trouble: Callable[[str], None]
) -> Iterator[Tally]:
    """Yield a run's tally at intervals until every line has its verdict; the last one is complete.

    ``completions`` ends a pause when the last lines may have ended; without Redis a pause takes its full
    time. ``trouble`` is called with a message when the run is held up: PostgreSQL does not answer (the watch
    retries), or no worker serves an environment, or gives a tier, that lines wait for.
    """
    seconds, told = _FIRST_SECONDS, ""
    started = time.monotonic()
    with completions.following() as following:
        while True:
            count, words = None, ""
            try:
                # A worker may be just starting with the servers: it gets the same time to show itself.
                if time.monotonic() - started > UNSERVED_SECONDS:
                    words = unserved_words(queries, run_id, seconds=UNSERVED_SECONDS)
                following.forget()
                count = _counted(queries, run_id)
            except ServerDown as error:
                words = f"{error}; waiting for it"
            if words not in ("", told):
                trouble(words)
            told = words
            if count is None:
                following.wait(None, _LONGEST_SECONDS)
                continue
            # Short runs end promptly; long ones do not make the server count them again and again.
            pause = pause_after(count.seconds, times=_COUNTING)
            seconds = max(min(_LONGEST_SECONDS, seconds * 1.5), pause)
            yield count.tally
            if not count.tally.unfinished:
                return
            following.wait(count.awaited, seconds)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Count:
    """A run's tally, how long it took, and the checks that are awaited; None: too many to be worth it."""

    tally: Tally
    seconds: float
    awaited: frozenset[int] | None


def _counted(queries: Queries, run_id: str) -> _Count:
    begun = time.monotonic()
    tally, awaited = queries.tally(run_id), None
    is_short = _COUNTING * (time.monotonic() - begun) <= _LONGEST_SECONDS
    if is_short and 0 < tally.unfinished <= _MOST_AWAITED:
        awaited = queries.awaited(run_id)
    return _Count(tally=tally, seconds=time.monotonic() - begun, awaited=awaited)


def unserved_words(queries: Queries, run_id: str, *, seconds: float) -> str:
    """Return a message that names the missing worker of a run's lines, with a remedy; "" for none.

    A worker without a heartbeat for ``seconds`` serves nothing. Raises `ServerDown`.
    """
    words = [
        f"{each.lines} {'line asks' if each.lines == 1 else 'lines ask'} for the tier {each.tier}, but the "
        f"workers of {each.environment} give only {' and '.join(each.had)}; start one that gives it, or "
        f"cancel the run (farm cancel {run_id}) and submit with --tier {each.had[0]}"
        for each in queries.untiered(run_id)
    ]
    words += [
        f"{each.lines} {'line was' if each.lines == 1 else 'lines were'} assembled for {each.was}, but "
        f"workers have {each.environment} as {each.now} now; start one that has it as {each.was}, or cancel "
        f"the run (farm cancel {run_id}) and submit the lines again"
        for each in queries.misfits(run_id)
    ]
    if names := queries.unserved(run_id, seconds=seconds):
        words.append(_no_worker(names, queries.pending()))
    return "; ".join(words)


def _no_worker(names: Sequence[str], pending: Sequence[Pending]) -> str:
    """Return a message: why no worker serves these environments, with a remedy where none is starting."""
    states = [f"{each.name} is {each.words}" for each in pending if each.name in names]
    if unknown := sorted(set(names) - {each.name for each in pending}):
        words = f"no worker serves {', '.join(unknown)} at the moment; start one with: farm worker"
        states.append(words)
    return "; ".join(states)
