"""A rolling upgrade under load: the new release takes over from the old one, and everything is looked at.

docs/operate/upgrades.md gives the order: the database first, then the service, then the workers, one by one.
"""

from __future__ import annotations

import json
import re
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

from farm.embedded import Servers, down, ensure
from tests.commands import ADMITTED, PROVED, WRONG, Running, entry, write
from tests.load.facts import LoadFacts
from tests.processes import PATIENCE, eventually
from tests.rolling.releases import Release

_ASKING = Path(__file__).with_name("asking.py")
_LEASE_SECONDS = 3
#: How long anything may take to begin, and to end, on a common machine.
_BEGIN_SECONDS, _END_SECONDS = 90.0, 120.0
_KINDS = (PROVED, WRONG, ADMITTED)
#: What a release that does not work says.
_TROUBLE = re.compile(r"Traceback|internal error|UndefinedColumn|UndefinedTable|NotNullViolation")

_MADE_BY = """
    SELECT checker_version, count(*) FROM verdicts WHERE attempt > 0 GROUP BY 1
"""
_LINES = """
    SELECT line, verdicts.verdict, verdicts.reason FROM jobs LEFT JOIN verdicts USING (check_id)
    WHERE run_id = %(run)s ORDER BY line
"""
_ATTEMPTS = "SELECT worker, outcome, count(*) FROM attempts GROUP BY 1, 2"
_REPEATED = "SELECT count(*) FROM checks WHERE attempt > 1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Which release takes over from which, how many verdicts a step takes, how many lines a manifest has."""

    old: Release
    new: Release
    verdicts: int = 40
    lines: int = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What came of a rolling upgrade."""

    plan: Plan
    complaints: tuple[str, ...]
    journal: tuple[str, ...]
    items: int
    lines: int
    made_by: dict[str, int]
    outcomes: dict[str, int]
    migration_seconds: float
    longest_pause: float

    @property
    def story(self) -> str:
        """All that is needed to look into a failure."""
        return "\n".join([*self.complaints, *self.journal])


def roll(plan: Plan) -> Result:
    """Carry out a rolling upgrade on a farm of its own, of which nothing is left."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="farm-rolling-")))
        folder.chmod(0o755)
        stack.callback(down, folder / "servers")
        servers = ensure(folder / "servers", idle_minutes=30, worker=False)
        return _Rolling(plan, folder, servers, stack).result()


@dataclass(kw_only=True)
class _Worker:
    """A worker under way."""

    release: Release
    running: Running

    @property
    def is_alive(self) -> bool:
        return self.running.process.poll() is None

    @property
    def name(self) -> str:
        """How attempts name it: by its process."""
        return f":{self.running.process.pid}"


