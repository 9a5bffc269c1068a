"""A farm behind PgBouncer in transaction mode, with few connections to PostgreSQL, works as without."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from farm.store import postgres
from farm.store.queries import Queries
from farm.store.transitions import Store
from tests.chaos.servers import Servers
from tests.commands import ENDLESS, PROVED, WRONG, Command, entry, verdicts, write
from tests.farms import CORE, serving, wait_for_run
from tests.pooler import Pooler, pooling
from tests.processes import PATIENCE
from tests.services import serving_http

KINDS = [PROVED, ENDLESS, WRONG, ENDLESS, PROVED, ENDLESS, ENDLESS, PROVED]

_EMPTY = "DROP SCHEMA report CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public"


@dataclass(frozen=True)
class Pooled:
    """The `farm` command, all of whose connections go through a pooler, and a direct way to the database."""

    farm: Command
    pooler: Pooler
    servers: Servers
    direct: Engine
    url: str

    @property
    def queries(self) -> Queries:
        return Queries(self.direct)

    def server_connections(self) -> int:
        """Return how many connections PostgreSQL has to this database, the direct ones left out."""
        asked = text(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name <> 'farm-test'"
        )
        with self.direct.connect() as connection:
            return int(connection.scalar(asked) or 0)


@contextmanager
def _pooled(tmp_path: Path, size: int) -> Iterator[Pooled]:
    servers = Servers(tmp_path / "servers")
    direct = postgres.connect(servers.new_database("pooled"), application="farm-test")
    Store(direct).register([CORE])
    try:
        with pooling(direct.url, size=size) as pooler:
            url = pooler.url(direct.url)
            settings = {
                "FARM_HOME": str(tmp_path / "home"),
                "FARM_DATABASE_URL": url.replace("+psycopg", "", 1),
                "FARM_BROKER_URL": servers.broker_url(1),
                "FARM_LEASE_SECONDS": str(2 * PATIENCE),
                "FARM_CONCURRENCY": "2",
                "FARM_ISOLATION": "rlimit",
            }
            yield Pooled(Command(settings), pooler, servers, direct, url)
    finally:
        direct.dispose()
        servers.end()


@pytest.fixture
def pooled(tmp_path: Path) -> Iterator[Pooled]:
    """A farm of which PostgreSQL sees four connections at most."""
    with _pooled(tmp_path, 4) as found:
        yield found


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Pooled]:
    """A farm of which PostgreSQL sees one connection: whoever held it while waiting for it would wait."""
    with _pooled(tmp_path, 1) as found:
        yield found


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return write(tmp_path / "mixed.jsonl", *(entry(kind, number) for number, kind in enumerate(KINDS)))


def check_all(pooled: Pooled, manifest: Path) -> None:
    """Check that each line has its verdict, in the manifest and once in the store."""
    assert verdicts(manifest) == KINDS
    (run,) = pooled.queries.runs()
    assert pooled.queries.tally(run.id).statuses == {"done": len(KINDS)}
    assert sum(pooled.queries.tally(run.id).verdicts.values()) == len(KINDS)
    assert "prepared statement" not in pooled.pooler.log


def test_a_run_is_judged_whose_worker_was_killed(pooled: Pooled, manifest: Path, tmp_path: Path) -> None:
    with pooled.farm.started(tmp_path / "submit", "submit", manifest) as submit:
        with serving(pooled.farm, tmp_path / "first") as first:
            wait_for_run(pooled.queries, manifest, "running")
            first.process.kill()
        with serving(pooled.farm, tmp_path / "second"), serving(pooled.farm, tmp_path / "third"):
            assert submit.ended(seconds=70 * PATIENCE) == 0, submit.said
    check_all(pooled, manifest)
    assert pooled.server_connections() <= 4


def test_one_connection_to_postgresql_is_enough_for_everything(
    narrow: Pooled, manifest: Path, tmp_path: Path
) -> None:
    farm = narrow.farm
    with serving(farm, tmp_path / "worker"), serving_http(farm, tmp_path / "service") as service:
        said = farm("submit", manifest)
        assert said.returncode == 0, said.stderr
        items = [
            {"program": line["predicted_proof"], "timeout": 2}
            for line in map(entry, KINDS[:3], range(50, 53))
        ]
        answers = [service.post(*items, wait_seconds=30) for _ in range(3)]
        for answer in answers:
            assert [item["verdict"] for item in answer["items"]] == ["proved", "timeout", "rejected"]
        assert farm.json("doctor")["parts"]
        assert "farm_up 1" in farm("metrics", "--once").stdout
        assert farm("worker", "--sweep").returncode == 0
        assert farm("db", "upgrade").returncode == 0
        assert farm("export", "-o", tmp_path / "out.jsonl").returncode == 0
        for command in ("status", "show", "report", "environments"):
            asked = farm(command)
            assert asked.returncode == 0, asked.stderr
    check_all(narrow, manifest)
    assert verdicts(tmp_path / "out.jsonl") == KINDS
    assert narrow.server_connections() <= 1


def test_statements_prepared_by_others_or_repeated_often_are_no_trouble(pooled: Pooled) -> None:
    engine = postgres.connect(pooled.url, application="farm-test", connections=8, works=True, plans_once=True)

    def ask(_nth: int) -> int:
        for _ in range(50):
            with postgres.single(engine) as cursor:
                assert cursor.execute("SELECT %(n)s::int AS n", {"n": 1}).fetchone() == {"n": 1}
        return 50

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(ask, range(8))) == 400
    engine.dispose()


def test_what_a_worker_sets_holds_in_its_transactions_and_for_nobody_else(narrow: Pooled) -> None:
    works = postgres.connect(narrow.url, application="farm-test", works=True)
    asks = postgres.connect(narrow.url, application="farm-test")
    shown = "SHOW enable_seqscan"
    with postgres.single(works) as cursor:
        assert cursor.execute(shown).fetchone() == {"enable_seqscan": "off"}
    with works.begin() as connection:
        assert connection.scalar(text(shown)) == "off"
    with asks.begin() as connection:
        assert connection.scalar(text(shown)) == "on"
    works.dispose()
    asks.dispose()


def test_upgrades_started_together_through_a_pooler_leave_no_lock(pooled: Pooled) -> None:
    # Through one connection nobody could tell whose a lock is.
    with pooled.direct.begin() as connection:
        connection.execute(text(_EMPTY))
    program = "import sys; from farm.store import postgres; postgres.upgrade(sys.argv[1])"
    nodes = [subprocess.Popen([sys.executable, "-c", program, pooled.url]) for _ in range(4)]
    assert [node.wait(timeout=60 * PATIENCE) for node in nodes] == [0, 0, 0, 0]
    postgres.require_schema(pooled.direct)
    with pooled.direct.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")) == 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_pooler_that_is_restarted_loses_nothing(
    pooled: Pooled, manifest: Path, tmp_path: Path, how: signal.Signals
) -> None:
    with (
        serving(pooled.farm, tmp_path / "worker") as worker,
        pooled.farm.started(tmp_path / "submit", "submit", manifest) as submit,
    ):
        wait_for_run(pooled.queries, manifest, "done")
        pooled.pooler.end(how)
        pooled.pooler.start()
        assert submit.ended(seconds=70 * PATIENCE) == 0, submit.said
        assert worker.process.poll() is None
    check_all(pooled, manifest)


def test_a_postgresql_that_is_killed_behind_the_pooler_loses_nothing(
    pooled: Pooled, manifest: Path, tmp_path: Path
) -> None:
    with (
        serving(pooled.farm, tmp_path / "worker"),
        pooled.farm.started(tmp_path / "submit", "submit", manifest) as submit,
    ):
        wait_for_run(pooled.queries, manifest, "done")
        pooled.servers.postgres.end_by(signal.SIGKILL)
        pooled.servers.start_postgres()
        assert submit.ended(seconds=70 * PATIENCE) == 0, submit.said
    check_all(pooled, manifest)
