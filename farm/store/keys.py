"""The API keys of the HTTP service: their scopes and limits, and the digest of each secret.

Each change is one statement, and a transaction by itself. The store has no secret, only its sha256.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from psycopg.errors import UniqueViolation
from psycopg.rows import DictRow
from sqlalchemy import Engine

from farm.errors import UsageError
from farm.store.postgres import single


class Scope(StrEnum):
    """A permission of a key."""

    SUBMIT = "submit"
    READ = "read"
    CANCEL = "cancel"


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """An API key: `classes` are the names of the priority classes in which its client may submit.

    `per_second` limits the proofs it may submit a second, `in_flight` its unfinished proofs; None for no
    limit. One of its checks may take `most_seconds`; None for the service's own limit. While other keys have
    work, it gets `weight` checks where a key of weight 1 gets one.
    """

    id: str
    name: str
    scopes: frozenset[Scope]
    classes: frozenset[str]
    per_second: float | None = None
    in_flight: int | None = None
    most_seconds: float | None = None
    weight: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredKey:
    """A key as it is stored; `revoked_at` is None while it is valid."""

    key: Key
    secret_sha256: bytes
    created_at: datetime
    revoked_at: datetime | None


_FACTS = ("id", "name", "per_second", "in_flight", "most_seconds", "weight")

_ADD = """
    INSERT INTO api_keys (id, name, secret_sha256, scopes, classes, per_second, in_flight, most_seconds,
                          weight)
    VALUES (%(id)s, %(name)s, %(secret_sha256)s, %(scopes)s, %(classes)s, %(per_second)s, %(in_flight)s,
            %(most_seconds)s, %(weight)s)
"""

# No name looks like an id, so at most one key is meant. One that was revoked before keeps its time.
_REVOKE = """
    UPDATE api_keys SET revoked_at = coalesce(revoked_at, now())
    WHERE id = %(which)s OR (name = %(which)s AND revoked_at IS NULL)
    RETURNING *
"""


class Keys:
    """The stored keys; every method raises `ServerDown` when PostgreSQL cannot be reached."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def add(self, key: Key, secret_sha256: bytes) -> None:
        """Store a new key; raises `UsageError` when a valid one has its name."""
        row = {
            **{name: getattr(key, name) for name in _FACTS},
            "scopes": sorted(key.scopes),
            "classes": sorted(key.classes),
            "secret_sha256": secret_sha256,
        }
        try:
            with single(self.engine) as cursor:
                cursor.execute(_ADD, row)
        except UniqueViolation as error:
            if error.diag.constraint_name != "api_keys_name_idx":
                raise
            raise UsageError(
                f"a key is called {key.name} already; choose another name, "
                f"or revoke that key first: farm keys revoke {key.name}"
            ) from error

    def revoke(self, which: str) -> StoredKey:
        """Revoke the key with this id, or the valid one with this name, and return it.

        To revoke a key again changes nothing. Raises `UsageError` when there is no such key.
        """
        found = None
        if which.isprintable():  # PostgreSQL's text cannot hold NUL
            with single(self.engine) as cursor:
                found = cursor.execute(_REVOKE, {"which": which}).fetchone()
        if found is None:
            raise UsageError(f"no valid key has the name or the id {which!r}; list the keys: farm keys list")
        return _stored(found)

    def all(self) -> Sequence[StoredKey]:
        """Return every key, the oldest first, also the revoked ones."""
        return self._read("")

    def valid(self) -> Sequence[StoredKey]:
        """Return the keys that were not revoked, the oldest first."""
        return self._read("WHERE revoked_at IS NULL")

    def _read(self, where: str) -> list[StoredKey]:
        with single(self.engine) as cursor:
            cursor.execute(f"SELECT * FROM api_keys {where} ORDER BY created_at, id")
            return [_stored(row) for row in cursor]


def _stored(row: DictRow) -> StoredKey:
    key = Key(
        **{name: row[name] for name in _FACTS},
        # A scope of a newer farm permits nothing here.
        scopes=frozenset(scope for scope in Scope if scope in row["scopes"]),
        classes=frozenset(row["classes"]),
    )
    return StoredKey(
        key=key,
        secret_sha256=row["secret_sha256"],
        created_at=row["created_at"],
        revoked_at=row["revoked_at"],
    )
