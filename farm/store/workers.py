"""Heartbeats of workers: each reports its state every few seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from psycopg.rows import DictRow
from sqlalchemy import Engine

from farm.store.environments import STARTING, Pending, Served
from farm.store.postgres import UNHURRIED, single

#: The row of a worker that fell silent without a farewell is deleted after this number of its leases, but not
#: before this number of seconds: it may be cut off from PostgreSQL.
_FORGOTTEN_LEASES, _FORGOTTEN_SECONDS = 5, 3600.0


class State(StrEnum):
    """Whether a worker takes checks: it does, its machine judges known programs wrongly, or it is ending."""

    SERVING = "serving"
    UNWELL = "unwell"
    STOPPING = "stopping"


@dataclass(frozen=True, kw_only=True, slots=True)
class SignOfLife:
    """A worker's report on itself. `since` is the start of its process, in seconds since 1970.

    Name and start together are one process: two containers on one node may both call themselves node:1.
    """

    name: str
    since: float
    node: str
    pid: int
    environments: Sequence[Served]
    isolation: str
    farm_version: str
    threads: int
    busy: int
    state: State
    lease_seconds: float
    pending: Sequence[Pending] = ()

    def row(self) -> dict[str, object]:
        """Return it as the store's statements want it."""
        facts = asdict(self)
        facts["environments"] = json.dumps(
            [
                {
                    "name": each.name,
                    "toolchain": each.toolchain,
                    "digest": each.digest,
                    "tiers": [*each.tiers],
                }
                for each in self.environments
            ]
        )
        facts["pending"] = json.dumps([asdict(each) for each in self.pending])
        return facts


def pending_of(said: Sequence[Mapping[str, Any]], worker: str, silent_seconds: float) -> list[Pending]:
    """Return the environments that a worker did not serve `silent_seconds` ago, with times as of now."""
    return [
        Pending(
            **{
                **each,
                "worker": worker,
                "seconds": each["seconds"] + silent_seconds,
                "retry_seconds": None
                if each["retry_seconds"] is None
                else max(0.0, each["retry_seconds"] - silent_seconds),
            }
        )
        for each in said
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Worker:
    """A worker as it last spoke, `silent_seconds` ago; it has lived for `age_seconds`."""

    name: str
    node: str
    pid: int
    environments: Sequence[Mapping[str, Any]]
    isolation: str
    farm_version: str
    threads: int
    busy: int
    state: str
    lease_seconds: float
    age_seconds: float
    silent_seconds: float
    pending: Sequence[Pending] = ()

    @classmethod
    def of(cls, row: DictRow) -> Worker:
        """Return the worker of a row of the store."""
        pending = pending_of(row["pending"], row["name"], row["silent_seconds"])
        return cls(**{**row, "pending": pending})

    @property
    def shown_state(self) -> str:
        """The state for people: `silent`, or the state of its environments where it serves none of them."""
        if self.is_silent:
            return "silent"
        if self.state != State.SERVING or self.environments or not self.pending:
            return self.state
        return STARTING if any(each.state == STARTING for each in self.pending) else "unfit"

    @property
    def is_silent(self) -> bool:
        """Whether it was not heard of for longer than its lease: others have its checks by now."""
        return self.silent_seconds > self.lease_seconds

    @property
    def forgotten_after_seconds(self) -> float:
        """After how many silent seconds it is no longer listed."""
        return max(_FORGOTTEN_LEASES * self.lease_seconds, _FORGOTTEN_SECONDS)

    def takes(self, environment: str, tier: str) -> bool:
        """Whether it takes such checks now."""
        return (
            not self.is_silent
            and self.state == State.SERVING
            and any(each["name"] == environment and tier in each["tiers"] for each in self.environments)
        )


# A crash of PostgreSQL may lose a heartbeat: the next one follows seconds later.
_SAY = f"""
    INSERT INTO workers (
        name, since, node, pid, environments, isolation, farm_version, threads, busy, state, lease_seconds,
        pending)
    SELECT %(name)s, to_timestamp(%(since)s), %(node)s, %(pid)s, CAST(%(environments)s AS jsonb),
           %(isolation)s, %(farm_version)s, %(threads)s, %(busy)s, %(state)s, %(lease_seconds)s,
           CAST(%(pending)s AS jsonb)
    FROM {UNHURRIED}
    ON CONFLICT (name, since) DO UPDATE SET
        busy = excluded.busy, state = excluded.state, environments = excluded.environments,
        pending = excluded.pending, seen_at = now()
"""

_LEAVE = "DELETE FROM workers WHERE name = %(name)s AND since = to_timestamp(%(since)s)"

# Whether a worker has been silent for so long that it is no longer listed.
_IS_FORGOTTEN = f"""
    seen_at < now() - interval '1 second' * greatest(
        {_FORGOTTEN_LEASES} * lease_seconds, {_FORGOTTEN_SECONDS})
"""
# A silent one whose name another has now was restarted: in a container each has the same number.
_FORGET = f"""
    WITH gone AS (
        DELETE FROM workers AS gone
        WHERE {_IS_FORGOTTEN} OR (
            seen_at < now() - lease_seconds * interval '1 second' AND EXISTS (
                SELECT FROM workers AS next WHERE next.name = gone.name AND next.since > gone.since))
    )
    SELECT count(*) AS here FROM workers WHERE seen_at >= now() - lease_seconds * interval '1 second'
"""

_WORKERS = f"""
    SELECT name, node, pid, environments, isolation, farm_version, threads, busy, state, lease_seconds,
           pending, extract(epoch FROM now() - since)::float8 AS age_seconds,
           extract(epoch FROM now() - seen_at)::float8 AS silent_seconds
    FROM workers WHERE NOT ({_IS_FORGOTTEN}) ORDER BY node COLLATE "C", pid, since
"""


class Workers:
    """The workers that there are; every method raises `ServerDown` when PostgreSQL cannot be reached."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def say(self, sign: SignOfLife) -> None:
        """Store a worker's heartbeat and state."""
        with single(self._engine) as cursor:
            cursor.execute(_SAY, sign.row())

    def leave(self, sign: SignOfLife) -> None:
        """Say that a worker is no more."""
        with single(self._engine) as cursor:
            cursor.execute(_LEAVE, {"name": sign.name, "since": sign.since})

    def forget(self) -> int:
        """Remove workers that were silent for several leases, or were restarted since.

        Returns how many are there and not silent.
        """
        with single(self._engine) as cursor:
            row = cursor.execute(_FORGET).fetchone()
        return int(row["here"]) if row else 0

    def all(self) -> list[Worker]:
        """Return all workers by node and process; those that are silent are among them for a few leases."""
        with single(self._engine) as cursor:
            return [Worker.of(row) for row in cursor.execute(_WORKERS)]
