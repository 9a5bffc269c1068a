"""The limits of API keys, on proofs a second and unfinished: PostgreSQL counts for all replicas together.

A submit locks its key's row in `key_uses` until it commits, so two services admit one after the other.
Unfinished proofs are those of stored batches whose checks wait or run: a service that is killed holds none. A
step of a session counts while its service renews it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from sqlalchemy import Engine

from farm.errors import OverLimit
from farm.pauses import pause_after
from farm.store.keys import Key
from farm.store.postgres import reaching, single, together

# Rounding errors of many additions must not cost the client another second.
_ROUNDING = 1e-6
_LONGEST_WAIT = 86_400.0
#: After a count of all unfinished proofs of a key that leaves no room, the next one waits this many times its
#: duration.
_PAUSES = 5.0
#: A step counts as unfinished for so long after its service has renewed it last.
STEP_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """A key's unfinished proofs and the level of its token bucket, now.

    The bucket holds one second's proofs. A larger batch is admitted when it is full and takes the level below
    0; the next one waits until it has risen again, so the average rate keeps the limit.
    """

    in_flight: int
    level: float

    def after(self, key: Key, proofs: int, *, new: int | None = None) -> Use:
        """Return the use after a submit of these proofs, of which `new` are not counted yet.

        Raises `OverLimit`.
        """
        new = proofs if new is None else new
        _require_room(key, self.in_flight, new)
        return replace(self, in_flight=self.in_flight + new, level=_level(key, self.level, proofs))


def has_limit(key: Key) -> bool:
    """Return whether a key's use is counted."""
    return key.in_flight is not None or key.per_second is not None


def bucket(key: Key) -> float:
    """Return how many proofs a key's bucket holds."""
    return max(1.0, key.per_second or 0.0)


def _require_room(key: Key, in_flight: int, proofs: int) -> None:
    if key.in_flight is None or not proofs or in_flight + proofs <= key.in_flight:
        return
    if proofs > key.in_flight:
        raise OverLimit(
            f"{proofs} proofs at once are more than the {key.in_flight} that key {key.name} may have "
            "unfinished; submit fewer at once",
            retry_after=None,
            most=key.in_flight,
        )
    raise OverLimit(
        f"key {key.name} has {in_flight} unfinished proofs and may have {key.in_flight}; "
        "wait for verdicts, and submit again",
        retry_after=1,
    )


def _level(key: Key, level: float, proofs: int) -> float:
    """Return the bucket's level after these proofs; raises `OverLimit`."""
    if key.per_second is None:
        return level
    wait = (min(proofs, bucket(key)) - level) / key.per_second
    if wait > _ROUNDING:
        seconds = max(1, math.ceil(min(wait, _LONGEST_WAIT) - _ROUNDING))
        raise OverLimit(
            f"key {key.name} may submit {key.per_second:g} proofs a second and has submitted more; "
            f"submit again in {seconds} s",
            retry_after=seconds,
        )
    return level - proofs


_LOCK = """
    INSERT INTO key_uses AS known (key_id, level, at) VALUES (%(key)s, %(size)s, clock_timestamp())
    ON CONFLICT (key_id) DO UPDATE SET at = clock_timestamp(), level = least(%(size)s,
        known.level + greatest(0, extract(epoch FROM clock_timestamp() - known.at)::float8) * %(rate)s)
    RETURNING level, coalesce(full_until > clock_timestamp(), false)
"""
# A statement of its own: one that waited for the lock would not see the other transaction's batches.
_SUM = "SELECT coalesce(sum(proofs), 0)::bigint FROM unfinished WHERE owner = %(key)s"
# Those that were sent before under their idempotency keys are counted already.
_AGAIN = "SELECT key FROM item_keys WHERE owner = %(key)s AND key = ANY(%(keys)s)"
_COUNT = """
    WITH counted AS MATERIALIZED (
        SELECT id, proofs, CASE WHEN expires_at IS NULL THEN (
            SELECT count(*) FROM jobs, LATERAL (
                SELECT status FROM checks WHERE checks.id = jobs.check_id LIMIT 1
            ) AS asked
            WHERE run_id = unfinished.id AND cancelled IS NULL AND status IN ('queued', 'running')
        ) WHEN expires_at > clock_timestamp() THEN proofs ELSE 0 END AS now
        FROM unfinished WHERE owner = %(key)s
    ), gone AS (
        DELETE FROM unfinished USING counted WHERE unfinished.id = counted.id AND now = 0
    ), fewer AS (
        UPDATE unfinished SET proofs = now FROM counted
        WHERE unfinished.id = counted.id AND now BETWEEN 1 AND counted.proofs - 1
    )
    SELECT coalesce(sum(now), 0)::bigint FROM counted
"""
_USED = """
    UPDATE key_uses SET level = %(level)s,
        full_until = clock_timestamp() + CAST(%(pause)s AS float8) * interval '1 second'
    WHERE key_id = %(key)s
"""
_BEGIN = """
    INSERT INTO unfinished (id, owner, proofs, expires_at)
    VALUES (%(id)s, %(key)s, %(proofs)s, now() + CAST(%(seconds)s AS float8) * interval '1 second')
"""
_RENEW = "UPDATE unfinished SET expires_at = now() + %(seconds)s * interval '1 second' WHERE id = %(id)s"
_END = "DELETE FROM unfinished WHERE id = %(id)s"


