"""The submit step: read manifests, assemble every line, load the run, send its checks, wait for verdicts."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from celery import Celery

from farm.advisories import advisories
from farm.assurance import FAST, GOLD, Assurance
from farm.broker import publish
from farm.challenge import challenge_of
from farm.errors import ManifestError, ServerDown, UsageError
from farm.files.lines import printable
from farm.job import CPU_PER_WALL, Limits, require_possible
from farm.load import NewJob, loading
from farm.manifest import Entry, Reader
from farm.program import AssemblyOptions, assemble
from farm.queries import Queries, ServedEnvironment, Tally
from farm.store import Store
from farm.verdict import judge_text

#: Seconds without a worker's sign of life after which whoever waits for it is told.
UNSERVED_SECONDS = 30.0

# Without letters that are mistaken for digits or for each other; 8 of them are 39 bits.
_ID_LETTERS = "23456789abcdefghjkmnpqrstvwxyz"


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmitOptions:
    """How the lines of a run are assembled and checked, where a line does not say so itself.

    Without `cpu_seconds` the limit of processor time follows each line's wall limit.
    """

    assembly: AssemblyOptions
    environment: str
    wall_seconds: float = 30.0
    cpu_seconds: float | None = None
    memory_mib: int = 4096
    assurance: Assurance = field(default_factory=Assurance)

    def __post_init__(self) -> None:
        """Raise `UsageError` for a limit that is none."""
        require_possible(
            wall_seconds=self.wall_seconds, memory_mib=self.memory_mib, cpu_seconds=self.cpu_seconds
        )

    def limits(self, entry: Entry) -> Limits:
        """Return the limits of one line; its own ``timeout`` wins."""
        wall = entry.timeout if entry.timeout is not None else self.wall_seconds
        cpu = CPU_PER_WALL * wall if self.cpu_seconds is None else self.cpu_seconds
        return Limits(wall_seconds=wall, cpu_seconds=cpu, memory_mib=self.memory_mib)


def submit(
    store: Store,
    paths: Sequence[Path],
    options: SubmitOptions,
    *,
    known: Sequence[ServedEnvironment],
    seen: Callable[[], None] = lambda: None,
) -> str:
    """Load a run of these manifests and return its id; nothing is stored unless every line is right.

    ``known`` are the environments that may be named; ``seen`` is called for each line.
    Raises `ManifestError` with file, line and field, `UsageError` and `ServerDown`.
    """
    unfit = {each.name: _unfit(each, options.assurance) for each in known}
    if (problem := _problem(options.environment, unfit)) is not None:
        raise UsageError(f"{problem[0]}; {problem[1]}")
    run_id = "".join(secrets.choice(_ID_LETTERS) for _ in range(8))
    with loading(store, run_id, asdict(options), assurance=options.assurance) as load:
        for number, path in enumerate(paths):
            reader = Reader(path, reassemble=options.assembly.reassemble)
            for job in _jobs(number, reader, options, unfit):
                load.add(job)
                seen()
            load.close_manifest(path, reader.fingerprint)
    return run_id


def _jobs(
    number: int, entries: Iterable[Entry], options: SubmitOptions, unfit: Mapping[str, _Problem | None]
) -> Iterator[NewJob]:
    for entry in entries:
        environment = entry.environment or options.environment
        if (problem := _problem(environment, unfit)) is not None:
            raise ManifestError(
                entry.path, problem[0], remedy=problem[1], line=entry.line, field="environment"
            )
        challenge = challenge_of(entry)
        if challenge is None and options.assurance.needs_statement:
            raise ManifestError(
                entry.path,
                "this run needs a statement of every line, to compare proofs with",
                remedy="add a formal_statement, or submit with --tier fast and without --require-statement",
                line=entry.line,
                field="formal_statement",
            )
        program = assemble(entry, options.assembly)
        yield NewJob(
            manifest=number,
            line=entry.line,
            name=entry.name,
            group=entry.group,
            environment=environment,
            limits=options.limits(entry),
            program=program,
            challenge=challenge,
            verdict=judge_text(program.text),
        )


_Problem = tuple[str, str]  # what is wrong, and the remedy


def _problem(name: str, unfit: Mapping[str, _Problem | None]) -> _Problem | None:
    """Return what speaks against checking in an environment of this name, None when nothing does."""
    if name not in unfit:
        return f"no environment is called {printable(name)!r}", _known_words(list(unfit))
    return unfit[name]


def _unfit(environment: ServedEnvironment, assurance: Assurance) -> _Problem | None:
    """Return why an environment cannot give the assurance that a run asks for."""
    if assurance.strongest != FAST and not environment.audited:
        return (
            f"what the environment {environment.name!r} compiles cannot be audited",
            "use another environment, or the tier fast alone",
        )
    if assurance.strongest != GOLD:
        return None
    if environment.checker is None:
        return (
            f"the environment {environment.name!r} has no checker that replays proofs through the kernel",
            "name one in its table (checker), or ask for the tier strict",
        )
    known = advisories(environment.toolchain) or ()
    if known and not assurance.accepts_advisories:
        return (
            f"the kernel of Lean {environment.toolchain} has known holes ({', '.join(a.id for a in known)})",
            "use a newer Lean, or submit with --accept-advisories",
        )
    return None


def _known_words(known: Sequence[str]) -> str:
    if not known:
        return "no worker has served any yet: start one with `farm worker`"
    return f"workers serve: {', '.join(sorted(known))}"


class Sending(threading.Thread):
    """Sends a run's checks while its submitter already waits for verdicts; survives servers that go away."""

    def __init__(self, app: Celery, store: Store, run_id: str) -> None:
        super().__init__(name="sending", daemon=True)
        self._app, self._store, self._run_id = app, store, run_id
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Send until everything is sent; what is left when the process ends, any worker sends."""
        while not self._stop_asked.is_set():
            try:
                publish(self._app, self._store, run_id=self._run_id)
            except ServerDown:
                self._stop_asked.wait(1.0)
            else:
                return

    def stop(self) -> None:
        """Give up what is not sent yet to the workers."""
        self._stop_asked.set()


def watch(queries: Queries, run_id: str, *, trouble: Callable[[str | None], None]) -> Iterator[Tally]:
    """Yield a run's tally now and then until every line has its verdict; the last one is complete.

    ``trouble`` is told what holds the run up, or None when nothing does: PostgreSQL does not answer (the
    watch goes on asking), or no worker serves an environment that lines wait for.
    """
    pause = threading.Event()
    seconds = 0.1
    started = time.monotonic()
    while True:
        try:
            tally = queries.tally(run_id)
            # A worker may be just starting, together with the servers: it gets the same time to show itself.
            waited = time.monotonic() - started > UNSERVED_SECONDS
            unserved = queries.unserved(run_id, seconds=UNSERVED_SECONDS) if waited else []
        except ServerDown as error:
            trouble(f"{error}; waiting for it")
            pause.wait(1.0)
            continue
        trouble(_unserved_words(unserved) if unserved else None)
        yield tally
        if not tally.unfinished:
            return
        # Short runs end promptly; long ones do not make the server count them again and again.
        seconds = min(1.0 + tally.total / 100_000, seconds * 1.5)
        pause.wait(seconds)


def _unserved_words(names: Sequence[str]) -> str:
    return f"no worker serves {', '.join(names)} at the moment; start one with: farm worker"
