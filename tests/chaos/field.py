"""The farm that is disturbed: servers, two workers, a manifest, and who waits for its verdicts."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from tests.chaos import facts
from tests.chaos.disks import Disk
from tests.chaos.facts import Facts
from tests.chaos.journal import Journal
from tests.chaos.lines import write
from tests.chaos.servers import Servers
from tests.chaos.workers import Keeper, Worker, kept
from tests.commands import Command
from tests.processes import eventually

_START_SECONDS = 120.0


class Waiting:
    """A `farm` command that somebody has started and waits for."""

    def __init__(self, farm: Command, log: Path, words: list[str]) -> None:
        self.words = words
        self._log = log
        with log.open("ab") as output:
            output.write(f"$ farm {' '.join(words)}\n".encode())
            output.flush()
            self._begins = output.tell()
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "farm", *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=farm.environment,
                start_new_session=True,
            )

    @property
    def status(self) -> int | None:
        return self.process.poll()

    @property
    def said(self) -> str:
        """What it has said so far, without what others said before it to the same log."""
        return self._log.read_bytes()[self._begins :].decode(errors="replace")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def ended(self, seconds: float = 120.0) -> int | None:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a farm's data is: servers, a database and a Redis database of them, the disks of its workers."""

    folder: Path
    servers: Servers
    disks: tuple[Disk, ...]
    database_url: str
    redis_number: int
    #: How often a check may be lost, None for the farm's default.
    attempts: int | None

    def command(self, home: Path, **more: str) -> Command:
        broker_url = self.servers.broker_url(self.redis_number)
        known = facts.settings(
            database_url=self.database_url, broker_url=broker_url, home=home, attempts=self.attempts
        )
        return Command({**known, **more})


@dataclass
class Field:
    """The farm at work on one manifest; what the disturbances disturb."""

    place: Place
    keeper: Keeper
    journal: Journal
    manifest: Path
    lines: list[dict[str, object]]
    chance: random.Random
    submitter: Waiting
    #: Set when there is no time left for disturbances that take theirs.
    over: Event

    @property
    def facts(self) -> Facts:
        return Facts(self.place.database_url)

    @property
    def servers(self) -> Servers:
        return self.place.servers

    @property
    def workers(self) -> list[Worker]:
        return self.keeper.workers

    @property
    def folder(self) -> Path:
        return self.place.folder

    @property
    def farm(self) -> Command:
        """The `farm` command as a user has it."""
        return self.place.command(self.folder / "user")

    @property
    def run(self) -> str:
        """The run of the manifest, the first where there are more."""
        return self.facts.runs(self.manifest)[0]

    def start(self, name: str, words: list[str]) -> Waiting:
        """Start a `farm` command; what it says goes to a log of this name."""
        return Waiting(self.farm, self.folder / f"{name}.log", words)

    def come_back(self) -> None:
        """Have the submitter go on waiting for the run, with the very same command."""
        self.submitter = self.start("submit", self.submitter.words)

    def some_worker(self) -> Worker:
        """Return a worker that takes checks, chosen by chance, after waiting for one."""
        eventually(lambda: any(worker.serving for worker in self.workers), seconds=_START_SECONDS)
        return self.chance.choice([worker for worker in self.workers if worker.serving])

    def last(self, seconds: float) -> None:
        """Let something last for so long."""
        self.over.wait(seconds)

    def unfinished(self) -> int:
        return self.facts.progress(self.run)[0]


@contextmanager
def at_work(
    place: Place,
    manifest: Path,
    lines: list[dict[str, object]],
    words: list[str],
    *,
    journal: Journal,
    chance: random.Random,
) -> Iterator[Field]:
    """Start a farm's workers, submit a manifest of these lines, and yield once its run is stored."""
    write(manifest, lines)
    with ExitStack() as stack:
        keeper = stack.enter_context(kept(_workers(place, journal)))
        eventually(lambda: all(worker.serving for worker in keeper.workers), seconds=_START_SECONDS)
        waiting = Waiting(place.command(place.folder / "user"), place.folder / "submit.log", words)
        field = Field(place, keeper, journal, manifest, lines, chance, waiting, Event())
        stack.callback(lambda: field.submitter.kill())
        eventually(lambda: field.facts.runs(manifest) or waiting.status is not None, seconds=_START_SECONDS)
        assert field.facts.runs(manifest), waiting.said
        yield field


def _workers(place: Place, journal: Journal) -> list[Worker]:
    """Make one worker for each disk; the first has one check at once, the second two."""
    return [
        Worker(
            name=f"worker {number}",
            farm=place.command(disk.folder, FARM_CONCURRENCY=str(number), TMPDIR=str(disk.folder)),
            disk=disk,
            log=place.folder / f"worker{number}.log",
            journal=journal,
        )
        for number, disk in enumerate(place.disks, 1)
    ]
