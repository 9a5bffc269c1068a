"""The way to PostgreSQL: one engine per process, its errors in the farm's words, and the schema's version."""

from __future__ import annotations

import getpass
import os
import platform
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from importlib import resources
from typing import Any, cast

import psycopg
from psycopg import Cursor
from psycopg.rows import DictRow, dict_row
from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy import Engine as Engine  # named by modules outside the store, which do not import SQLAlchemy
from sqlalchemy.exc import (
    DBAPIError,
    DisconnectionError,
    InterfaceError,
    OperationalError,
)
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from farm import place
from farm.errors import CutOff, DatabaseVersion, FarmError, RoleRefused, ServerDown
from farm.revision import SCHEMA as SCHEMA
from farm.store.address import address

#: The revision that an empty database gets first; a database of an older one is of no release.
_FIRST = "0014"

_MIGRATIONS = "farm_migrations"

# PostgreSQL's class "program_limit_exceeded": the driver counts these as an outage, but a retry
# does not help. https://www.postgresql.org/docs/current/errcodes-appendix.html
_LIMIT_EXCEEDED = "54"
# Its "lock_not_available" and "query_canceled": a statement waited or ran for too long.
_OUT_OF_TIME = ("55P03", "57014")
# Its "deadlock_detected": it rolled this transaction back so that another one could go on.
_DEADLOCK = "40P01"
# How often a migration may lose a deadlock against workers, whose transactions take milliseconds.
_MIGRATIONS_TRIED = 5
# Its "insufficient_privilege": a grant, or one of the farm's own triggers, does not let this role do it.
_REFUSED = "42501"
# Its "idle_in_transaction_session_timeout": the process did nothing for too long, such as one that slept.
_SLEPT = "25P03"
# Its "read_only_sql_transaction": the server is being restored, or is a standby.
_READ_ONLY = "25006"

_CONNECT_SECONDS = 10
#: How soon a connection whose other end is gone without a word ends: a machine that lost its power or its
#: network sends nothing. See the keywords of libpq; over a socket of this machine they mean nothing.
_TCP = {
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds
}

# libpq gives an error at the start of a connection no code, only words.
_REFUSED_PASSWORD = re.compile('password authentication failed for user "(.*)"')


def connect(
    url: str, *, application: str, connections: int = 2, works: bool = False, plans_once: bool = False
) -> Engine:
    """Return an engine for the store; nothing is connected yet.

    ``application`` is shown in `pg_stat_activity`; ``connections`` limits the threads that use it at once.
    Connections are pinged before each use. With `works`, for workers and services, which retry, they are
    pinged only after 5 s idle, and PostgreSQL plans no sequential scans: a plan made while a table was small,
    or unknown, can last for minutes. With `plans_once` PostgreSQL plans each statement once for all values:
    to plan the query for one item takes as long as to run it.

    Behind a pooler that keeps no sessions (PgBouncer in transaction mode) nothing is prepared, and each
    transaction gets the settings of its own.
    """
    engine = create_engine(
        address(url),
        pool_size=connections,
        max_overflow=0,
        # The one that was used last is used next: a worker opens no more than it needs.
        pool_use_lifo=True,
        pool_pre_ping=not works,
        connect_args={"application_name": application, "connect_timeout": _CONNECT_SECONDS, **_TCP},
    )
    settings = [*_AWAKE, *(_LOOK_UP if works else ()), *(_PLAN_ONCE if plans_once else ())]
    event.listen(engine, "connect", partial(_begin_session, settings))
    event.listen(engine, "begin", _begin_transaction)
    if works:
        event.listen(engine, "checkin", _note_use)
        event.listen(engine, "checkout", _ping_when_idle)
    return engine


def signed(application: str) -> str:
    """Return a name for `pg_stat_activity` with the user and the machine of this process.

    Workers have none: queries of all releases find them by `farm-worker`.
    """
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = str(os.getuid())
    name = f"{application} {user}@{platform.node()}".encode("ascii", "replace")
    return name[:_NAME_BYTES].decode()


