"""A load: clients keep a farm busy while its parts are killed, and then everything is looked at."""

from __future__ import annotations

import logging
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.checks.figures import quantile
from tests.bench.checks.processes import peak_mib
from tests.chaos import disturbances
from tests.chaos.aftermath import few, left_in_store, left_on_machine
from tests.chaos.field import Ground, ground
from tests.chaos.journal import Journal
from tests.chaos.run import a_place, end_workers, logs
from tests.commands import ENDLESS
from tests.load import aftermath
from tests.load.clients import Asked
from tests.load.crowd import BATCH, Crowd
from tests.load.facts import Catalogue, LoadFacts
from tests.processes import eventually

#: Of what the farm can do, so much is asked of it: what is lost and restarted takes its share.
_OF_CAPACITY = 0.5
_CALIBRATION = 20
#: Between two checks there is no Lean to be killed.
_AGAIN_SECONDS = 0.1
#: What a client left is cancelled a minute later, by a worker that looks once in a while.
_END_SECONDS = 120.0
#: Latency of the last minute over that of the first, with what a busy machine adds.
_MOST_GROWTH, _SLACK_SECONDS = 2.0, 0.25

_GREAT: tuple[Callable[[Ground], str], ...] = (
    disturbances.restart_redis,
    disturbances.kill_worker,
    disturbances.restart_postgres,
    disturbances.kill_worker,
    disturbances.kill_service,
    disturbances.kill_worker,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What is to be done: `rate` batches a minute or what the farm can do, for so many seconds.

    At the beginning and at the end nothing is disturbed for `calm_seconds`; between them this share of the
    checks loses its worker. Latencies are compared where there are enough of them for that. Of the items, a
    share `repeats` earlier ones: with most of them known, many more batches can be asked for.
    """

    seed: int
    seconds: float
    calm_seconds: float
    rate: float = 1000.0
    killed: float = 0.01
    repeats: float = 0.125
    compares: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Latency:
    """Seconds from a batch's submission to its last verdict."""

    batches: int
    p50: float
    p99: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What came out of a load."""

    plan: Plan
    complaints: tuple[str, ...]
    journal: tuple[str, ...]
    logs: str
    rate: float
    capacity: float
    held_back: int
    ways: dict[str, int]
    items: int
    cancelled: int
    killed: int
    outcomes: dict[str, int]
    latencies: tuple[Latency, Latency]
    catalogues: tuple[Catalogue, Catalogue]
    memory_mib: dict[str, float]

    @property
    def story(self) -> str:
        """All that is needed to look into a failure."""
        complaints = "\n".join(f"- {each}" for each in self.complaints)
        journal = "\n".join(self.journal)
        return f"seed {self.plan.seed}\n{complaints}\n\n{journal}\n\n{self.logs}"


def run(plan: Plan, *, quiet: bool = False) -> Result:
    """Carry out a plan on a farm of its own, of which nothing is left."""
    journal = Journal(quiet=quiet)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="farm-load-")))
        folder.chmod(0o755)
        place = a_place(folder, stack, attempts=8)
        stack.enter_context(_home(folder / "user"))
        farm = stack.enter_context(ground(place, journal=journal, chance=random.Random(plan.seed)))
        return _Load(farm, plan).result()


@contextmanager
def _home(folder: Path) -> Iterator[None]:
    """Let the clients of this process find the service by the files of its home."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("FARM_")}
    for name in kept:
        del os.environ[name]
    os.environ["FARM_HOME"] = str(folder)
    try:
        yield
    finally:
        del os.environ["FARM_HOME"]
        os.environ.update(kept)


class _Load:
    """A load under way."""

    def __init__(self, farm: Ground, plan: Plan) -> None:
        self._farm, self._plan, self._journal = farm, plan, farm.journal
        self._facts = LoadFacts(farm.place.database_url)
        self._facts.know_unserved()
        token = farm.farm("keys", "add", "load").stdout.strip()
        logging.getLogger("farm.client").setLevel(logging.ERROR)  # it tells of each disturbance
        self._crowd = Crowd(farm.service_url, token, seed=plan.seed, repeats=plan.repeats)
        self._peaks: dict[str, float] = {}
        self._killed = 0

    def result(self) -> Result:
        """Carry out the plan and return what came of it."""
        capacity = self._crowd.capacity(_CALIBRATION)
        rate = self._crowd.rate = min(self._plan.rate, capacity * _OF_CAPACITY)
        self._journal.say(
            f"{rate:.0f} batches of {BATCH} a minute; the farm judges {capacity:.0f} a minute at most"
        )
        before = self._facts.catalogue()
        begun = time.monotonic()
        self._crowd.start()
        self._disturb(begun, kills_a_second=self._plan.killed * rate * BATCH / 60)
        self._farm.last(begun + self._plan.seconds - time.monotonic())
        self._crowd.stop()
        ended = begun + self._plan.seconds
        self._journal.say("no batch begins any more")
        self._note_memory()
        self._come_to_rest()
        end_workers(self._farm)
        calm = self._plan.calm_seconds
        latencies = self._latency(begun, begun + calm), self._latency(ended - calm, ended)
        catalogues = before, self._facts.catalogue()
        self._look(latencies, catalogues, rate)
        return self._told(capacity, rate, latencies, catalogues)

    def _disturb(self, begun: float, *, kills_a_second: float) -> None:
        """Kill checks all the time, and in between everything else in its turn."""
        first, last = begun + self._plan.calm_seconds, begun + self._plan.seconds - self._plan.calm_seconds
        self._farm.last(first - time.monotonic())
        self._note_memory()
        pause = (last - first) / len(_GREAT)
        great = [(first + (place + 0.3) * pause, each) for place, each in enumerate(_GREAT)]
        kill_due = first
        while (now := time.monotonic()) < last or great:
            if great and now >= great[0][0]:
                self._note_memory()
                self._do(great.pop(0)[1])
            elif now >= kill_due:
                missed = disturbances.kill_lean(self._farm).startswith("none")
                self._killed += not missed
                kill_due = now + (_AGAIN_SECONDS if missed else self._random_pause(kills_a_second))
            else:
                self._farm.last(min([kill_due, last, *(due for due, _ in great)]) - now)

    def _random_pause(self, times_a_second: float) -> float:
        return self._farm.chance.uniform(0.5, 1.5) / times_a_second

    def _do(self, disturbance: Callable[[Ground], str]) -> None:
        begun = time.time()
        what = disturbance(self._farm)
        self._journal.done(disturbance.__name__, begun)
        self._journal.say(f"{disturbance.__name__}: {what}")

    def _note_memory(self) -> None:
        for each in self._farm.keeper.workers:
            peak = max(self._peaks.get(each.name, 0.0), peak_mib(each.pid))
            self._peaks[each.name] = round(peak, 1)

    def _come_to_rest(self) -> None:
        try:
            eventually(lambda: not self._facts.unfinished(), seconds=_END_SECONDS)
        except AssertionError as error:
            self._journal.complain(f"{self._facts.unfinished()} items have no verdict: {error}")

    def _latency(self, since: float, until: float) -> Latency:
        seconds = [
            asked.seconds
            for asked in self._crowd.asked
            if since <= asked.begun < until and asked.seconds is not None and _is_usual(asked)
        ]
        return Latency(
            batches=len(seconds),
            p50=quantile(seconds, 0.5) if seconds else 0.0,
            p99=quantile(seconds, 0.99) if seconds else 0.0,
        )

    def _look(
        self, latencies: tuple[Latency, Latency], catalogues: tuple[Catalogue, Catalogue], rate: float
    ) -> None:
        stored, outcomes = self._facts.stored(), self._facts.outcomes()
        disturbed = self._plan.seconds - 2 * self._plan.calm_seconds
        killed = int(self._plan.killed * rate * BATCH / 60 * disturbed / 2)
        for complaints in (
            iter([f"the clients ended: {self._crowd.trouble!r}"] if self._crowd.trouble else ()),
            aftermath.wrong_answers(self._crowd.asked),
            aftermath.wrong_items(self._crowd.asked, stored),
            (f"check {check} was judged twice" for check in self._facts.judged_twice()),
            aftermath.grown(*catalogues),
            left_in_store(self._facts),
            left_on_machine(self._farm.keeper.workers, self._farm.folder),
            aftermath.too_few_lost(self._killed, outcomes, at_least=killed),
            _slower(*latencies) if self._plan.compares else iter(()),
        ):
            for complaint in few(complaints):
                self._journal.complain(complaint)

    def _told(
        self,
        capacity: float,
        rate: float,
        latencies: tuple[Latency, Latency],
        catalogues: tuple[Catalogue, Catalogue],
    ) -> Result:
        stored = self._facts.stored()
        ways = [asked.way for asked in self._crowd.asked]
        return Result(
            plan=self._plan,
            complaints=tuple(self._journal.complaints),
            journal=tuple(self._journal.lines),
            logs=logs(self._farm) if self._journal.complaints else "",
            rate=rate,
            capacity=capacity,
            held_back=self._crowd.held_back,
            ways={way: ways.count(way) for way in sorted(set(ways))},
            items=len(stored),
            cancelled=sum(each.cancelled is not None for each in stored),
            killed=self._killed,
            outcomes=self._facts.outcomes(),
            latencies=latencies,
            catalogues=catalogues,
            memory_mib=self._peaks,
        )


def _is_usual(asked: Asked) -> bool:
    """Whether a batch's time says something of the farm: somebody waited, and nothing in it never ends."""
    return not asked.given_up and all(each.verdict != ENDLESS for each in asked.items)


def _slower(first: Latency, last: Latency) -> Iterator[str]:
    for name, before, after in (("p50", first.p50, last.p50), ("p99", first.p99, last.p99)):
        if after > before * _MOST_GROWTH + _SLACK_SECONDS:
            yield f"the {name} of a batch grew from {before:.2f} s to {after:.2f} s"
