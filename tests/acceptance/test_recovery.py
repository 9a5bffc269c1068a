"""What dies in the middle of a run loses nothing: every line still gets its one verdict, the right one."""

from __future__ import annotations

import itertools
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from farm.embedded import Facts
from farm.runs import revise
from farm.store.queries import Queries
from tests.chaos.aftermath import own_groups
from tests.commands import ADMITTED, ENDLESS, PROVED, WRONG, Command, Running, entry, verdicts, write
from tests.farms import Quiet, a_worker, asking, load, serving, verdict_count, wait_for_run
from tests.own_redis import FAULTS, own_redis
from tests.processes import child_of, eventually, family

PYTHON = Path(sys.executable).name

#: Enough that a worker with two checks at once is busy for a second or two.
KINDS = [PROVED, ENDLESS, ENDLESS, WRONG, ENDLESS, ADMITTED, PROVED]
_numbers = itertools.count()


def mixed(folder: Path) -> Path:
    """Write a manifest of these kinds, of which no line was judged before."""
    number = next(_numbers)
    path = folder / f"mixed{number}.jsonl"
    return write(path, *(entry(kind, 100 * number + nth) for nth, kind in enumerate(KINDS)))


def started(farm: Command) -> None:
    assert farm("status", "--runs").returncode == 0


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


@pytest.mark.newcomer
def test_each_part_of_a_farm_that_is_killed_is_started_again_and_the_run_goes_on(
    own_farm: Command, tmp_path: Path
) -> None:
    started(own_farm)
    with asking(own_farm) as (facts, queries):
        for kill in (_kill_the_worker, _kill_redis, _kill_postgresql):
            manifest = mixed(tmp_path)
            with own_farm.forked(tmp_path / kill.__name__, "submit", manifest) as submit:
                run_id = wait_for_run(queries, manifest, "done")
                wait_for_run(queries, manifest, "running")
                kill(facts, submit)
                assert submit.ended() == 0, submit.said
            check_all(queries, run_id, manifest)
            assert lost(queries, run_id) or kill is not _kill_the_worker


def _kill_the_worker(facts: Facts, _submit: Running) -> None:
    worker = child_of(facts.pid, PYTHON)
    assert worker is not None
    os.kill(worker.pid, signal.SIGKILL)


def _kill_redis(facts: Facts, _submit: Running) -> None:
    valkey = child_of(facts.pid, "valkey-server", "redis-server")
    assert valkey is not None
    os.kill(valkey.pid, signal.SIGKILL)


def _kill_postgresql(facts: Facts, submit: Running) -> None:
    # The supervisor is held, so that it does not start PostgreSQL again before its loss was noticed.
    os.kill(facts.pid, signal.SIGSTOP)
    try:
        postgres = child_of(facts.pid, "postgres")
        assert postgres is not None
        os.kill(postgres.pid, signal.SIGKILL)
        eventually(lambda: "PostgreSQL does not answer" in submit.said)
    finally:
        os.kill(facts.pid, signal.SIGCONT)


