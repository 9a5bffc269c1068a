"""The role that reads the views of the schema `report`, for dashboards, and nothing else."""

from __future__ import annotations

from typing import Any

from psycopg import Connection, errors, sql
from sqlalchemy import Engine

from farm.errors import FarmError
from farm.store.postgres import reaching
from farm.store.rights import TRAITS, Role

#: The role's name; it is the same in every database of a server.
ROLE = str(Role.READER)

_TRAITS = TRAITS[Role.READER]


def make_reader(engine: Engine, *, password: str | None) -> bool:
    """Create the role `farm_reader`, let it read the views, and return whether it is new.

    A second call repairs an administrator's changes, and without a ``password`` leaves the password as it
    is. The password leaves this process only as its SCRAM verifier, so no log of PostgreSQL contains it.
    Raises `FarmError` where the user of the farm's database may not create roles, and `ServerDown`.
    """
    with reaching(engine), engine.begin() as connection:
        driver: Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
        try:
            return _make(driver, password)
        except errors.InsufficientPrivilege as error:
            raise FarmError(
                f"PostgreSQL did not let {driver.info.user} make the role {ROLE}: "
                f"{error.diag.message_primary}; have an administrator create it "
                "as docs/reference/views.md says, "
                "then run again: farm db reader"
            ) from error


def _make(driver: Connection[Any], password: str | None) -> bool:
    found = driver.execute("SELECT FROM pg_roles WHERE rolname = %s", [ROLE]).fetchone()
    role = sql.Identifier(ROLE)
    if found is None:
        words = "CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION CONNECTION LIMIT {}"
        driver.execute(sql.SQL(words).format(role, sql.Literal(_TRAITS.connections)))
    for name, value in _TRAITS.settings.items():  # a role may change its own
        setting = sql.SQL("ALTER ROLE {} SET {} = {}")
        driver.execute(setting.format(role, sql.Identifier(name), sql.Literal(value)))
    if password is not None:
        verifier = driver.pgconn.encrypt_password(password.encode(), ROLE.encode(), b"scram-sha-256")
        set_password = sql.SQL("ALTER ROLE {} PASSWORD {}")
        driver.execute(set_password.format(role, sql.Literal(verifier.decode())))
    database = sql.Identifier(driver.info.dbname)
    driver.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, role))
    driver.execute(sql.SQL("GRANT USAGE ON SCHEMA report TO {}").format(role))
    driver.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA report TO {}").format(role))
    return found is None
