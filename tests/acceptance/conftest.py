"""Whole farms for the tests: one with a worker for most of them, copies to break, quiet ones to look into."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import redis
from farm_workers.box import isolation as isolations
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.compile import LeanRunner
from farm_workers.machine.environments import installed
from sqlalchemy import Engine

from farm.embedded import down
from farm.store.transitions import Store
from tests.commands import PROVED, Command, entry, write
from tests.compiled_modules import CompiledModules
from tests.farms import CORE, Quiet
from tests.isolation_levels import Mark
from tests.made_once import MadeOnce, copied, forget_power_cuts
from tests.processes import PATIENCE


@pytest.fixture(scope="session")
def isolation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[isolations.Isolation]:
    """The strongest isolation that this machine offers, or less where FARM_TEST_ISOLATION asks for it."""
    most = os.environ.get("FARM_TEST_ISOLATION", "cgroup+bwrap")
    with isolations.prepared(tmp_path_factory.mktemp("isolation"), most=most) as found:
        assert not (os.environ.get("CI") and found.missing), found.missing
        yield found


@pytest.fixture(scope="session")
def core(
    isolation: isolations.Isolation, made_once: MadeOnce, tmp_path_factory: pytest.TempPathFactory
) -> LeanEnvironment:
    """The embedded environment, compiled once and copied."""
    made = made_once("environments", lambda folder: installed(folder, None, isolation))
    return installed(copied(made, tmp_path_factory.mktemp("core")), None, isolation).sound["core"]


@pytest.fixture(scope="session")
def checker(isolation: isolations.Isolation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    """A checker for all tests that ask nothing special of one."""
    with Checker(isolation, home=tmp_path_factory.mktemp("checker"), concurrency=2) as found:
        yield found


@pytest.fixture(scope="session")
def leans(isolation: isolations.Isolation) -> Iterator[LeanRunner]:
    """A runner whose forks compile programs."""
    found = LeanRunner(isolation, way="forked", most_images=2)
    yield found
    found.close()


@pytest.fixture(scope="session")
def compiled(
    leans: LeanRunner, core: LeanEnvironment, tmp_path_factory: pytest.TempPathFactory
) -> CompiledModules:
    """How to get the compiled module of a text, which each test only reads."""
    return CompiledModules(leans=leans, environment=core, folder=tmp_path_factory.mktemp("compiled"))


@pytest.fixture
def mark() -> Iterator[Mark]:
    """A sleep by which processes are known; none is left after a test."""
    mark = Mark()
    yield mark
    left = mark.found()
    for each in left:
        os.kill(each.pid, signal.SIGKILL)
    assert left == []


@pytest.fixture(scope="session")
def first_submit(pair: str, made_once: MadeOnce) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The home of a farm whose first command ever was a submit, stopped again, and what that said."""

    def make(folder: Path) -> None:
        home = folder / "home"
        farm = Command({"FARM_HOME": str(home), "FARM_SERVERS": pair})
        said = farm("submit", write(folder / "first.jsonl", entry(PROVED, 1)))
        down(home)
        (folder / "said.pickle").write_bytes(pickle.dumps(said))

    folder = made_once("first", make)
    return folder / "home", pickle.loads((folder / "said.pickle").read_bytes())


@pytest.fixture(scope="session")
def prepared(first_submit: tuple[Path, object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a database and a compiled core library, in which nothing runs."""
    home = copied(first_submit[0], tmp_path_factory.mktemp("prepared"))
    forget_power_cuts(home)
    return home


@pytest.fixture(scope="session")
def copy_home(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """How to get a home of one's own, ready to start quickly."""

    def copy() -> Path:
        return copied(prepared, tmp_path_factory.mktemp("copy"))

    return copy


@pytest.fixture(scope="session")
def farm(copy_home: Callable[[], Path], pair: str) -> Iterator[Command]:
    """The `farm` command with servers and a worker of its own, for the whole session."""
    home = copy_home()
    yield Command({"FARM_HOME": str(home), "FARM_SERVERS": pair, "FARM_IDLE_MINUTES": "30"})
    down(home)


@pytest.fixture
def own_farm(copy_home: Callable[[], Path], pair: str) -> Iterator[Command]:
    """The `farm` command with servers and a worker that the test may kill; leases are short."""
    home = copy_home()
    yield Command(
        {
            "FARM_HOME": str(home),
            "FARM_SERVERS": pair,
            "FARM_LEASE_SECONDS": "2",
            "FARM_CONCURRENCY": "2",
        }
    )
    down(home)


@pytest.fixture
def quiet(database: Engine, redis_database: tuple[str, redis.Redis], prepared: Path) -> Quiet:
    """A farm without a worker, in a database and a Redis database of the test's own."""
    return _quiet(database, redis_database, prepared)


@pytest.fixture(scope="module")
def shared_quiet(
    new_database: Callable[[], AbstractContextManager[Engine]],
    shared_redis_database: tuple[str, redis.Redis],
    prepared: Path,
) -> Iterator[Quiet]:
    """A farm without a worker, in a database and a Redis database of a module's own."""
    with new_database() as database:
        yield _quiet(database, shared_redis_database, prepared)


def _quiet(database: Engine, redis_database: tuple[str, redis.Redis], prepared: Path) -> Quiet:
    broker_url, client = redis_database
    Store(database).register([CORE])
    settings = {
        "FARM_HOME": str(prepared),
        "FARM_DATABASE_URL": database.url.render_as_string(hide_password=False),
        "FARM_BROKER_URL": broker_url,
        "FARM_LEASE_SECONDS": str(2 * PATIENCE),
        "FARM_CONCURRENCY": "2",
        "FARM_ISOLATION": "rlimit",  # whatever there is: a worker would end where there are no namespaces
    }
    return Quiet(Command(settings), database, client)
