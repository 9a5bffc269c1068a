"""What dies in the middle of a run loses nothing: every line still gets its one verdict, the right one."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from farm.runs import revise
from farm.store.queries import Queries
from tests.chaos.aftermath import own_groups
from tests.chaos.servers import Kept
from tests.commands import ADMITTED, ENDLESS, PROVED, WRONG, Command, entry, verdicts, write
from tests.farms import Quiet, a_worker, asking, load, serving, verdict_count, wait_for_run
from tests.own_redis import FAULTS, own_redis
from tests.processes import child_of, eventually, family

PYTHON = Path(sys.executable).name

#: Enough that a worker with two checks at once is busy for some seconds.
KINDS = [PROVED, ENDLESS, ENDLESS, WRONG, ENDLESS, ADMITTED, ENDLESS, PROVED]


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return write(tmp_path / "mixed.jsonl", *(entry(kind, number) for number, kind in enumerate(KINDS)))


def started(farm: Command) -> None:
    assert farm("list").returncode == 0


def lost(queries: Queries, run_id: str) -> bool:
    """Whether the worker of any attempt was lost."""
    return any("lost" in made for made in outcomes(queries, run_id))


def outcomes(queries: Queries, run_id: str) -> list[list[str]]:
    """Return what became of each attempt at each line."""
    return [
        [str(attempt["outcome"]) for attempt in queries.attempts(run_id, 0, number)]
        for number in range(1, len(KINDS) + 1)
    ]


def check_all(queries: Queries, run_id: str, manifest: Path) -> None:
    """Check that the manifest has the verdicts of an undisturbed run, and the store one for each line."""
    assert verdicts(manifest) == KINDS
    tally = queries.tally(run_id)
    assert tally.statuses == {"done": len(KINDS)}
    assert verdict_count(queries, run_id) == len(KINDS)
    for (verdict, _), made in zip(KINDS, outcomes(queries, run_id), strict=True):
        assert made[-1] == verdict
        assert set(made[:-1]) <= {"lost", "returned"}


def test_a_worker_that_is_killed_is_started_again_and_finishes_the_run(
    own_farm: Command, manifest: Path, tmp_path: Path
) -> None:
    started(own_farm)
    with (
        asking(own_farm) as (facts, queries),
        own_farm.started(tmp_path / "submit", "submit", manifest) as submit,
    ):
        run_id = wait_for_run(queries, manifest, "done")
        wait_for_run(queries, manifest, "running")
        worker = child_of(facts.pid, PYTHON)
        assert worker is not None
        os.kill(worker.pid, signal.SIGKILL)
        assert submit.ended() == 0, submit.said
        check_all(queries, run_id, manifest)
        assert lost(queries, run_id)


def test_a_postgresql_that_is_killed_is_waited_for_and_the_run_goes_on(
    own_farm: Command, manifest: Path, tmp_path: Path
) -> None:
    started(own_farm)
    with (
        asking(own_farm) as (facts, queries),
        own_farm.started(tmp_path / "submit", "submit", manifest) as submit,
    ):
        run_id = wait_for_run(queries, manifest, "done")
        # Held, so that it does not start PostgreSQL again before its loss was noticed.
        os.kill(facts.pid, signal.SIGSTOP)
        try:
            postgres = child_of(facts.pid, "postgres")
            assert postgres is not None
            os.kill(postgres.pid, signal.SIGKILL)
            eventually(lambda: "PostgreSQL does not answer" in submit.said)
        finally:
            os.kill(facts.pid, signal.SIGCONT)
        assert submit.ended() == 0, submit.said
        check_all(queries, run_id, manifest)


def test_a_redis_that_is_killed_is_waited_for_and_the_run_goes_on(
    own_farm: Command, manifest: Path, tmp_path: Path
) -> None:
    started(own_farm)
    with (
        asking(own_farm) as (facts, queries),
        own_farm.started(tmp_path / "submit", "submit", manifest) as submit,
    ):
        run_id = wait_for_run(queries, manifest, "done")
        valkey = child_of(facts.pid, "valkey-server", "redis-server")
        assert valkey is not None
        os.kill(valkey.pid, signal.SIGKILL)
        assert submit.ended() == 0, submit.said
        check_all(queries, run_id, manifest)


def test_what_a_killed_worker_left_goes_even_if_its_successor_is_ended_while_it_begins(
    quiet: Quiet, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    farm = quiet.farm.having(FARM_HOME=str(home))

    def left(*pids: int) -> list[Path]:
        folders = (path for pid in pids for path in (home / "work").glob(f"farm-{pid}-*"))
        return [*folders, *own_groups(set(pids))]

    for number, moment in enumerate([_holds_back, left]):  # at its first line, and when it prepares itself
        with farm.started(tmp_path / f"killed{number}", "worker") as killed:
            eventually(lambda: left(killed.process.pid))
        assert left(killed.process.pid)
        with farm.started(tmp_path / f"successor{number}", "worker") as successor:
            eventually(lambda: moment(successor.process.pid))  # noqa: B023
            successor.process.terminate()
            assert successor.ended() == 0, successor.said
        assert left(killed.process.pid, successor.process.pid) == []


def _holds_back(pid: int) -> bool:
    """Whether SIGTERM is blocked in a process, proc_pid_status(5)."""
    (blocked,) = re.findall(r"^SigBlk:\t(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(int(blocked, 16) >> (signal.SIGTERM - 1) & 1)


def test_a_postgresql_that_can_only_be_read_for_a_while_is_waited_for(
    quiet: Quiet, manifest: Path, tmp_path: Path
) -> None:
    with (
        a_worker(quiet, tmp_path / "worker") as worker,
        quiet.farm.started(tmp_path / "submit", "submit", manifest) as submit,
    ):
        run_id = wait_for_run(quiet.queries, manifest, "running")
        with only_read(quiet):
            eventually(lambda: "can only be read" in worker.said)
            later = write(tmp_path / "later.jsonl", entry(PROVED, 9))
            refused = quiet.farm("submit", later)
            assert refused.returncode == 1
            assert "name the primary in FARM_DATABASE_URL" in refused.stderr
        assert submit.ended() == 0, submit.said
    check_all(quiet.queries, run_id, manifest)


@contextmanager
def only_read(quiet: Quiet) -> Iterator[None]:
    """Have PostgreSQL refuse to write inside the block, as one does that is being restored."""
    server = create_engine(quiet.engine.url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    name = quiet.engine.url.database
    others = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name")
    with server.connect() as connection:
        for value in ("on", "off"):
            connection.execute(text(f'ALTER DATABASE "{name}" SET default_transaction_read_only = {value}'))
            connection.execute(others, {"name": name})
            if value == "on":
                yield
    server.dispose()


def test_a_worker_killed_and_started_again_by_hand_finishes_the_run(
    quiet: Quiet, manifest: Path, tmp_path: Path
) -> None:
    with quiet.farm.started(tmp_path / "submit", "submit", manifest) as submit:
        with a_worker(quiet, tmp_path / "first") as first:
            run_id = wait_for_run(quiet.queries, manifest, "done")
            wait_for_run(quiet.queries, manifest, "running")
            eventually(lambda: len(family(first.process.pid)) > 1)
            left = family(first.process.pid)
            os.kill(first.process.pid, signal.SIGKILL)
            eventually(lambda: not any(member.alive for member in left))
        with a_worker(quiet, tmp_path / "second"):
            assert submit.ended() == 0, submit.said
    check_all(quiet.queries, run_id, manifest)
    assert lost(quiet.queries, run_id)


def test_a_worker_that_is_asked_to_stop_finishes_its_checks_and_loses_none(
    quiet: Quiet, manifest: Path, tmp_path: Path
) -> None:
    with quiet.farm.started(tmp_path / "submit", "submit", manifest) as submit:
        with a_worker(quiet, tmp_path / "first") as first:
            run_id = wait_for_run(quiet.queries, manifest, "running")
            first.process.terminate()
            assert first.ended() == 0, first.said
            assert quiet.queries.tally(run_id).statuses.get("running", 0) == 0
        with a_worker(quiet, tmp_path / "second"):
            assert submit.ended() == 0, submit.said
    check_all(quiet.queries, run_id, manifest)
    assert not lost(quiet.queries, run_id)


def test_a_redis_that_was_wiped_costs_nothing(quiet: Quiet, manifest: Path, tmp_path: Path) -> None:
    with (
        a_worker(quiet, tmp_path / "worker"),
        quiet.farm.started(tmp_path / "submit", "submit", manifest) as submit,
    ):
        run_id = wait_for_run(quiet.queries, manifest, "done")
        assert quiet.queries.tally(run_id).unfinished > 0
        quiet.redis.flushdb()
        assert submit.ended() == 0, submit.said
    check_all(quiet.queries, run_id, manifest)


@contextmanager
def with_own_redis(quiet: Quiet, pair: str) -> Iterator[tuple[Quiet, Kept]]:
    """The same farm with a Redis of the test's own, which it may kill."""
    with own_redis(pair) as redis:
        yield replace(quiet, farm=quiet.farm.having(FARM_BROKER_URL=redis.url)), redis.server


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_idle_threads_begin_what_waits_while_redis_is_away(
    quiet: Quiet, pair: str, tmp_path: Path, how: signal.Signals
) -> None:
    with (
        with_own_redis(quiet, pair) as (lonely, valkey),
        a_worker(lonely, tmp_path / "worker") as worker,
    ):
        os.kill(valkey.pid, how)
        long = [entry(ENDLESS, number, timeout=600) for number in range(3)]
        run_id = load(quiet.store, tmp_path / "stored.jsonl", *long)
        eventually(lambda: quiet.queries.tally(run_id).statuses == {"running": 2, "queued": 1})
        assert revise.cancel(quiet.store, run_id) == 3
        run_id = load(quiet.store, tmp_path / "later.jsonl", *(entry(kind, 9) for kind in (PROVED, WRONG)))
        eventually(lambda: quiet.queries.tally(run_id).verdicts == {PROVED: 1, WRONG: 1})
        if how is signal.SIGSTOP:
            os.kill(valkey.pid, signal.SIGCONT)
        worker.process.terminate()
        assert worker.ended() == 0, worker.said


