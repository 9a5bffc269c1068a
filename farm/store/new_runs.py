"""Storing a new run: the statements that a load of manifests and a batch have in common.

Both make one check for all lines that ask the same, here or in any other run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import psycopg

from farm.judging.assurance import OWN_TASK, TASK_ENTRY
from farm.judging.submit_options import SubmitOptions
from farm.store.new_lines import CHECK_COLUMNS
from farm.version import farm_version

#: Columns of a check that are the same for all lines of a run, named as the values of `NewRun`.
_OF_RUN = ("tier", "native", "axioms", "policy", "goals", "stop_at_error", "priority", "tenant", "weight")
_OF_ENVIRONMENT = ("environment_digest", "checker_version")

#: All columns of a check apart from its state and its cache key.
WORK = tuple(name for name in CHECK_COLUMNS if name != "identity") + _OF_RUN + _OF_ENVIRONMENT

#: The tenant of a run's checks: a number made of the API key, or of the database login of `farm submit`.
_TENANT = "hashtextextended(coalesce('key ' || nullif(%(owner)s::text, ''), 'login ' || session_user), 0)"

# New checks begin at the turn at the head of their tenant's queue, and from there take turns with those of
# the tenant's other runs (start-time fair queueing: Goyal, Vin and Cheng, SIGCOMM 1996). Tenants take turns
# by `farm.store.rounds`. Where nothing of the tenant waits, its checks begin with those of others: workers
# of releases before schema 0029 go by the turn alone.
_HEAD = """
    SELECT turn FROM checks
    WHERE status = 'queued' AND checks.environment = named.environment
      AND checks.priority = {priority}{tenant} AND attempt = 0
    ORDER BY {order} LIMIT 1
"""


def _turn(priority: str, tenant: str) -> str:
    own = _HEAD.format(priority=priority, tenant=f" AND checks.tenant = {tenant}", order="tenant, turn")
    of_all = _HEAD.format(priority=priority, tenant="", order="turn")
    return f"coalesce(({own}), ({of_all}), 0) AS turn"


def begun(environments: str) -> str:
    """Return the query for the head of the run's queue in each environment: of its class and tenant."""
    turn = _turn("%(priority)s", _TENANT)
    return f"SELECT environment, {turn} FROM (SELECT DISTINCT environment FROM {environments}) AS named"


def begun_by_tenant(checks: str) -> str:
    """Return the query for the heads of the queues of these checks' tenants, in the run's class."""
    turn = _turn("%(priority)s", "named.tenant")
    distinct = f"SELECT DISTINCT environment, tenant FROM {checks}"
    return f"SELECT environment, tenant, {turn} FROM ({distinct}) AS named"


def begun_by_class(checks: str) -> str:
    """Return the same query for every class and tenant among these checks."""
    turn = _turn("named.priority", "named.tenant")
    return f"""
        SELECT environment, priority, tenant, {turn}
        FROM (SELECT DISTINCT environment, priority, tenant FROM {checks}) AS named
    """


def _of_run(name: str) -> str:
    """Return the value of a column for a check of a run; a check with a task says so in its policy."""
    if name == "tenant":
        return _TENANT
    if name != "policy":
        return f"%({name})s"
    own = json.dumps({TASK_ENTRY: OWN_TASK}).replace("{", "{{").replace("}", "}}")  # of `str.format`
    return f"CASE WHEN task IS NULL THEN %(policy)s::jsonb ELSE %(policy)s::jsonb || '{own}' END"


#: Makes checks of the rows of `first`, which has the columns of `CHECK_COLUMNS`, `check_id` and `ordinal`.
INSERT_CHECKS = f"""
    INSERT INTO checks (
        id, {", ".join(CHECK_COLUMNS)}, {", ".join(_OF_RUN)}, {", ".join(_OF_ENVIRONMENT)}, turn, status)
    SELECT check_id, {", ".join(CHECK_COLUMNS)}, {", ".join(map(_of_run, _OF_RUN))},
           served.digest, served.checker_version, begun.turn + ordinal - 1,
           CASE WHEN verdict IS NULL THEN 'queued' ELSE 'done' END
    FROM {{first}} JOIN begun USING (environment)
    JOIN (SELECT name, digest, checker_version FROM environments) AS served ON served.name = environment
    {{order}}
    ON CONFLICT (identity) WHERE identity IS NOT NULL DO NOTHING
"""

