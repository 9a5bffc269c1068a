"""Makes the roles of `farm.store.rights`, gives them their rights, and changes their passwords."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, errors, sql
from sqlalchemy import Connection as SQLConnection

from farm.errors import FarmError
from farm.store.postgres import SCHEMA, connect, reaching, signed
from farm.store.rights import FUNCTIONS, OWNED, SEQUENCES, TABLES, TRAITS, VIEWS, Rights, Role

# Attributes that no role of the farm has, each with the clause of ALTER ROLE that removes it.
_ATTRIBUTES = {
    "rolsuper": "NOSUPERUSER",
    "rolcreatedb": "NOCREATEDB",
    "rolcreaterole": "NOCREATEROLE",
    "rolreplication": "NOREPLICATION",
    "rolbypassrls": "NOBYPASSRLS",
}
_OBJECTS = (
    ("TABLE", "{schema}", TABLES),
    ("TABLE", "report", VIEWS),
    ("SEQUENCE", "{schema}", SEQUENCES),
    ("FUNCTION", "{schema}", FUNCTIONS),
)

_FOUND = f"""
    SELECT {", ".join(_ATTRIBUTES)}, ARRAY(
        SELECT roleid::regrole::text FROM pg_auth_members WHERE member = pg_roles.oid ORDER BY 1
    ) AS groups, ARRAY(
        SELECT relname::text FROM pg_class WHERE relowner = pg_roles.oid AND relpersistence = 'p'
        UNION ALL SELECT proname::text FROM pg_proc WHERE proowner = pg_roles.oid
        UNION ALL SELECT nspname::text FROM pg_namespace WHERE nspowner = pg_roles.oid
    ) AS owns
    FROM pg_roles WHERE rolname = %s
"""
# The database and the schema come first: a new owner of a table must have the right to create there.
_OWNERS = """
    SELECT datdba::regrole::text, format('ALTER DATABASE %%I OWNER TO {owner}', datname)
    FROM pg_database WHERE datname = current_database()
    UNION ALL
    SELECT nspowner::regrole::text, 'ALTER SCHEMA report OWNER TO {owner}'
    FROM pg_namespace WHERE nspname = 'report'
    UNION ALL
    SELECT relowner::regrole::text, format('ALTER TABLE %%s OWNER TO {owner}', pg_class.oid::regclass)
    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relkind IN ('r', 'v') AND (nspname = 'report' OR nspname = %(schema)s AND relname = ANY(%(tables)s))
    UNION ALL
    SELECT proowner::regrole::text, format('ALTER FUNCTION %%s OWNER TO {owner}', pg_proc.oid::regprocedure)
    FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace
    WHERE nspname = %(schema)s AND proname = ANY(%(functions)s)
"""
_IS_OWNED = "SELECT datdba::regrole::text = %s FROM pg_database WHERE datname = current_database()"
_ME = """
    SELECT oid::regrole::text, rolsuper, rolcreaterole, rolcreatedb FROM pg_roles
    WHERE rolname = current_user
"""
_IS_SUPER = "SELECT rolsuper FROM pg_roles WHERE oid = %s::regrole"
# Since PostgreSQL 16 CREATEROLE is a right over the roles alone of which its holder is an administrator.
_FOREIGN = """
    SELECT rolname::text FROM pg_roles
    WHERE rolname = ANY(%s) AND NOT pg_has_role(oid, 'MEMBER WITH ADMIN OPTION')
      AND current_setting('server_version_num')::int >= 160000
    ORDER BY rolname
"""
_IS_MEMBER = """
    SELECT EXISTS (
        SELECT FROM pg_auth_members JOIN pg_roles ON pg_roles.oid = member
        WHERE rolname = current_user AND roleid = %s::regrole
          AND (grantor = member OR current_setting('server_version_num')::int < 160000)
    )
