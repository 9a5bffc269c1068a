"""The farm's own servers as commands see them: started once, found later, clear when they cannot start."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import kombu
import psycopg
import pytest
import redis
from sqlalchemy import create_engine, text

from farm.embedded import Servers, down, ensure, status
from farm.embedded.binaries import NOBODY
from farm.embedded.home import control_socket, socket_folder
from farm.errors import ServerDown
from farm.redis_client import redis_url
from farm.store import postgres
from farm.store.queries import Queries
from farm.store.transitions import Store
from tests.farms import CORE, a_decision, load
from tests.processes import CODE, eventually, family, processes

# A command of its own process that wants the servers, prints what it got, and leaves them running.
COMMAND = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from farm.embedded import ensure
print(json.dumps(asdict(ensure(Path(sys.argv[1]), servers=sys.argv[2], worker=False))))
"""


AS_NOBODY: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}

# Where this Python finds the farm and what it needs, for another Python that looks elsewhere.
SEEN = {"PYTHONPATH": os.pathsep.join([CODE, *sys.path[1:]])}


def a_command(home: Path, pair: str, python: str = sys.executable, **options: Any) -> subprocess.Popen[str]:
    command = [python, "-c", COMMAND, str(home), pair]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/", **options)


def nobodys_python() -> str:
    """Return a Python of this version that `nobody` can run, with the farm in its reach."""
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        with suppress(OSError, subprocess.CalledProcessError):
            subprocess.run([python, "-c", "import farm.embedded"], env=SEEN, cwd="/", check=True, **AS_NOBODY)
            return python
    pytest.skip("the user nobody can run no Python that reads this checkout")


def what_it_got(command: subprocess.Popen[str]) -> Servers:
    output, _ = command.communicate(timeout=60)
    return Servers(**json.loads(output))


def libpq(database_url: str) -> str:
    return database_url.replace("+psycopg", "")


def require_system_pair() -> None:
    if not Path("/usr/lib/postgresql").exists() or not shutil.which("redis-server"):
        assert os.environ.get("FARM_TEST_SERVERS") != "system", "install postgresql and redis-server"
        pytest.skip("needs: sudo apt-get install postgresql redis-server")