class Admission:
    """Admits the submits of one key, one after the other, inside the caller's transaction."""

    def __init__(self, connection: psycopg.Connection[Any], key: Key) -> None:
        """Lock the key's row until the transaction ends."""
        self._connection, self._key = connection, key
        locked = self._execute(_LOCK, size=bucket(key), rate=key.per_second or 0.0)
        counted = self._execute(_SUM)
        ((level, self._is_full),), ((in_flight,),) = locked.fetchall(), counted.fetchall()
        self._use = Use(in_flight=in_flight, level=level)
        self._pause: float | None = None
        self._begun: list[dict[str, object]] = []
        self._new = 0

    def _execute(self, statement: str, **values: object) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._connection.cursor(binary=True).execute(statement, {"key": self._key.id, **values})

    def admit(
        self, name: str, proofs: int, *, keys: Sequence[str] = (), seconds: float | None = None
    ) -> None:
        """Count proofs as submitted and unfinished, under the name of their batch; raises `OverLimit`.

        Those with these idempotency `keys` may have been sent before. A step, which is none of a batch, is
        counted for so many `seconds`.
        """
        new = proofs - len(self._sent(keys))
        self._use = self._after(proofs, new)
        if new and self._key.in_flight is not None:
            self._begun.append({"id": name, "proofs": new, "seconds": seconds})
            self._new += new

    def require_room(self, proofs: int) -> None:
        """Raise `OverLimit` if `admit` would raise it; counts nothing."""
        self._after(proofs, proofs)

    def end(self) -> None:
        """Store the key's use, before the batches themselves."""
        for each in self._begun:
            self._execute(_BEGIN, **each)
        self._execute(_USED, level=self._use.level, pause=self._pause)

    def _sent(self, keys: Sequence[str]) -> set[str]:
        rows = self._execute(_AGAIN, keys=list(keys)) if keys else ()
        return {key for (key,) in rows}

    def _after(self, proofs: int, new: int) -> Use:
        try:
            return self._use.after(self._key, proofs, new=new)
        except OverLimit as error:
            if self._is_full or error.most is not None or not self._is_over(new):
                raise
        self._count()
        return self._use.after(self._key, proofs, new=new)

    def _is_over(self, new: int) -> bool:
        return self._key.in_flight is not None and self._use.in_flight + new > self._key.in_flight

    def _count(self) -> None:
        """Count the unfinished proofs again; those that were judged since leave room."""
        began = time.monotonic()
        ((in_flight,),) = self._execute(_COUNT).fetchall()
        self._use = replace(self._use, in_flight=in_flight + self._new)
        self._pause, self._is_full = pause_after(time.monotonic() - began, times=_PAUSES), True


def require_room(engine: Engine, key: Key, proofs: int) -> None:
    """Raise `OverLimit` if a submit of these proofs would; counts nothing. Raises `ServerDown`."""
    with _admission(engine, key) as admission:
        admission.require_room(proofs)


def begin_step(engine: Engine, key: Key, name: str) -> None:
    """Count a step of a session as an unfinished proof; raises `OverLimit` and `ServerDown`."""
    with _admission(engine, key) as admission:
        admission.admit(name, 1, seconds=STEP_SECONDS)


@contextmanager
def _admission(engine: Engine, key: Key) -> Iterator[Admission]:
    """Give the admission of a transaction, which commits although the block raises `OverLimit`."""
    over: OverLimit | None = None
    with reaching(engine), engine.begin() as connection, together(connection) as driver:
        admission = Admission(driver, key)
        try:
            yield admission
        except OverLimit as error:
            over = error
        admission.end()
    if over is not None:
        raise over


def renew_step(engine: Engine, name: str) -> None:
    """Have a step count as unfinished for another while; raises `ServerDown`."""
    with single(engine) as cursor:
        cursor.execute(_RENEW, {"id": name, "seconds": STEP_SECONDS})


def end_step(engine: Engine, name: str) -> None:
    """Count a step as finished; raises `ServerDown`."""
    with single(engine) as cursor:
        cursor.execute(_END, {"id": name})
