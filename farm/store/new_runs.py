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
from farm.version import VERSION

#: Columns of a check that are the same for all lines of a run, named as the values of `NewRun`.
_OF_RUN = ("tier", "native", "axioms", "policy", "goals", "stop_at_error", "priority")
_OF_ENVIRONMENT = ("environment_digest", "checker_version")

#: All columns of a check apart from its state and its cache key.
WORK = tuple(name for name in CHECK_COLUMNS if name != "identity") + _OF_RUN + _OF_ENVIRONMENT

# New checks of a class begin at the turn at the head of their queue, and from there take turns with those
# of other runs (start-time fair queueing: Goyal, Vin and Cheng, SIGCOMM 1996).
_TURN = """
    coalesce((
        SELECT turn FROM checks
        WHERE status = 'queued' AND checks.environment = named.environment
          AND checks.priority = {priority} AND attempt = 0
        ORDER BY turn LIMIT 1), 0) AS turn
"""


def begun(environments: str) -> str:
    """Return the query for the head of the queue of each environment, for checks of the run's class."""
    turn = _TURN.format(priority="%(priority)s")
    return f"SELECT environment, {turn} FROM (SELECT DISTINCT environment FROM {environments}) AS named"


def begun_by_class(checks: str) -> str:
    """Return the same query for every class among these checks."""
    turn = _TURN.format(priority="named.priority")
    return f"""
        SELECT environment, priority, {turn}
        FROM (SELECT DISTINCT environment, priority FROM {checks}) AS named
    """


def _of_run(name: str) -> str:
    """Return the value of a column for a check of a run; a check with a task says so in its policy."""
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
        traceparent: str | None = None,
        more: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Take the connection of a transaction; `more` is stored with the run's options."""
        self.run_id = run_id
        self._connection = connection
        self._values: dict[str, object] = {
            "run_id": run_id,
            "options": options.stored(traceparent=traceparent, **more),
            "version": VERSION,
            "deadline": options.deadline_seconds,
            "owner": owner,
            "priority": int(options.priority),
            "races": options.stop_on_first_proof,
            **options.columns,
        }

    def _execute(self, statement: str, **values: object) -> psycopg.Cursor[tuple[Any, ...]]:
        # One cursor for each statement: in pipeline mode a second one would discard the rows of the first.
        return self._connection.cursor(binary=True).execute(statement, self._values | values)

    def add_run(self) -> None:
        """Store the run itself."""
        self._execute(_RUN)

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