def driver_arguments(engine: Engine) -> dict[str, Any]:
    """Return the driver's arguments to connect as the engine does, for a process without SQLAlchemy.

    Such a process runs few statements, so it prepares none, which a pooler might not keep.
    """
    _, arguments = engine.dialect.create_connect_args(engine.url)
    # SQLAlchemy's own conversions of types stay here.
    theirs = {name: value for name, value in arguments.items() if name != "context"}
    ours = {
        "application_name": signed("farm-export"),
        "connect_timeout": _CONNECT_SECONDS,
        "prepare_threshold": None,
    }
    return {**theirs, **ours, **_TCP}


# How soon PostgreSQL ends a transaction whose process does nothing, such as one on a laptop that sleeps, and
# a connection whose machine is gone: their locks hold up migrations. Sockets ignore the keepalives.
_AWAKE = (
    "idle_in_transaction_session_timeout = '5min'",
    "tcp_keepalives_idle = 60",
    "tcp_keepalives_interval = 10",
    "tcp_keepalives_count = 6",
)
# PostgreSQL cuts longer names.
_NAME_BYTES = 63

# Without sequential scans the estimated costs are so high that PostgreSQL would compile each statement.
_LOOK_UP = ("enable_seqscan = off", "jit = off")
_PLAN_ONCE = ("plan_cache_mode = force_generic_plan",)
# Settings that each transaction begins with, where a pooler keeps none for the session.
_LOCAL = "farm_local_settings"


def _begin_session(settings: Sequence[str], connection: Any, record: ConnectionPoolEntry) -> None:
    if _is_pooled(connection):
        connection.prepare_threshold = None
        record.info[_LOCAL] = "; ".join(f"SET LOCAL {setting}" for setting in settings)
    else:
        connection.execute("; ".join(f"SET {setting}" for setting in settings))
    connection.commit()


def _is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Whether a pooler is on the way, whose sessions may change from transaction to transaction.

    A pooler gives each client a number of its own for cancelling, at random; a server gives its process id.
    """
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row is not None and row[0] != connection.info.backend_pid


def _begin_transaction(connection: Connection) -> None:
    _set_locally(connection.connection)


def _set_locally(pooled: PoolProxiedConnection) -> None:
    if local := pooled.info.get(_LOCAL):
        driver: psycopg.Connection[Any] = pooled.driver_connection  # type: ignore[assignment]
        driver.execute(local)


#: Seconds of idleness after which a connection is pinged before its next use.
_IDLE_SECONDS = 5.0


def _note_use(_connection: object, record: ConnectionPoolEntry) -> None:
    record.info["used_at"] = time.monotonic()


def _ping_when_idle(connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
    """Ping an idle connection, and have the pool replace it when PostgreSQL closed it.

    A ping before every use would double the round trips and the transactions.
    """
    used_at = record.info.get("used_at")
    if used_at is None or time.monotonic() - used_at < _IDLE_SECONDS:
        return
    try:
        connection.execute("")
        connection.rollback()
    except psycopg.Error as error:
        raise DisconnectionError from error


@contextmanager
def reaching(engine: Engine) -> Iterator[None]:
    """Raise `ServerDown` when PostgreSQL cannot be reached or goes away inside the block.

    Raises `RoleRefused` where it lacks a right.
    """
    try:
        yield
    except (OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError) as error:
        if _is_too_much(error):
            raise
        raise _down(engine, error) from error
    except (
        DBAPIError,
        psycopg.InternalError,
        psycopg.errors.ReadOnlySqlTransaction,
        psycopg.errors.InsufficientPrivilege,
        psycopg.errors.IdleInTransactionSessionTimeout,
    ) as error:
        if _sqlstate(error) == _SLEPT:
            raise _down(engine, error) from error
        if _sqlstate(error) == _REFUSED:
            raise _refused(engine, error) from error
        if _sqlstate(error) == _READ_ONLY:
            engine.dispose()  # the address may lead to the primary by now
            raise _only_reads(engine) from error
        if getattr(error, "connection_invalidated", False) or _is_of_the_driver(error):
            raise _down(engine, error) from error
        raise


@contextmanager
def before_commit(connection: Connection) -> Iterator[None]:
    """Raise `CutOff` when the connection is lost inside the block, which is in a transaction."""
    try:
        with reaching(connection.engine):
            yield
    except CutOff:
        raise
    except ServerDown as error:
        if error.__cause__ is not None and _sqlstate(error.__cause__) == _READ_ONLY:
            raise  # the connection is whole, and the same would happen again
        connection.invalidate()  # else its rollback would fail, too
        raise CutOff(f"PostgreSQL ended the connection: {_cause(error.__cause__ or error)}") from error


def _sqlstate(error: BaseException) -> str:
    return getattr(getattr(error, "orig", error), "sqlstate", None) or ""


def _is_of_the_driver(error: BaseException) -> bool:
    """Whether the driver could not read an answer, such as that of a pooler whose server was killed."""
    return isinstance(getattr(error, "orig", error), psycopg.InternalError) and not _sqlstate(error)


def _is_too_much(error: Exception) -> bool:
    """Whether PostgreSQL answered that a statement exceeds its limits."""
    return _sqlstate(error).startswith(_LIMIT_EXCEEDED)


@contextmanager
def autocommitting(engine: Engine) -> Iterator[psycopg.Connection[Any]]:
    """Give a driver's connection on which each statement is a transaction; raises as `reaching` does."""
    with reaching(engine), engine.connect() as connection:
        pooled = connection.execution_options(isolation_level="AUTOCOMMIT").connection
        yield cast("psycopg.Connection[Any]", pooled.driver_connection)


