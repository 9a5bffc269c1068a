"""What a connection of the farm makes others wait for, and what PostgreSQL knows about it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Connection, Engine, text

from farm.errors import CutOff, ServerDown
from farm.store import postgres
from farm.store.transitions import Store
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