@dataclass
class _Rolling:
    plan: Plan
    folder: Path
    servers: Servers
    stack: ExitStack
    complaints: list[str] = field(default_factory=list)
    journal: list[str] = field(default_factory=list)
    workers: list[_Worker] = field(default_factory=list)
    asking: dict[str, Running] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    killed: str = ""
    migration_seconds: float = 0.0

    def result(self) -> Result:
        """Do one step after the other, all under load."""
        self._command(self.plan.old, "db", "upgrade")
        old = [self._worker(self.plan.old) for _ in range(2)]
        first = self._service(self.plan.old, "old")
        self._ask(self.plan.old, "old")
        run = self._submit(self.plan.old, "begun")
        waiting = self._begin(self.plan.old, "waiting", "submit", self._manifest("waiting"))
        self._progress(self.plan.old)
        self._migrate()
        self._progress(self.plan.old)
        if self.plan.old.takes_newer:
            self._restart_old(old)
        self._service(self.plan.new, "new")
        self._ask(self.plan.new, "new")
        new = [self._worker(self.plan.new) for _ in range(2)]
        self._progress(self.plan.new)
        self._progress(self.plan.old)
        self._look_at_metrics()
        self._stop(old[0])
        self._kill(old[1])
        self._replace_service(first)
        self._progress(self.plan.new)
        runs = [run, self._submit(self.plan.new, "late")]
        if self.plan.old.takes_newer:
            runs.append(self._submit(self.plan.old, "late-by-old"))
        self._end(waiting)
        self._look(runs, new)
        return self._result()

    def _begin(self, release: Release, name: str, *words: object) -> Running:
        home = self.folder / f"home-{release.version}"
        settings = {
            "FARM_HOME": str(home),
            "FARM_DATABASE_URL": self.servers.database_url,
            "FARM_BROKER_URL": self.servers.broker_url,
            "FARM_LEASE_SECONDS": str(_LEASE_SECONDS),
            "FARM_CONCURRENCY": "1",
            "FARM_ISOLATION": "rlimit",
            "FARM_ATTEMPTS": "8",
        }
        running = release.running(self.folder / name, settings, *words)
        return self.stack.enter_context(running)

    def _command(self, release: Release, *words: object, status: int = 0) -> str:
        name = f"command{len(self.journal)}"
        running = self._begin(release, name, *words)
        found = running.ended(seconds=_BEGIN_SECONDS * PATIENCE)
        self._say(f"{release.version}: farm {' '.join(map(str, words))}: {found}")
        assert found == status, f"farm {words[0]} of {release.version} ended with {found}: {running.said}"
        return running.out.read_text()

    def _say(self, words: str) -> None:
        self.journal.append(f"{time.strftime('%H:%M:%S')} {words}")

    def _worker(self, release: Release) -> _Worker:
        running = self._begin(release, f"worker{len(self.workers)}", "worker", "--metrics-port", "0")
        worker = _Worker(release=release, running=running)
        self.workers.append(worker)
        eventually(lambda: "Serving" in running.said or not worker.is_alive, seconds=_BEGIN_SECONDS)
        assert worker.is_alive, f"a worker of {release.version} does not begin: {running.said}"
        self._say(f"{release.version}: a worker serves, process {running.process.pid}")
        return worker

    def _service(self, release: Release, name: str) -> Running:
        socket = self.folder / f"{name}.sock"
        running = self._begin(release, f"service-{name}-{len(self.journal)}", "serve", "--uds", socket)
        eventually(lambda: socket.exists() or running.process.poll() is not None, seconds=_BEGIN_SECONDS)
        self._say(f"{release.version}: a service listens on {name}.sock")
        return running

    def _ask(self, release: Release, name: str) -> None:
        url, told = f"unix:{self.folder / name}.sock", self.folder / f"{name}.told"
        running = self._begin(release, f"asking-{name}", _ASKING, url, name, told, self.folder / "stop")
        self.asking[name] = running

    def _manifest(self, name: str) -> Path:
        kinds = [_KINDS[number % 3] for number in range(self.plan.lines)]
        label = name.replace("-", "_")
        entries = [
            {
                **entry(kind, number),
                "predicted_proof": str(entry(kind, number)["predicted_proof"]).replace(
                    f"theorem t{number}", f"theorem {label}{number}"
                ),
            }
            for number, kind in enumerate(kinds)
        ]
        return write(self.folder / f"{name}.jsonl", *entries)

    def _submit(self, release: Release, name: str) -> str:
        said = self._command(release, "submit", self._manifest(name), "--no-wait", "--json")
        return str(json.loads(said)["run"])

    def _made(self, release: Release) -> int:
        return self._facts.made_by().get(release.version, 0)

    @property
    def _facts(self) -> _Facts:
        return _Facts(self.servers.database_url)

    def _progress(self, release: Release) -> None:
        """Wait until workers of a release have judged as much as is planned for one step."""
        before = self._made(release)
        eventually(lambda: self._made(release) >= before + self.plan.verdicts, seconds=_END_SECONDS)
        self._say(f"{release.version}: judged {self._made(release) - before} more")

    def _migrate(self) -> None:
        begun = time.monotonic()
        self._command(self.plan.new, "db", "upgrade")
        self.migration_seconds = time.monotonic() - begun
        self._command(self.plan.new, "db", "upgrade")

    def _restart_old(self, old: list[_Worker]) -> None:
        """End an old worker and begin another: a node may restart in the middle of an upgrade."""
        self._stop(old[0])
        old[0] = self._worker(self.plan.old)
        self._progress(self.plan.old)
        self._command(self.plan.old, "db", "upgrade")

    def _replace_service(self, old: Running) -> None:
        old.process.send_signal(signal.SIGTERM)
        status = old.ended(seconds=_BEGIN_SECONDS * PATIENCE)
        self._say(f"the old service ended with {status}")
        self._trouble("the old service", old)
        (self.folder / "old.sock").unlink(missing_ok=True)
        self._service(self.plan.new, "old")

    def _stop(self, worker: _Worker) -> None:
        worker.running.process.send_signal(signal.SIGTERM)
        status = worker.running.ended(seconds=_BEGIN_SECONDS * PATIENCE)
        self._say(f"{worker.release.version}: worker {worker.name} ended with {status} after SIGTERM")
        if status != 0:
            self.complaints.append(f"a worker of {worker.release.version} ended with {status}")

    def _kill(self, worker: _Worker) -> None:
        if not worker.is_alive:
            self.complaints.append(f"a worker of {worker.release.version} had ended: {worker.running.said}")
        worker.running.process.kill()
        self.killed = worker.name
        self._say(f"{worker.release.version}: worker {worker.name} was killed")

    def _look_at_metrics(self) -> None:
        for worker in self.workers:
            found = re.search(r"Metrics are served on (\S+)", worker.running.said)
            if not worker.is_alive:
                continue
            if found is None:
                self.complaints.append(f"a worker of {worker.release.version} serves no metrics")
                continue
            with urlopen(found[1], timeout=60) as answer:
                text = answer.read().decode()
            if f'version="{worker.release.version}"' not in text or "farm_worker_" not in text:
                self.complaints.append(
                    f"a worker of {worker.release.version} tells no metrics:\n{text[:999]}"
                )

    def _end(self, waiting: Running) -> None:
        (self.folder / "stop").touch()
        for name, running in self.asking.items():
            status = running.ended(seconds=_END_SECONDS * PATIENCE)
            if status != 0:
                self.complaints.append(f"the client {name} ended with {status}: {running.said}")
        if status := waiting.ended(seconds=_END_SECONDS * PATIENCE):
            self.complaints.append(f"the submit that waited ended with {status}: {waiting.said}")
        eventually(lambda: not self._facts.unfinished(), seconds=_END_SECONDS)

    def _look(self, runs: list[str], new: list[_Worker]) -> None:
        self.complaints += self._wrong_items()
        for run in runs:
            self.complaints += self._wrong_lines(run)
        written = [json.loads(each) for each in (self.folder / "waiting.jsonl").read_text().splitlines()]
        found = [(each["farm"]["verdict"], each["farm"]["reason"]) for each in written]
        if found != [_KINDS[number % 3] for number in range(self.plan.lines)]:
            self.complaints.append("the manifest of the submit that waited has other verdicts")
        self.complaints += self._wrong_attempts()
        for worker in self.workers:
            self._trouble(f"a worker of {worker.release.version}", worker.running)
        self.complaints += [f"a new worker ended: {each.running.said}" for each in new if not each.is_alive]

    def _trouble(self, who: str, running: Running) -> None:
        if found := _TROUBLE.search(running.said):
            around = running.said[max(0, found.start() - 300) : found.end() + 700]
            self.complaints.append(f"{who} said: {around}")

    def _wrong_items(self) -> Iterator[str]:
        """Say which items came back wrong, or are in the store and did not come back."""
        names: set[str] = set()
        for client in self.asking:
            for text in (self.folder / f"{client}.told").read_text().splitlines():
                name, expected, found = json.loads(text)
                names.add(name)
                if expected != found:
                    yield f"{name} is {found} and not {expected}"
        self.told = names
        stored = self._facts.stored_items(tuple(self.asking))
        if odd := sorted(stored ^ names):
            yield f"{len(odd)} items were told or stored, but not both: {odd[:5]}"

    def _wrong_lines(self, run: str) -> Iterator[str]:
        lines = self._facts.lines_of(run)
        if [line for line, *_ in lines] != list(range(1, self.plan.lines + 1)):
            yield f"run {run} has {len(lines)} lines and not {self.plan.lines}"
        for line, *verdict in lines:
            if tuple(verdict) != _KINDS[(line - 1) % 3]:
                yield f"line {line} of run {run} is {verdict}"

    def _wrong_attempts(self) -> Iterator[str]:
        """Say which checks were judged twice, and which attempts nothing but a failure explains."""
        for check in self._facts.judged_twice():
            yield f"check {check} was judged twice"
        for worker, outcome, count in self._facts.attempts_by():
            if outcome == "judge_error" or (outcome == "lost" and not worker.endswith(self.killed)):
                yield f"{count} attempts of {worker} ended as {outcome}"

    def _result(self) -> Result:
        facts = self._facts
        return Result(
            plan=self.plan,
            complaints=tuple(self.complaints),
            journal=tuple(self.journal),
            items=len(self.told),
            lines=self.plan.lines * (3 + self.plan.old.takes_newer),
            made_by=facts.made_by(),
            outcomes=facts.outcomes(),
            migration_seconds=self.migration_seconds,
            longest_pause=facts.longest_pause(),
        )