def refusals(said: str, fault: str) -> list[str]:
    """Return the lines of a worker's log about a Redis that refuses for this fault."""
    return [line for line in said.splitlines() if "refuses what the farm writes" in line and fault in line]


def test_a_worker_outlives_a_redis_that_refuses_writes(quiet: Quiet, pair: str, tmp_path: Path) -> None:
    with (
        own_redis(pair) as redis,
        serving(quiet.farm, tmp_path / "worker", FARM_BROKER_URL=redis.url) as worker,
    ):
        for number, fault in enumerate(FAULTS, 1):
            with redis.refusing(fault):
                path = tmp_path / f"{fault}.jsonl"
                run_id = load(quiet.store, path, entry(PROVED, number))
                eventually(lambda: quiet.queries.tally(run_id).verdicts == {PROVED: 1})  # noqa: B023
                eventually(lambda: worker.said.count("Busy threads go on") == number)  # noqa: B023
                eventually(lambda: len(refusals(worker.said, fault)) == 1)  # noqa: B023
                assert worker.process.poll() is None
            eventually(lambda: worker.said.count("Redis answers again") == number)  # noqa: B023
            assert len(refusals(worker.said, fault)) == 1
        with redis.loading():
            eventually(lambda: worker.said.count("it loads its data") == 1)
            eventually(lambda: worker.said.count("Redis answers again") == len(FAULTS) + 1)
            assert worker.process.poll() is None
        worker.process.terminate()
        assert worker.ended() == 0, worker.said
        assert "Traceback" not in worker.said


def test_a_submitter_killed_as_soon_as_its_run_is_stored_loses_nothing(
    quiet: Quiet, manifest: Path, tmp_path: Path
) -> None:
    with a_worker(quiet, tmp_path / "worker"):
        with quiet.farm.started(tmp_path / "submit", "submit", manifest) as submit:
            eventually(lambda: quiet.queries.runs(most=1))
            submit.process.kill()
        assert quiet.farm("status", "--wait").returncode == 0
    assert quiet.farm("export").returncode == 0
    check_all(quiet.queries, quiet.queries.run(None).id, manifest)


def test_two_workers_share_a_run_and_judge_each_line_once(
    quiet: Quiet, manifest: Path, tmp_path: Path
) -> None:
    with a_worker(quiet, tmp_path / "one"), a_worker(quiet, tmp_path / "two"):
        assert quiet.farm("submit", manifest).returncode == 0
    check_all(quiet.queries, quiet.queries.run(None).id, manifest)
    workers = quiet.ask("SELECT worker FROM attempts WHERE outcome <> 'returned'")
    assert len(workers) == len(KINDS)
    assert len(set(workers)) == 2