@pytest.fixture
def nobodys_folder() -> Iterator[Path]:
    """A folder that `nobody` owns and can reach, which pytest's own are not."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    folder = Path(tempfile.mkdtemp(prefix="farm-test-"))
    os.chown(folder, NOBODY, NOBODY)
    yield folder
    down(folder / "home")
    shutil.rmtree(folder)


def test_the_urls_are_those_that_sqlalchemy_celery_and_redis_py_read(servers: Servers):
    engine = create_engine(servers.database_url)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT current_database()")) == "farm"
    engine.dispose()
    with kombu.Connection(servers.broker_url) as broker:
        broker.ensure_connection(max_retries=1)
    with redis.Redis.from_url(redis_url(servers.broker_url)) as valkey:
        assert valkey.ping()


def test_the_database_speaks_utf8_and_orders_by_code_point(servers: Servers):
    query = "SELECT pg_encoding_to_char(encoding), datcollate FROM pg_database WHERE datname = 'farm'"
    with psycopg.connect(libpq(servers.database_url)) as connection:
        assert connection.execute(query).fetchone() == ("UTF8", "C")


def test_the_first_command_starts_the_servers_and_a_later_one_finds_them(home: Path, pair: str):
    first = ensure(home, servers=pair, worker=False)
    second = ensure(home, servers=pair, worker=False)
    assert (first.started, second.started) == (True, False)
    assert (first.database_url, first.broker_url) == (second.database_url, second.broker_url)


def test_commands_at_the_same_moment_start_the_servers_once(home: Path, pair: str):
    commands = [a_command(home, pair) for _ in range(4)]
    assert sorted(what_it_got(command).started for command in commands) == [False, False, False, True]


def test_down_leaves_no_process(settled: Path, pair: str):
    ensure(settled, servers=pair, worker=False)
    facts = status(settled)
    assert facts is not None
    running = family(facts.pid)
    assert len(running) > 5
    assert down(settled)
    # A process gives back its lock a moment before it is gone.
    eventually(lambda: not any(process.alive for process in running))


def test_down_says_that_nothing_ran(home: Path):
    assert not down(home)
    assert not home.exists()


def test_status_says_what_runs(settled: Path, pair: str):
    assert status(settled) is None
    servers = ensure(settled, servers=pair, worker=False)
    facts = status(settled)
    assert facts is not None
    assert (facts.database_url, facts.broker_url) == (servers.database_url, servers.broker_url)
    with psycopg.connect(libpq(servers.database_url)) as connection:
        assert connection.info.parameter_status("server_version").startswith(facts.postgres_version)
    down(settled)
    assert status(settled) is None


def test_what_was_committed_is_there_after_a_restart(settled: Path, pair: str):
    for statement in ("CREATE TABLE kept (x int)", "INSERT INTO kept VALUES (1)"):
        with psycopg.connect(libpq(ensure(settled, servers=pair, worker=False).database_url)) as connection:
            connection.execute(statement)
        down(settled)
    with psycopg.connect(libpq(ensure(settled, servers=pair, worker=False).database_url)) as connection:
        assert connection.execute("SELECT x FROM kept").fetchall() == [(1,)]


def test_everything_in_the_home_is_private(home: Path, pair: str):
    ensure(home, servers=pair, worker=False)
    found = [home, *home.iterdir(), *socket_folder(home).iterdir()]
    assert [path for path in found if path.lstat().st_mode & 0o077 and not path.is_socket()] == []


@pytest.mark.parametrize("name", ["long" * 40, "with blanks, and a comma"])
def test_a_home_whose_path_no_socket_can_have_works(tmp_path: Path, pair: str, name: str):
    home = tmp_path / name
    try:
        with psycopg.connect(libpq(ensure(home, servers=pair, worker=False).database_url)) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        assert down(home)
    assert not socket_folder(home).exists()


def test_a_socket_folder_that_is_not_ours_is_refused_and_left_alone(tmp_path: Path, pair: str):
    home = tmp_path / "with blanks"
    home.mkdir()
    trap = socket_folder(home)
    trap.mkdir()
    trap.chmod(0o777)
    try:
        with pytest.raises(ServerDown, match="was not created by the farm"):
            ensure(home, servers=pair, worker=False)
    finally:
        trap.rmdir()


def test_a_user_who_is_not_root_has_servers_too(nobodys_folder: Path, pair: str):
    home = nobodys_folder / "home"
    command = a_command(home, pair, nobodys_python(), env=SEEN | {"PATH": os.environ["PATH"]}, **AS_NOBODY)
    assert what_it_got(command).started
    assert {path.stat().st_uid for path in home.rglob("*")} == {NOBODY}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has user namespaces to lose")
def test_root_without_user_namespaces_has_servers_too(home: Path, tmp_path: Path, pair: str):
    tools = tmp_path / "tools"  # a PATH that has setpriv and the servers, and no unshare
    tools.mkdir()
    for name in filter(shutil.which, ("setpriv", "redis-server", "valkey-server")):
        (tools / name).symlink_to(str(shutil.which(name)))
    servers = what_it_got(a_command(home, pair, env={"PATH": str(tools)}))
    with psycopg.connect(libpq(servers.database_url)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert (home.stat().st_uid, (home / "postgres").stat().st_uid) == (0, NOBODY)
    facts = status(home)
    assert facts is not None
    running = family(facts.pid)
    os.kill(facts.pid, signal.SIGKILL)
    eventually(lambda: not any(process.alive for process in running))


def test_the_distributions_servers_serve(home: Path):
    require_system_pair()
    servers = ensure(home, servers="system", worker=False)
    with psycopg.connect(libpq(servers.database_url)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    with redis.Redis.from_url(redis_url(servers.broker_url)) as valkey:
        assert valkey.ping()


def test_a_first_start_that_was_killed_leaves_nothing_half_done(home: Path, pair: str):
    command = a_command(home, pair)
    eventually((home / "postgres.unfinished").exists)
    for process in processes():
        if "farm.embedded.supervisor" in process.command and str(home) in process.command:
            os.kill(process.pid, signal.SIGKILL)
    command.communicate()
    assert not (home / "postgres").exists()
    assert ensure(home, servers=pair, worker=False).started


def test_a_stale_pid_file_that_names_a_stranger_does_not_stop_a_start(settled: Path, pair: str):
    ensure(settled, servers=pair, worker=False)
    down(settled)
    (settled / "postgres/postmaster.pid").write_text(f"{os.getpid()}\n{settled}/postgres\n")
    assert ensure(settled, servers=pair, worker=False).started


def test_data_of_another_postgresql_is_refused_with_both_versions(home: Path, pair: str):
    (home / "postgres").mkdir(parents=True)
    (home / "postgres/PG_VERSION").write_text("9\n")
    with pytest.raises(
        ServerDown, match=r"created by PostgreSQL 9, but .* is PostgreSQL 1[58]; choose another"
    ):
        ensure(home, servers=pair, worker=False)


def test_a_folder_that_is_no_data_folder_is_refused_with_the_remedy(home: Path, pair: str):
    (home / "postgres").mkdir(parents=True)
    with pytest.raises(ServerDown, match=r"not a PostgreSQL data folder .* move it away"):
        ensure(home, servers=pair, worker=False)


def test_a_broken_data_folder_is_refused_with_what_postgresql_says(settled: Path, pair: str):
    ensure(settled, servers=pair, worker=False)
    down(settled)
    (settled / "postgres/global/pg_control").unlink()
    with pytest.raises(
        ServerDown, match=r"PostgreSQL exited at its start; the end of .*postgres\.log:(.|\n)*pg_control"
    ):
        ensure(settled, servers=pair, worker=False)
    assert status(settled) is None


def test_a_machine_without_servers_is_told_the_one_command(home: Path, tmp_path: Path):
    require_system_pair()
    command = a_command(home, "system", env={"PATH": str(tmp_path)}, stderr=subprocess.PIPE)
    _, errors = command.communicate(timeout=60)
    assert "sudo apt-get install postgresql redis-server" in errors


def test_a_supervisor_of_another_version_is_said_to_be_one(home: Path) -> None:
    home.mkdir()
    control_socket(home).parent.mkdir(exist_ok=True)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(control_socket(home)))
        other.listen()

        def answer() -> None:
            with other.accept()[0] as client:
                client.recv(16)
                client.sendall(b'{"pid": 1, "words_of_tomorrow": 2}')

        answering = threading.Thread(target=answer)
        answering.start()
        with pytest.raises(ServerDown, match="another version of the farm; stop them first: farm down"):
            status(home)
        answering.join()


def test_a_claim_that_a_crash_loses_is_made_again_and_only_the_second_verdict_counts(
    home: Path, pair: str, tmp_path: Path
):
    servers = ensure(home, servers=pair, worker=False)
    postgres.upgrade(servers.database_url)
    engine = postgres.connect(servers.database_url, application="farm-test")
    store = Store(engine)
    store.register([CORE])
    line = {"name": "t", "predicted_proof": "theorem t : True := trivial"}
    run_id = load(store, tmp_path / "one.jsonl", line)
    facts = status(home)
    assert facts is not None
    running = [process for process in family(facts.pid) if "postgres" in process.command]
    (writer,) = (process for process in running if "walwriter" in process.command)
    os.kill(writer.pid, signal.SIGSTOP)  # nothing that is not waited for gets to the disk
    (lost,) = store.claim(["core"], worker="first", lease_seconds=600)
    os.kill(facts.pid, signal.SIGKILL)
    for process in running:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: not any(process.alive for process in running))
    ensure(home, servers=pair, worker=False)
    (again,) = store.claim(["core"], worker="second", lease_seconds=600)
    assert (again.check_id, again.attempt) == (lost.check_id, lost.attempt)
    assert store.lost([lost.hold, again.hold]) == [lost.hold]
    recorded = store.record([(lost, a_decision(exit_status=1)), (again, a_decision())])
    assert (recorded.check_ids, recorded.proved) == ({again.check_id}, (again.check_id,))
    assert Queries(engine).tally(run_id).verdicts == {("proved", "ok"): 1}
    engine.dispose()