def streamed(
    engine: Engine, statement: str, values: Mapping[str, object], *, rows: int
) -> Generator[tuple[Any, ...]]:
    """Yield the rows of a query of a whole run, `rows` at a time; raises as `reaching` does."""
    with reaching(engine), engine.connect() as connection:
        driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
        # Such a query returns many rows but is simple: compiling does not pay.
        driver.execute("SET LOCAL jit = off")
        stream = driver.cursor(binary=True).stream(statement, values, size=rows)
        # A caller that stops in the middle ends the query here, before the connection returns to the pool.
        with closing(cast("Generator[tuple[Any, ...]]", stream)) as found:
            yield from found


#: In the FROM of a statement, it commits without waiting for the disk: for writes that a crash of PostgreSQL
#: may lose, because they are repeated.
UNHURRIED = "(SELECT set_config('synchronous_commit', 'off', true)) AS unhurried"


@contextmanager
def single(engine: Engine) -> Iterator[Cursor[DictRow]]:
    """Give a cursor whose statements are each a transaction of their own; raises as `reaching` does.

    For the most frequent statements: one round trip instead of three, and without SQLAlchemy, which takes
    most of a statement's processor time in this process. Behind a pooler that keeps no settings, all
    statements of the block are one transaction.
    """
    with reaching(engine), closing(engine.raw_connection()) as pooled:
        connection: psycopg.Connection[Any] = pooled.driver_connection  # type: ignore[assignment]
        connection.autocommit = True
        try:
            with _with_settings(pooled, connection), connection.cursor(row_factory=dict_row) as cursor:
                yield cursor
        finally:
            if connection.closed:
                pooled.invalidate()
                engine.dispose()  # the others will not work either
            else:
                connection.autocommit = False


@contextmanager
def _with_settings(pooled: PoolProxiedConnection, connection: psycopg.Connection[Any]) -> Iterator[None]:
    if not pooled.info.get(_LOCAL):
        yield
        return
    with connection.transaction():
        _set_locally(pooled)
        yield