def test_what_a_killed_worker_left_goes_even_if_its_successor_is_ended_while_it_begins(
    quiet: Quiet, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    farm = quiet.farm.having(FARM_HOME=str(home))

    def left(*pids: int) -> list[Path]:
        folders = (path for pid in pids for path in (home / "work").glob(f"farm-{pid}-*"))
        return [*folders, *own_groups(set(pids))]

    for number, moment in enumerate([_holds_back, left]):  # at its first line, and when it prepares itself
        with farm.forked(tmp_path / f"killed{number}", "worker") as killed:
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


def test_what_happens_around_a_worker_costs_no_line(quiet: Quiet, tmp_path: Path) -> None:
    with a_worker(quiet, tmp_path / "worker") as worker:
        _only_read_for_a_while(quiet, worker, tmp_path)
        _wiped(quiet, tmp_path)
        _left_by_its_submitter(quiet, tmp_path)


def _only_read_for_a_while(quiet: Quiet, worker: Running, folder: Path) -> None:
    """PostgreSQL takes no writes for a while: it is waited for."""
    manifest = mixed(folder)
    with quiet.farm.forked(folder / "reading", "submit", manifest) as submit:
        run_id = wait_for_run(quiet.queries, manifest, "running")
        with only_read(quiet):
            eventually(lambda: "can only be read" in worker.said)
            refused = quiet.farm("submit", write(folder / "later.jsonl", entry(PROVED, 9)))
            assert refused.returncode == 1
            assert "name the primary in FARM_DATABASE_URL" in refused.stderr
        assert submit.ended() == 0, submit.said
    check_all(quiet.queries, run_id, manifest)


def _wiped(quiet: Quiet, folder: Path) -> None:
    """Redis loses all that it had."""
    manifest = mixed(folder)
    with quiet.farm.forked(folder / "wiped", "submit", manifest) as submit:
        run_id = wait_for_run(quiet.queries, manifest, "done")
        assert quiet.queries.tally(run_id).unfinished > 0
        quiet.redis.flushdb()
        assert submit.ended() == 0, submit.said
    check_all(quiet.queries, run_id, manifest)


def _left_by_its_submitter(quiet: Quiet, folder: Path) -> None:
    """The submitter is killed as soon as its run is stored."""
    manifest, before = mixed(folder), len(quiet.queries.runs())
    with quiet.farm.forked(folder / "killed", "submit", manifest) as submit:
        eventually(lambda: len(quiet.queries.runs()) > before)
        submit.process.kill()
    assert quiet.farm("status", "--wait").returncode == 0
    assert quiet.farm("export").returncode == 0
    check_all(quiet.queries, quiet.queries.run(None).id, manifest)


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


def test_workers_share_a_run_and_what_one_leaves_goes_on_with_the_next(quiet: Quiet, tmp_path: Path) -> None:
    with a_worker(quiet, tmp_path / "first") as first:
        with a_worker(quiet, tmp_path / "second") as second:
            _shared_by_two(quiet, tmp_path)
            _asked_to_stop(quiet, second, tmp_path)
        manifest = mixed(tmp_path)
        with quiet.farm.forked(tmp_path / "submit", "submit", manifest) as submit:
            run_id = _killed(quiet, first, manifest)
            with a_worker(quiet, tmp_path / "third"):
                assert submit.ended() == 0, submit.said
    check_all(quiet.queries, run_id, manifest)
    assert lost(quiet.queries, run_id)


def _shared_by_two(quiet: Quiet, folder: Path) -> None:
    """Two workers judge each line once."""
    manifest = mixed(folder)
    assert quiet.farm("submit", manifest).returncode == 0
    check_all(quiet.queries, quiet.queries.run(None).id, manifest)
    workers = quiet.ask("SELECT worker FROM attempts WHERE outcome <> 'returned'")
    assert len(workers) == len(KINDS)
    assert len(set(workers)) == 2


def _asked_to_stop(quiet: Quiet, worker: Running, folder: Path) -> None:
    """A worker that is asked to stop finishes its checks and loses none, and another does the rest."""
    manifest, name = mixed(folder), f"{os.uname().nodename}:{worker.process.pid}"
    with quiet.farm.forked(folder / "stopped", "submit", manifest) as submit:
        held = "SELECT 1 FROM checks WHERE status = 'running' AND worker = :name"
        eventually(lambda: quiet.ask(held, name=name))
        worker.process.terminate()
        assert worker.ended() == 0, worker.said
        assert quiet.ask(held, name=name) == []
        assert submit.ended() == 0, submit.said
    run_id = quiet.queries.run(None).id
    check_all(quiet.queries, run_id, manifest)
    assert not lost(quiet.queries, run_id)


def _killed(quiet: Quiet, worker: Running, manifest: Path) -> str:
    """Kill the one worker that there is while it is at a run, and return the run's id."""
    run_id = wait_for_run(quiet.queries, manifest, "done")
    wait_for_run(quiet.queries, manifest, "running")
    eventually(lambda: len(family(worker.process.pid)) > 1)
    left = family(worker.process.pid)
    os.kill(worker.process.pid, signal.SIGKILL)
    eventually(lambda: not any(member.alive for member in left))
    return run_id


def begun_without_redis(quiet: Quiet, folder: Path) -> None:
    """Have idle threads begin what waits, though nobody calls them, and judge what comes later."""
    number = next(_numbers)
    long = [entry(ENDLESS, 100 * number + nth, timeout=600) for nth in range(3)]
    run_id = load(quiet.store, folder / f"stored{number}.jsonl", *long)
    eventually(lambda: quiet.queries.tally(run_id).statuses == {"running": 2, "queued": 1})
    assert revise.cancel(quiet.store, run_id) == 3
    later = [entry(kind, 100 * number + 9) for kind in (PROVED, WRONG)]
    run_id = load(quiet.store, folder / f"later{number}.jsonl", *later)
    eventually(lambda: quiet.queries.tally(run_id).verdicts == {PROVED: 1, WRONG: 1})


def refusals(said: str, fault: str) -> list[str]:
    """Return the lines of a worker's log about a Redis that refuses for this fault."""
    return [line for line in said.splitlines() if "refuses what the farm writes" in line and fault in line]


def test_a_worker_outlives_a_redis_that_refuses_hangs_and_dies_and_judges_meanwhile(
    quiet: Quiet, pair: str, tmp_path: Path
) -> None:
    with (
        own_redis(pair) as redis,
        serving(quiet.farm, tmp_path / "worker", FARM_BROKER_URL=redis.url) as worker,
    ):
        for number, fault in enumerate(FAULTS, 1):
            with redis.refusing(fault):
                path = tmp_path / f"{fault}.jsonl"
                run_id = load(quiet.store, path, entry(PROVED, 100 * next(_numbers)))
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
        with redis.hung():
            begun_without_redis(quiet, tmp_path)
        redis.kill()
        begun_without_redis(quiet, tmp_path)
        worker.process.terminate()
        assert worker.ended() == 0, worker.said
        assert "Traceback" not in worker.said
