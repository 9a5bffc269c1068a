"""The supervisor: heals what dies, dies with all it has, ends with nothing to do."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis

from farm.embedded import Facts, ensure, status
from farm.redis_client import redis_url
from tests.processes import child_of, eventually, family

PYTHON = Path(sys.executable).name


def started(home: Path, pair: str, *, idle_minutes: float = 10.0, worker: bool = False) -> Facts:
    ensure(home, idle_minutes, servers=pair, worker=worker)
    facts = status(home)
    assert facts is not None
    return facts


def connected(facts: Facts, application: str = "test") -> psycopg.Connection:
    url = facts.database_url.replace("+psycopg", "")
    return psycopg.connect(url, application_name=application, autocommit=True)


def answers(facts: Facts) -> bool:
    try:
        connected(facts).close()
    except psycopg.OperationalError:
        return False
    return True


def valkey_answers(facts: Facts) -> bool:
    try:
        with redis.Redis.from_url(redis_url(facts.broker_url), retry=None) as valkey:
            return valkey.ping()
    except redis.ConnectionError:
        return False


@pytest.mark.parametrize("worker", [False, True])
def test_killing_the_supervisor_takes_all_it_started_with_it(settled: Path, pair: str, worker: bool):
    facts = started(settled, pair, worker=worker)
    running = family(facts.pid)
    os.kill(facts.pid, signal.SIGKILL)
    eventually(lambda: not any(process.alive for process in running))


def test_the_servers_start_again_right_after_their_supervisor_was_killed(settled: Path, pair: str):
    facts = started(settled, pair)
    os.kill(facts.pid, signal.SIGKILL)
    assert started(settled, pair).pid != facts.pid
    assert answers(facts)
    assert valkey_answers(facts)


def test_a_signal_ends_the_supervisor_and_its_servers_in_order(settled: Path, pair: str):
    facts = started(settled, pair)
    running = family(facts.pid)
    os.kill(facts.pid, signal.SIGTERM)
    eventually(lambda: not any(process.alive for process in running))
    assert "database system is shut down" in (settled / "postgres.log").read_text()


def test_a_postgresql_that_was_killed_comes_back_with_what_was_committed(settled: Path, pair: str):
    facts = started(settled, pair)
    with connected(facts) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS x")
    killed = child_of(facts.pid, "postgres")
    os.kill(killed.pid, signal.SIGKILL)
    eventually(lambda: not killed.alive)
    eventually(lambda: answers(facts))
    with connected(facts) as connection:
        assert connection.execute("SELECT x FROM kept").fetchall() == [(1,)]


def test_a_valkey_that_was_killed_comes_back(settled: Path, pair: str):
    facts = started(settled, pair)
    killed = child_of(facts.pid, "valkey-server", "redis-server")
    os.kill(killed.pid, signal.SIGKILL)
    eventually(lambda: not killed.alive)
    eventually(lambda: valkey_answers(facts))


def test_a_worker_that_was_killed_comes_back(settled: Path, pair: str):
    facts = started(settled, pair, worker=True)
    killed = child_of(facts.pid, PYTHON)
    os.kill(killed.pid, signal.SIGKILL)
    eventually(lambda: not killed.alive)
    eventually(lambda: child_of(facts.pid, PYTHON))


def test_the_worker_is_told_where_the_servers_are(settled: Path, pair: str):
    facts = started(settled, pair, worker=True)
    worker = child_of(facts.pid, PYTHON)
    told = Path(f"/proc/{worker.pid}/environ").read_text().split("\0")
    assert f"FARM_DATABASE_URL={facts.database_url}" in told
    assert f"FARM_BROKER_URL={facts.broker_url}" in told
    assert f"FARM_HOME={settled}" in told


def test_the_database_has_its_tables_before_a_command_goes_on(settled: Path, pair: str):
    with connected(started(settled, pair, worker=True)) as connection:
        assert connection.execute("SELECT count(*) FROM checks").fetchone() == (0,)


@pytest.mark.parametrize("worker", [False, True])
def test_the_supervisor_ends_when_nothing_is_left_to_do(settled: Path, pair: str, worker: bool):
    facts = started(settled, pair, idle_minutes=0.02, worker=worker)
    running = family(facts.pid)
    eventually(lambda: not any(process.alive for process in running))
    assert "stopping: idle" in (settled / "supervisor.log").read_text()


@contextmanager
def a_queued_check(facts: Facts) -> Iterator[None]:
    with connected(facts, "farm-worker") as connection:
        connection.execute("CREATE TABLE checks AS SELECT 'queued' AS status")
        yield
        connection.execute("UPDATE checks SET status = 'done'")


@contextmanager
def another_client(facts: Facts) -> Iterator[None]:
    with connected(facts):
        yield


@pytest.mark.parametrize("reason", [a_queued_check, another_client])
def test_the_supervisor_stays_while_there_is_a_reason_and_ends_after_it(settled: Path, pair: str, reason):
    facts = started(settled, pair, idle_minutes=0.02)
    with reason(facts):
        looked = looks(facts)
        eventually(lambda: looks(facts) > looked + 8)  # it looks four times in its idle time
        assert status(settled) is not None
    eventually(lambda: status(settled) is None)


def looks(facts: Facts) -> int:
    """How often the supervisor has looked for work: each is a session that ended."""
    with connected(facts, "farm-worker") as connection:
        row = connection.execute("SELECT sessions FROM pg_stat_database WHERE datname = 'farm'").fetchone()
    assert row is not None
    return int(row[0])


def test_a_command_that_uses_the_servers_puts_the_end_off(settled: Path, pair: str):
    facts = started(settled, pair, idle_minutes=0.02)
    with another_client(facts):
        pass
    assert not ensure(settled, servers=pair).started
    assert (settled / "last-used").stat().st_mtime >= facts.since


def test_the_supervisor_ends_when_its_home_was_removed(settled: Path, pair: str):
    facts = started(settled, pair, idle_minutes=0.02)
    (settled / "last-used").unlink()
    eventually(lambda: not family(facts.pid))