@contextmanager
def together(connection: Connection) -> Iterator[psycopg.Connection[Any]]:
    """Give the driver inside a transaction, which sends statements together until one's rows are fetched.

    See https://www.postgresql.org/docs/current/libpq-pipeline-mode.html.
    """
    driver: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
    with driver.pipeline():
        yield driver


@contextmanager
def hashing(connection: Connection) -> Iterator[None]:
    """Use hash joins in the queries of the block, which is inside a transaction.

    The tables' statistics do not cover a run that is being loaded. Where a table seems empty, the planner
    chooses nested loops, which scan the other table for each row. Compiling is off as well: with nested loops
    disabled the estimated costs are so high that PostgreSQL would compile most queries.
    """
    connection.execute(text("SET LOCAL enable_nestloop = off"))
    connection.execute(text("SET LOCAL jit = off"))
    yield
    connection.execute(text("SET LOCAL enable_nestloop = on"))


def _refused(engine: Engine, error: Exception) -> RoleRefused:
    diagnosis = cast("psycopg.Error", getattr(error, "orig", error)).diag
    hint = f" {diagnosis.message_hint}" if diagnosis.message_hint else ""
    return RoleRefused(str(engine.url.username), f"{diagnosis.message_primary}.{hint}")


def _only_reads(engine: Engine) -> ServerDown:
    where = engine.url.render_as_string(hide_password=True)
    return ServerDown(
        f"PostgreSQL at {where} can only be read: it is being restored, or it is a standby; "
        "wait until it is restored, promote it, or name the primary in FARM_DATABASE_URL"
    )


def _down(engine: Engine, error: Exception) -> ServerDown:
    where = engine.url.render_as_string(hide_password=True)
    cause = getattr(error, "orig", error)
    if _sqlstate(error) == _SLEPT:
        return ServerDown(
            f"PostgreSQL ended a transaction in which nothing happened for long ({_cause(error)})"
        )
    if refused := _REFUSED_PASSWORD.search(str(cause)):
        return ServerDown(
            f"PostgreSQL at {where} refused the password of `{refused[1]}`; correct FARM_DATABASE_URL"
        )
    host = engine.url.host or str(engine.url.query.get("host", ""))
    return ServerDown(
        f"PostgreSQL does not answer at {where}: {_cause(error)}; "
        f"{place.here().start(place.POSTGRES, host)} or correct FARM_DATABASE_URL, and try again"
    )


def _cause(error: BaseException) -> str:
    """Return the first line of the driver's message."""
    cause = getattr(error, "orig", error)
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]


def revision(connection: Connection) -> str | None:
    """Return the revision the database is at, None when it was never set up."""
    found = connection.scalar(text("SELECT to_regclass('alembic_version')::text"))
    return None if found is None else connection.scalar(text("SELECT version_num FROM alembic_version"))


def require_schema(engine: Engine) -> None:
    """Raise `DatabaseVersion` unless this farm can use the database.

    It can use the revision that it knows, and newer ones that took away nothing that it needs.
    """
    with reaching(engine), engine.connect() as connection:
        at = revision(connection)
        if at == SCHEMA:
            return
        if at is None:
            raise DatabaseVersion("the database is empty; run: farm db upgrade")
        _require_released(at)
        if at < SCHEMA:
            raise DatabaseVersion(
                f"the database is at revision {at}, older than this farm's {SCHEMA}; run: farm db upgrade"
            )
        _require_compatible(connection, at)


def _require_released(at: str) -> None:
    if at < _FIRST:
        raise DatabaseVersion(
            f"the database is at revision {at}, of a farm before {_FIRST}, which no release upgrades; "
            "name an empty database in FARM_DATABASE_URL and submit again"
        )