"""
# An older PostgreSQL made the schema `public` a superuser's, in which everybody may create.
_UNFIT = """
    SELECT format('REVOKE CREATE ON SCHEMA %%I FROM PUBLIC, {others}', nspname) FROM pg_namespace
    WHERE nspname IN ('public', %(schema)s) AND EXISTS (
        SELECT FROM unnest(%(others)s::text[]) AS role WHERE has_schema_privilege(role, nspname, 'CREATE'))
    UNION ALL
    SELECT format('GRANT USAGE, CREATE ON SCHEMA %%I TO {owner}', nspname) FROM pg_namespace
    WHERE nspname = %(schema)s AND NOT pg_has_role(%(owner)s, nspowner, 'USAGE') AND NOT EXISTS (
        SELECT FROM aclexplode(nspacl)
        WHERE grantee = %(owner)s::regrole AND privilege_type = 'CREATE')
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """The result of `make_roles`: the new roles, the owners before, and whether the farm's tables exist."""

    new: frozenset[Role]
    owners_before: tuple[str, ...]
    has_tables: bool


def make_roles(admin_url: str, *, passwords: Mapping[Role, str], new_passwords: Mapping[Role, str]) -> Made:
    """Create missing roles, make `farm_owner` the owner of the farm's tables, and set all rights again.

    Roles get the password of `passwords`, and new ones without that get theirs of `new_passwords`; a password
    leaves this process only as its SCRAM verifier, so no log of PostgreSQL contains it. All is done, or
    nothing. Roles that owned the farm's tables become members of `farm_owner`, so that running parts go on.
    Raises `FarmError` for a role that has other rights and where the administrator may not do this, and
    `ServerDown`.
    """
    engine = connect(admin_url, application=signed("farm-db"))
    try:
        with reaching(engine), engine.begin() as connection:
            driver: Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
            with _allowed(driver):
                return _made(driver, passwords, new_passwords)
    finally:
        engine.dispose()


@contextmanager
def _allowed(driver: Connection[Any]) -> Iterator[None]:
    try:
        yield
    except errors.LockNotAvailable as error:
        raise FarmError(
            "farm db roles gave up and changed nothing: another transaction locks a table; stop submits and "
            "migrations, or wait for them, then run it again"
        ) from error
    except errors.InsufficientPrivilege as error:
        raise FarmError(
            f"PostgreSQL did not let {driver.info.user} make the farm's roles: {error.diag.message_primary}; "
            "name an administrator with CREATEROLE and this database: "
            "farm db roles --admin-url postgresql://postgres@HOST/DATABASE"
        ) from error


def _made(driver: Connection[Any], passwords: Mapping[Role, str], new_passwords: Mapping[Role, str]) -> Made:
    driver.execute("SET LOCAL lock_timeout = '10s'")
    new = {role for role in Role if not _is_there(driver, role)}
    me, is_super = _administrator(driver, set(Role) - new)
    for role in Role:
        _make(driver, role, is_new=role in new)
        password = passwords.get(role) or (new_passwords[role] if role in new else None)
        if password is not None:
            _set_password(driver, role, password)
    for role in OWNED:
        driver.execute(f"GRANT {role} TO {Role.OWNER}")
    is_member = is_super or bool(_value(driver, _IS_MEMBER, Role.OWNER))
    if not is_member:  # to give something to a role one has to be its member
        driver.execute(f"GRANT {Role.OWNER} TO CURRENT_USER")
    before = _own(driver)
    _close_schemas(driver)
    driver.execute(f"SET LOCAL ROLE {Role.OWNER}")
    _set_rights_of_database(driver)
    has_tables = is_ready(driver)
    if has_tables:
        grant(driver)
    driver.execute("RESET ROLE")
    if not has_tables:  # nothing of the farm runs yet
        before -= {me}
    if not is_member and me not in before:
        driver.execute(f"REVOKE {Role.OWNER} FROM CURRENT_USER")
    return Made(new=frozenset(new), owners_before=tuple(sorted(before)), has_tables=has_tables)