#: Stores the verdicts of checks whose text alone decides.
INSERT_VERDICTS = """
    SELECT decide_by_text(
        array_agg(check_id), array_agg(verdict), array_agg(reason), array_agg(detail), %(version)s)
    FROM {staged} WHERE verdict IS NOT NULL HAVING count(*) > 0
"""

#: Moves other runs' checks forward to where this run's own would be.
HASTEN = """
    UPDATE checks SET priority = %(priority)s, turn = wanted.turn
    FROM {wanted} AS wanted
    WHERE checks.id = wanted.id AND status = 'queued'
      AND (checks.priority, checks.turn) > (%(priority)s, wanted.turn)
"""

_RUN = """
    INSERT INTO runs (id, options, farm_version, deadline_at, owner)
    VALUES (%(run_id)s, %(options)s, %(version)s, now() + %(deadline)s * interval '1 second', %(owner)s)
"""
# A check that keeps its cache key after its verdict keeps it for good. The lock prevents its deletion before
# this transaction commits. %b is a binary argument: https://www.psycopg.org/psycopg3/docs/basic/params.html
_JUDGED = "SELECT identity, id FROM checks WHERE identity = ANY(%(keys)b) AND status = 'done' FOR KEY SHARE"
# Texts that are stored already are locked as well.
_TEXTS = """
    WITH known AS (SELECT sha256 FROM programs WHERE sha256 = ANY(%(sha256s)b) FOR KEY SHARE)
    INSERT INTO programs (sha256, source)
    SELECT sha256, source FROM unnest(%(sha256s)b, %(sources)b) AS asked (sha256, source)
    WHERE sha256 NOT IN (SELECT sha256 FROM known)
"""
_IDS = "SELECT nextval(pg_get_serial_sequence('checks', 'id')) FROM generate_series(1, %(count)s)"


class NewRun:
    """A run that is being stored; no other transaction sees any of it before the commit."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        run_id: str,
        options: SubmitOptions,
        *,
        owner: str | None = None,
        weight: int = 1,
        traceparent: str | None = None,
        more: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Take the connection of a transaction; `more` is stored with the run's options.

        The `owner` of a batch is its API key, which gets `weight` checks where another gets one.
        """
        self.run_id = run_id
        self._connection = connection
        self._values: dict[str, object] = {
            "run_id": run_id,
            "options": options.stored(traceparent=traceparent, **more),
            "version": farm_version(),
            "deadline": options.deadline_seconds,
            "owner": owner,
            "weight": weight,
            "priority": int(options.priority),
            "races": options.stop_on_first_proof,
            **options.columns,
        }

    def _execute(self, statement: str, **values: object) -> psycopg.Cursor[tuple[Any, ...]]:
        # One cursor for each statement: in pipeline mode a second one would discard the rows of the first.
        return self._connection.cursor(binary=True).execute(statement, self._values | values)

    def add_run(self, values: Mapping[str, object] = MappingProxyType({})) -> None:
        """Store the run itself, or another one with these values in place of its own."""
        self._execute(_RUN, **values)

    def judged(self, identities: Sequence[bytes]) -> dict[bytes, int]:
        """Return the checks with a verdict that others share, by cache key."""
        rows = self._execute(_JUDGED, keys=list(identities)) if identities else ()
        return {bytes(identity): check_id for identity, check_id in rows}

    def add_texts(self, texts: Mapping[bytes, bytes]) -> None:
        """Store the texts that are not stored yet, by their sha256."""
        self._execute(_TEXTS, sha256s=list(texts), sources=list(texts.values()))

    def ids(self, count: int) -> list[int]:
        """Return ids for new checks."""
        return [check_id for (check_id,) in self._execute(_IDS, count=count)] if count else []