class _Facts(LoadFacts):
    """Questions about a rolling upgrade to the database of the farm."""

    def made_by(self) -> dict[str, int]:
        """Return how many verdicts each release has made."""
        return {str(version): count for version, count in self._ask(_MADE_BY)}

    def lines_of(self, run: str) -> list[tuple[int, str, str]]:
        """Return number, verdict and reason of each line."""
        return [(line, verdict, reason) for line, verdict, reason in self._ask(_LINES, run=run)]

    def attempts_by(self) -> list[tuple[str, str, int]]:
        """Return worker and outcome of all attempts, and how many."""
        return [(worker, outcome, count) for worker, outcome, count in self._ask(_ATTEMPTS)]

    def stored_items(self, clients: tuple[str, ...]) -> set[str]:
        """Return the names of the items that these clients asked for."""
        found = self._ask("SELECT name FROM jobs JOIN runs ON runs.id = run_id WHERE owner IS NOT NULL")
        return {name for (name,) in found if name.partition("_")[0] in clients}

    def longest_pause(self) -> float:
        """Return the longest time between two verdicts."""
        (row,) = self._ask("""
            SELECT extract(epoch FROM max(gap))::float FROM (
                SELECT decided_at - lag(decided_at) OVER (ORDER BY decided_at) AS gap
                FROM verdicts WHERE attempt > 0
            ) AS gaps
        """)
        return float(row[0] or 0)