def _administrator(driver: Connection[Any], existing: Collection[Role]) -> tuple[str, bool]:
    """Return the administrator's name, as SQL writes it, and whether it is a superuser.

    Raises `FarmError` where another administrator lacks a right, with the statements that give it.
    """
    ((me, is_super, may_create_roles, may_create_databases),) = driver.execute(_ME).fetchall()
    if is_super:
        return me, True
    lacking = [] if may_create_roles else [f"ALTER ROLE {me} CREATEROLE"]
    foreign = [role for (role,) in driver.execute(_FOREIGN, [sorted(existing)]).fetchall()]
    if foreign:
        lacking.append(f"GRANT {', '.join(foreign)} TO {me} WITH ADMIN OPTION")
    if not may_create_databases and not _value(driver, _IS_OWNED, Role.OWNER):
        lacking.append(f"ALTER ROLE {me} CREATEDB")
    lacking += _lacking_owners(driver, me)
    if lacking:
        raise FarmError(
            f"{me} lacks rights to make the farm's roles, so nothing was changed; have an administrator run "
            f"these, then farm db roles again: {'; '.join(lacking)}"
        )
    return me, False


def _lacking_owners(driver: Connection[Any], me: str) -> list[str]:
    """Return the statements that let an administrator give away what others own in the database."""
    found = dict[str, None]()
    for owner, change in _belongings(driver, new_owner=me):
        if owner != Role.OWNER and not _value(driver, "SELECT pg_has_role(%s::regrole, 'USAGE')", owner):
            # To be a member of a superuser would be too much.
            found[change if _value(driver, _IS_SUPER, owner) else f"GRANT {owner} TO {me}"] = None
    return list(found)


def _close_schemas(driver: Connection[Any]) -> None:
    """Let the owner, and no other role, create in the farm's schema and in `public`.

    Raises `FarmError` with what is left to do where the administrator may not do this.
    """
    for statement in _unfit(driver):
        with suppress(errors.InsufficientPrivilege), driver.transaction():
            driver.execute(statement)
    if left := _unfit(driver):
        raise FarmError(
            "a schema's rights are not those that the farm needs, so nothing was changed; have its owner run "
            f"these in the database, then farm db roles again: {'; '.join(left)}"
        )


def _unfit(driver: Connection[Any]) -> list[str]:
    values = {"schema": _schema(driver), "owner": Role.OWNER, "others": [*OWNED, "public"]}
    question = _UNFIT.format(owner=Role.OWNER, others=", ".join(OWNED))
    return [str(statement) for (statement,) in driver.execute(question, values).fetchall()]


def _value(driver: Connection[Any], question: str, *values: object) -> Any:
    row = driver.execute(question, values).fetchone()
    return None if row is None else row[0]


def _schema(driver: Connection[Any]) -> str:
    return str(
        _value(
            driver,
            "SELECT coalesce((SELECT relnamespace::regnamespace::text FROM pg_class "
            "WHERE oid = to_regclass('alembic_version')), 'public')",
        )
    )


def _is_there(driver: Connection[Any], role: Role) -> bool:
    """Return whether a role exists; raises `FarmError` where it has rights that no role of the farm needs."""
    row = driver.execute(_FOUND, [role]).fetchone()
    if row is None:
        return False
    *attributes, groups, owns = row
    remedies = [
        f"ALTER ROLE {role} {words}"
        for has, words in zip(attributes, _ATTRIBUTES.values(), strict=True)
        if has
    ]
    expected = OWNED if role is Role.OWNER else ()
    remedies += [f"REVOKE {group} FROM {role}" for group in groups if group not in expected]
    if owns and role is not Role.OWNER:
        remedies.append(f"REASSIGN OWNED BY {role} TO {Role.OWNER}")
    if remedies:
        raise FarmError(
            f"the role {role} exists and has rights that it must not have, so nothing was changed; have an "
            f"administrator run these, then farm db roles again: {'; '.join(remedies)}"
        )
    return True


