"""Real servers for the tests: a PostgreSQL and a Valkey (or Redis) of their own, gone at the end."""

from __future__ import annotations

import os
import shutil
import signal
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import redis
from sqlalchemy import URL, Engine, create_engine, make_url, text

from farm.embedded import Servers, down, ensure
from farm.redis_client import redis_url
from farm.store import postgres
from tests.made_once import MadeOnce, copied, forget_power_cuts
from tests.pooler import pooling
from tests.processes import PATIENCE


def pytest_configure() -> None:
    """Heed interrupts: what a shell runs in the background ignores them, so would what the tests start.

    An example of a property has no deadline: beside other tests any may take longer than usual. There are few
    of them here; ``make fuzz`` tries more.
    """
    examples = int(os.environ.get("FARM_TEST_EXAMPLES", "25"))
    hypothesis.settings.register_profile("patient", deadline=None, max_examples=examples)
    hypothesis.settings.load_profile("patient")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


#: `make test` runs the tests of these folders but those marked `whole`, and of other folders those marked
#: `newcomer`.
_QUICK = ("tests/unit/", "tests/integration/", "tests/migration/")
_left_out = pytest.StashKey[int]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give a slow machine more time for a test, and mark as `whole` what `make test` leaves out."""
    limit = pytest.mark.timeout(float(config.getini("timeout")) * PATIENCE)
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(limit)
        if not item.nodeid.startswith(_QUICK) and item.get_closest_marker("newcomer") is None:
            item.add_marker(pytest.mark.whole)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take from a process of the run how many tests it left out: each one collects all."""
    node.config.stash[_left_out] = node.workeroutput.get("left_out", 0)


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count the tests that ``make test`` leaves out, except the long ones."""
    for item in items:
        is_quick = "not whole" in item.config.getoption("markexpr")
        if is_quick and item.get_closest_marker("whole") and not item.get_closest_marker("long"):
            item.config.stash[_left_out] = item.config.stash.get(_left_out, 0) + 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the count over, in a process of a run with several."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(_left_out, 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which command runs what is left out."""
    if count := config.stash.get(_left_out, 0):
        terminalreporter.write_line(f"{count} tests were left out; `make test-all` runs them too")


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """How to get a folder that one of the processes of this run makes for all of them."""
    base = tmp_path_factory.getbasetemp()
    return MadeOnce(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


@pytest.fixture(scope="session")
def pair() -> str:
    """The server pair to test, as FARM_TEST_SERVERS says: `wheels`, or `system` for the distribution's."""
    return os.environ.get("FARM_TEST_SERVERS", "wheels")


@pytest.fixture(scope="session")
def servers(pair: str, made_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """A server pair without a worker, and without tables, for the whole session."""
    home = tmp_path_factory.mktemp("servers")
    copied(made_data, home)
    yield ensure(home, idle_minutes=600, servers=pair, worker=False)
    down(home)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home of the test's own in which nothing has started; whatever does is gone after the test."""
    home = tmp_path / "home"
    yield home
    down(home)


@pytest.fixture(scope="session")
def made_data(pair: str, made_once: MadeOnce) -> Path:
    """The data folder that a first start made."""

    def make(home: Path) -> None:
        ensure(home, servers=pair, worker=False)
        down(home)
        forget_power_cuts(home)

    return made_once("made", make) / "postgres"


@pytest.fixture
def settled(home: Path, made_data: Path) -> Path:
    """A home whose first start is over: a copy, because a first start takes a second."""
    shutil.copytree(made_data, home / "postgres")
    return home


def _create_database(servers: Servers, name: str, *, template: str) -> URL:
    engine = create_engine(servers.database_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy'))
    engine.dispose()
    return make_url(servers.database_url).set(database=name)


@pytest.fixture
def empty_database_url(servers: Servers) -> str:
    """A database of the test's own without tables."""
    url = _create_database(servers, f"empty_{uuid.uuid4().hex}", template="template0")
    return url.render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def template(servers: Servers) -> str:
    """The name of a database with the farm's tables, which others are copied from."""
    url = _create_database(servers, "farm_template", template="template0")
    postgres.upgrade(url.render_as_string(hide_password=False))
    return "farm_template"


@pytest.fixture(scope="session")
def leading(servers: Servers) -> Iterator[Callable[[URL], str]]:
    """How a database is reached: directly, or through PgBouncer where FARM_TEST_POOLER is set."""
    if "FARM_TEST_POOLER" not in os.environ:
        yield lambda url: url.render_as_string(hide_password=False)
        return
    with pooling(make_url(servers.database_url), size=16) as pooler:
        yield pooler.url


@pytest.fixture(scope="session")
def new_database(
    servers: Servers, template: str, leading: Callable[[URL], str]
) -> Callable[[], AbstractContextManager[Engine]]:
    """How to get a database with the farm's tables and nothing in them."""

    @contextmanager
    def new() -> Iterator[Engine]:
        url = leading(_create_database(servers, f"test_{uuid.uuid4().hex}", template=template))
        engine = postgres.connect(url, application="farm-test", connections=16)
        yield engine
        engine.dispose()

    return new


@pytest.fixture
def database(new_database: Callable[[], AbstractContextManager[Engine]]) -> Iterator[Engine]:
    """A database of the test's own with the farm's tables and nothing in them."""
    with new_database() as engine:
        yield engine


@contextmanager
def _redis_database(servers: Servers, number: int) -> Iterator[tuple[str, redis.Redis]]:
    url = servers.broker_url.replace("virtual_host=0", f"virtual_host={number}")
    assert url != servers.broker_url
    with redis.Redis.from_url(redis_url(url)) as client:
        client.flushdb()
        yield url, client


@pytest.fixture
def redis_database(servers: Servers) -> Iterator[tuple[str, redis.Redis]]:
    """Celery's URL of an empty Redis database of the test's own, and a client of it."""
    with _redis_database(servers, 7) as found:
        yield found


@pytest.fixture(scope="module")
def shared_redis_database(servers: Servers) -> Iterator[tuple[str, redis.Redis]]:
    """The same of a module's own."""
    with _redis_database(servers, 8) as found:
        yield found
