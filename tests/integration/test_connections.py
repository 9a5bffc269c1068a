"""What a connection of the farm makes others wait for, and what PostgreSQL knows about it."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from sqlalchemy import Connection, Engine, text

from farm.errors import CutOff, ServerDown
from farm.store import postgres
from farm.store.transitions import Store
from tests.over_tcp import over_tcp
from tests.processes import eventually

SETTINGS = ("idle_in_transaction_session_timeout", "tcp_keepalives_idle", "application_name")


def by_sqlalchemy(connection: Connection) -> None:
    connection.execute(text("SELECT 1"))


def by_the_driver(connection: Connection) -> None:
    connection.connection.driver_connection.execute("SELECT 1")  # type: ignore[union-attr]


@pytest.mark.parametrize("ask", [by_sqlalchemy, by_the_driver])
def test_a_transaction_that_slept_for_too_long_is_cut_off_and_changed_nothing(
    database: Engine, ask: Callable[[Connection], None]
) -> None:
    store = Store(database)
    with pytest.raises(CutOff), store.transaction() as connection:
        connection.execute(text("INSERT INTO pruned_runs VALUES ('r')"))
        pid = connection.scalar(text("SELECT pg_backend_pid()"))
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '50ms'"))
        eventually(lambda: not _is_there(database, pid))
        ask(connection)
    with store.transaction() as connection:
        assert connection.scalar(text("SELECT count(*) FROM pruned_runs")) == 0


def _is_there(database: Engine, pid: int) -> bool:
    with database.connect() as connection:
        return bool(
            connection.scalar(text("SELECT true FROM pg_stat_activity WHERE pid = :pid"), {"pid": pid})
        )


def test_a_connection_that_is_lost_outside_of_a_change_is_no_reason_to_begin_again(database: Engine) -> None:
    with pytest.raises(ServerDown) as lost, postgres.reaching(database), database.connect() as connection:
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert not isinstance(lost.value, CutOff)


#: How a server or a pooler says that it ends a connection.
_ENDED = b"SFATAL\0C08P01\0Mserver conn crashed?\0\0"
_ERROR = b"E" + (len(_ENDED) + 4).to_bytes(4, "big") + _ENDED


def through_sqlalchemy(engine: Engine) -> None:
    with engine.begin() as connection:
        by_sqlalchemy(connection)


def through_the_driver(engine: Engine) -> None:
    with psycopg.connect(**postgres.driver_arguments(engine)) as connection:
        connection.execute("SELECT 1")


def one_by_one(engine: Engine) -> None:
    with postgres.single(engine) as cursor:
        cursor.execute("SELECT 1")


@pytest.mark.parametrize("ask", [through_sqlalchemy, through_the_driver, one_by_one])
@pytest.mark.parametrize("asked", [b"BEGIN", b"SELECT 1"])
@pytest.mark.parametrize(
    "ends",
    [b"", _ERROR, 2 * _ERROR, b"C\0\0\0\x0aBEGIN\0" + _ERROR, 2 * _ERROR + b"Z\0\0\0\x05I"],
    ids=["silently", "an error", "two errors", "an answer and an error", "two errors and open"],
)
def test_a_connection_that_ends_in_place_of_an_answer_is_a_server_that_is_down(
    database: Engine, ask: Callable[[Engine], None], ends: bytes, asked: bytes
) -> None:
    with over_tcp(database, broken_by=asked, ends=ends) as url:
        engine = postgres.connect(url, application="farm-test", works=True)
        with pytest.raises(ServerDown), postgres.reaching(engine):
            ask(engine)
        engine.dispose()


def test_postgresql_ends_what_sleeps_and_knows_whose_it_is(
    database: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "élise" * 20)
    engine = postgres.connect(
        database.url.render_as_string(hide_password=False), application=postgres.signed("farm")
    )
    with engine.connect() as connection:
        timeout, _, name = (connection.scalar(text(f"SHOW {setting}")) for setting in SETTINGS)
    engine.dispose()
    assert timeout == "5min"
    assert name.startswith("farm ?lise?lise")
    assert len(name) == 63