def _require_compatible(connection: Connection, at: str) -> None:
    """Raise `DatabaseVersion` where a newer database takes no farm of this revision any more."""
    oldest = connection.scalar(text("SELECT oldest FROM compatibility"))
    if oldest > SCHEMA:
        raise DatabaseVersion(
            f"the database is at revision {at}, which needs a farm of revision {oldest} or newer, "
            f"and this farm is of {SCHEMA}; install a newer farm"
        )


def upgrade(url: str, *, lock_seconds: int = 10) -> tuple[str | None, str]:
    """Bring the database to this farm's revision and return the revisions before and after.

    One that is newer, and that this farm can use, stays as it is. Safe to start on many nodes at once: an
    advisory lock lets one work while the others wait and then find nothing to do. The migration begins again
    after a deadlock with a worker. A table that is not free within `lock_seconds` ends it, and nothing was
    changed. Raises `FarmError` then, `ServerDown`, and `DatabaseVersion` when the database is too new for
    this farm, or of no release.
    """
    engine = connect(url, application=signed("farm-db"))
    try:
        with reaching(engine), engine.connect() as connection:
            before = revision(connection)
        if before is not None:
            _require_released(before)
            if before >= SCHEMA:
                require_schema(engine)
                return before, before
        return before, _migrated(engine, lock_seconds)
    finally:
        engine.dispose()


def _migrated(engine: Engine, lock_seconds: int) -> str:
    """Migrate to this farm's revision and return it."""
    from alembic import command  # costs 0.7 s to import: only who has something to migrate pays
    from alembic.config import Config

    config = Config(attributes={"lock_seconds": lock_seconds})
    config.set_main_option("script_location", str(resources.files(_MIGRATIONS)))
    config.attributes["engine"] = engine
    with reaching(engine), _in_time(engine):
        _despite_deadlocks(lambda: command.upgrade(config, "head"))
    return SCHEMA


def _despite_deadlocks(migrate: Callable[[], None]) -> None:
    """Migrate, and repeat that when PostgreSQL rolled it back to end a deadlock with a worker."""
    for _ in range(_MIGRATIONS_TRIED - 1):
        try:
            return migrate()
        except OperationalError as error:
            if _sqlstate(error) != _DEADLOCK:
                raise
    return migrate()


# Those whose transaction began first, first; the migration itself has ended.
_HOLDERS = text("""
    SELECT pid, coalesce(usename, backend_type) AS of, application_name, host(client_addr) AS address, state,
           extract(epoch FROM now() - xact_start)::bigint AS seconds
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND EXISTS (
        SELECT FROM pg_locks JOIN pg_class ON pg_class.oid = relation
        WHERE pg_locks.pid = pg_stat_activity.pid AND granted AND relkind = 'r' AND relpersistence = 'p'
          AND relnamespace <> 'pg_catalog'::regnamespace)
    ORDER BY xact_start NULLS FIRST LIMIT 3
""")


def _holders(engine: Engine) -> str:
    """Return the processes that hold locks of tables, and how to end the first one; "" for none."""
    with engine.connect() as connection:
        found = connection.execute(_HOLDERS).all()
    if not found:
        return ""
    who = [
        f"process {each.pid} of {each.of} ({each.application_name}"
        f"{f', from {each.address}' if each.address else ''}"
        f"{f', {each.state} since {each.seconds} s' if each.seconds is not None else ''})"
        for each in found
    ]
    return f"; held by {', '.join(who)}, which this ends: SELECT pg_terminate_backend({found[0].pid})"


@contextmanager
def _in_time(engine: Engine) -> Iterator[None]:
    """Say in the farm's words that a migration gave up rather than hold others up."""
    try:
        yield
    except OperationalError as error:
        if _sqlstate(error) not in (*_OUT_OF_TIME, _DEADLOCK):
            raise
        why = str(error.orig).strip().splitlines()[0]
        raise FarmError(
            f"the migration gave up and changed nothing: another transaction locks a table ({why}"
            f"{_holders(engine)}); stop workers and submits, or wait for them, then run again: "
            "farm db upgrade"
        ) from error