def _make(driver: Connection[Any], role: Role, *, is_new: bool) -> None:
    traits = TRAITS[role]
    if is_new:
        driver.execute(f"CREATE ROLE {role} LOGIN INHERIT CONNECTION LIMIT {traits.connections}")
    for name, value in traits.settings.items():
        setting = sql.SQL("ALTER ROLE {} SET {} = {}")
        driver.execute(setting.format(sql.Identifier(role), sql.Identifier(name), sql.Literal(value)))


def _set_password(driver: Connection[Any], role: Role, password: str) -> None:
    verifier = driver.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256")
    driver.execute(
        sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(verifier.decode()))
    )


def _belongings(driver: Connection[Any], *, new_owner: str) -> list[tuple[str, str]]:
    """Return the owner of the database and of each thing of the farm, and the statement that changes it."""
    values = {
        "schema": _schema(driver),
        "tables": list(TABLES),
        "functions": [name.partition("(")[0] for name in FUNCTIONS],
    }
    return driver.execute(_OWNERS.format(owner=new_owner), values).fetchall()


def _own(driver: Connection[Any]) -> set[str]:
    """Make `farm_owner` the owner of the database and of its contents, and return the owners before.

    These become members of `farm_owner`; superusers need not, and are not returned.
    """
    before = set()
    for owner, change in _belongings(driver, new_owner=Role.OWNER):
        if owner != Role.OWNER:
            driver.execute(change)
            before.add(owner)
    left = {owner for owner in before if not _value(driver, _IS_SUPER, owner)}
    for owner in left:
        driver.execute(f"GRANT {Role.OWNER} TO {owner}")
    return left


def _set_rights_of_database(driver: Connection[Any]) -> None:
    database = sql.Identifier(driver.info.dbname)
    driver.execute(sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC").format(database))
    for role in OWNED:
        driver.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM {}").format(database, sql.Identifier(role)))
        also = ", TEMPORARY" if TRAITS[role].has_temporary_tables else ""
        words = f"GRANT CONNECT{also} ON DATABASE {{}} TO {role}"
        driver.execute(sql.SQL(words).format(database))


@contextmanager
def owning(connection: SQLConnection) -> Iterator[None]:
    """Give new objects of the block to `farm_owner`, if it owns the database, and set all rights after it."""
    driver: Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
    is_owned = bool(_value(driver, _IS_OWNED, Role.OWNER))
    if is_owned:
        driver.execute(f"SET LOCAL ROLE {Role.OWNER}")
    yield
    if is_owned:
        grant(driver)


def is_ready(driver: Connection[Any]) -> bool:
    """Return whether the database has the tables and functions that are granted."""
    if _value(driver, "SELECT to_regclass('alembic_version')") is None:
        return False
    at = _value(driver, "SELECT version_num FROM alembic_version")
    return at is not None and str(at) >= SCHEMA


def grant(driver: Connection[Any]) -> None:
    """Set the rights of all roles again, as the owner of the tables or an administrator."""
    schema, roles = _schema(driver), ", ".join(OWNED)
    for kind in ("TABLES", "SEQUENCES", "FUNCTIONS"):
        for place in (schema, "report"):
            driver.execute(f"REVOKE ALL ON ALL {kind} IN SCHEMA {place} FROM PUBLIC, {roles}")
    driver.execute(f"REVOKE ALL ON SCHEMA {schema} FROM {roles}")
    driver.execute(f"REVOKE ALL ON SCHEMA report FROM PUBLIC, {roles}")
    driver.execute(f"GRANT USAGE ON SCHEMA report TO {roles}")
    driver.execute(f"GRANT USAGE ON SCHEMA {schema} TO {roles}")
    for kind, place, objects in _OBJECTS:
        for name, rights in objects.items():
            _grant(driver, f"{kind} {place.format(schema=schema)}.{name}", rights)


def _grant(driver: Connection[Any], what: str, rights: Rights) -> None:
    for role, privileges in rights.items():
        driver.execute(f"GRANT {', '.join(privileges)} ON {what} TO {role}")
