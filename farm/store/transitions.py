"""The store step: the changes of a check's state by claims and verdicts, each one transaction.

Sweeps take checks back (`farm.store.sweeping`), and cancellations end waiting ones (`farm.store.waiting`).

PostgreSQL is the truth, and the queue: workers claim the first checks by class and turn, several at a time,
each with an attempt number and a lease of its own. Only a statement that names this attempt finishes a check,
gives it back or takes it back. The state machine is `farm.judging.states.TRANSITIONS`: it is
repeated here as ``WHERE status = ...``, so that a late result, a second sweep or a worker that was given up
changes nothing.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any

from psycopg import Cursor
from psycopg.rows import DictRow
from sqlalchemy import Connection, Engine, text

from farm.characters import storable_json
from farm.errors import ServerDown, gone
from farm.judging.states import Priority
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Verdict
from farm.kinds import Kind
from farm.log import logger
from farm.settings import ATTEMPTS
from farm.store import contradictions, waiting
from farm.store.attempt import Claim, Decision, Hold, Released, unread
from farm.store.contradictions import Settled
from farm.store.environments import Served
from farm.store.new_lines import TEXT_COLUMNS
from farm.store.new_runs import WORK
from farm.store.postgres import UNHURRIED, before_commit, reaching, single
from farm.store.rounds import Round, Span, Taken
from farm.store.sweeping import Swept, sweep
from farm.store.watermark import Front, Head, Place
from farm.store.wish import Alike
from farm.version import farm_version

#: Of environments, the tiers that can be had there; in one that is not named, all of them.
Tiers = Mapping[str, Sequence[str]]
#: Of environments, the proof systems that they have there; in one that is not named, any.
Kinds = Mapping[str, str]

_log = logger(__name__)

#: The outcomes that decide a statement.
_DECIDED = (Outcome.PROVED, Outcome.DISPROVED)

#: Most claims in a row that return nothing but checks which this release cannot read.
_MOST_CLAIMS = 100

#: Age up to which another worker's registration of an environment is fresh, in seconds.
_FRESH_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """What became of verdicts: the checks that have theirs now, and how many checks are to be done anew.

    Of those that are `proved`, or disproved, the rivals are still to be stopped. `settled` says what became
    of those whose statements are proved and disproved.
    """

    check_ids: frozenset[int]
    anew: int
    proved: tuple[int, ...] = ()
    settled: Settled = field(default_factory=Settled)


# Skips the upsert if another worker refreshed the row, which all workers share, within a second. The
# statement is its own transaction, so that a worker that stalls does not hold the row's lock.
_REGISTER = """
    WITH said AS (
        SELECT CAST(%(name)s AS text) AS name, CAST(%(digest)s AS text) AS digest,
               CAST(%(toolchain)s AS text) AS toolchain, CAST(%(checker)s AS text) AS checker,
               CAST(%(tiers)s AS text[]) AS tiers, CAST(%(checker_version)s AS text) AS checker_version,
               CAST(%(kind)s AS text) AS kind
    )
    INSERT INTO environments (name, kind, digest, toolchain, checker, tiers, checker_version, seen_at)
    SELECT name, kind, digest, toolchain, checker, tiers, checker_version, now() FROM said
    WHERE NOT EXISTS (
        SELECT FROM environments AS known
        WHERE known.name = said.name AND seen_at > now() - %(fresh)s * interval '1 second'
          AND (known.kind, known.digest, known.toolchain, known.tiers, known.checker_version)
              = (said.kind, said.digest, said.toolchain, said.tiers, said.checker_version)
          AND known.checker IS NOT DISTINCT FROM said.checker)
    ON CONFLICT (name) DO UPDATE SET
        kind = excluded.kind, digest = excluded.digest, toolchain = excluded.toolchain,
        checker = excluded.checker, tiers = excluded.tiers,
        checker_version = excluded.checker_version, seen_at = now()
"""

# An environment that no worker has served may be declared again, with another toolchain; else the workers'
# report counts, unless it was of another kind and no worker serves it any more: then no line may be assembled
# as what the name meant before. A run may use every tier: checks whose tier no worker gives wait, and
# `farm status` says so.
_DECLARE = text("""
    INSERT INTO environments (name, kind, digest, toolchain, tiers, checker_version)
    VALUES (:name, :kind, '', :toolchain, :tiers, '')
    ON CONFLICT (name) DO UPDATE SET
        kind = excluded.kind, toolchain = excluded.toolchain, tiers = excluded.tiers,
        digest = '', checker = NULL, checker_version = '', seen_at = NULL
    WHERE environments.seen_at IS NULL OR (environments.kind <> excluded.kind AND NOT EXISTS (
        SELECT FROM workers, jsonb_array_elements(workers.environments) AS served
        WHERE workers.seen_at >= now() - lease_seconds * interval '1 second' AND state <> 'stopping'
          AND served ->> 'name' = :name))
""")

# Programs that were assembled while an environment's name meant another proof system are nonsense to this
# worker's prover: they wait for a worker that has the name as that. Older releases store no kind.
_OUR_KIND = "coalesce(kind = CAST(%(kinds)s AS jsonb) ->> environment, true)"

# The first checks of each queue, and among those the first by class. Checks with one attempt left are claimed
# one by one: a check that crashes workers then ends no other check that was claimed with it. A worker begins
# the first check at once, which is such a one if any is; it claims the others ahead. If a crash of PostgreSQL
# loses a claim, the check is claimed again, and the verdict of the first claim is refused, because its time
# of claim differs. All checks of a claim share one image, so that a worker need not build another.
_QUEUES = """
        FROM unnest(CAST(%(names)s AS text[]), CAST(%(tiers)s AS text[]), CAST(%(classes)s AS smallint[]),
                    CAST(%(turns)s AS bigint[]))
             WITH ORDINALITY AS queue (name, tiers, class, front, place)
"""
# Parts of the queues, in the order in which their checks are claimed. They are scanned until enough is found:
# the LIMIT behind them is enough to keep the order, because a lateral join goes through them one by one.
_SPANS = """
        FROM unnest(CAST(%(span_names)s AS text[]), CAST(%(span_tiers)s AS text[]),
                    CAST(%(span_classes)s AS smallint[]), CAST(%(firsts)s AS bigint[]),
                    CAST(%(span_turns)s AS bigint[]), CAST(%(lasts)s AS bigint[]))
             WITH ORDINALITY AS span (name, tiers, class, first, turn, last, place)
"""
_IN_SPAN = f"""
        status = 'queued' AND environment = span.name AND priority = span.class
        AND tier = ANY(string_to_array(span.tiers, ' ')) AND {_OUR_KIND}
        AND (tenant, turn) >= (span.first, span.turn) AND tenant <= span.last
        AND id <> ALL(CAST(%(unreadable)s AS bigint[]))
"""
_BY_TURN = f"""
        SELECT *, row_number() OVER (ORDER BY place, tenant, turn, id) AS rank,
               row_number() OVER (PARTITION BY suspect ORDER BY place, tenant, turn, id) AS nth
        FROM (
            SELECT queued.*, place, failures >= %(last)s AS suspect
            {_SPANS}, LATERAL (
                SELECT id, tenant, turn, image, failures FROM checks
                WHERE {_IN_SPAN} AND (failures < %(last)s OR %(suspects)s)
                ORDER BY tenant, turn, id LIMIT %(most)s FOR NO KEY UPDATE SKIP LOCKED
            ) AS queued LIMIT %(most)s
        ) AS found
"""
# Checks of one class in one environment that share one image, unless a check of a more urgent class waits:
# the image of the given number, or the next one after it.
_ALIKE = f"""
        SELECT *, row_number() OVER (ORDER BY place, tenant, turn, id) AS rank, 1 AS nth
        FROM (
            SELECT queued.*, place, false AS suspect
            {_SPANS}, LATERAL (
                SELECT id, tenant, turn, image FROM checks
                WHERE {_IN_SPAN} AND failures < %(last)s AND image <> 0
                  AND image = CASE WHEN %(exact)s THEN CAST(%(image)s AS bigint) ELSE (
                      SELECT image FROM checks
                      WHERE status = 'queued' AND image <> 0
                        AND environment = %(environment)s AND priority = CAST(%(class)s AS smallint)
                        AND image >= CAST(%(image)s AS bigint)
                      ORDER BY image LIMIT 1) END
                ORDER BY tenant, turn, id LIMIT %(most)s FOR NO KEY UPDATE SKIP LOCKED
            ) AS queued
            WHERE NOT EXISTS (
                SELECT {_QUEUES} WHERE queue.class < CAST(%(class)s AS smallint) AND EXISTS (
                    SELECT FROM checks
                    WHERE status = 'queued' AND environment = queue.name AND priority = queue.class
                      AND tier = ANY(string_to_array(queue.tiers, ' ')) AND {_OUR_KIND}
                      AND turn >= queue.front))
            LIMIT %(most)s
        ) AS found
"""
_CLAIM = """
    WITH first AS ({first}), chosen AS (
        SELECT id, place, rank, suspect FROM first
        WHERE (nth = 1 OR NOT suspect) AND image = (SELECT image FROM first WHERE rank = 1)
    ), claimed AS (
        UPDATE checks SET
            status = 'running', attempt = attempt + 1, worker = %(worker)s, started_at = now(),
            lease_until = now() + %(lease)s * interval '1 second',
            ahead = chosen.id <> (SELECT id FROM chosen ORDER BY suspect DESC, rank LIMIT 1)
        FROM chosen WHERE checks.id = chosen.id
        RETURNING checks.id, attempt, started_at, failures, ahead, checks.turn, place, rank, {work},
                  extract(epoch FROM now() - queued_at)::float8 AS waited_seconds
    )
    SELECT claimed.*, failures >= %(last)s AS suspect, {sources}, CASE WHEN %(traced)s THEN (
        SELECT options ->> 'traceparent' FROM runs WHERE id = (
            SELECT run_id FROM jobs WHERE check_id = claimed.id AND NOT shared LIMIT 1)
    ) END AS traceparent, (
        SELECT json_agg(head) FROM (
            SELECT place, tenant, min(turn) AS turn FROM first GROUP BY place, tenant) AS head
    ) AS heads, (SELECT count(*) FROM first) AS found, rank < coalesce((
        SELECT min(rank) FROM first WHERE id NOT IN (SELECT id FROM chosen)), rank + 1) AS in_order
    FROM {unhurried}, claimed
    ORDER BY rank
"""
_ASKED = {
    "work": ", ".join(f"checks.{name}" for name in WORK),
    # The text of `program_sha256` is called `program_text`, and so on.
    "sources": ", ".join(
        f"(SELECT source FROM programs WHERE sha256 = {name} LIMIT 1) AS {name.removesuffix('sha256')}text"
        for name in TEXT_COLUMNS
    ),
    "unhurried": UNHURRIED,
}
_CLAIM_BY_TURN, _CLAIM_ALIKE = (_CLAIM.format(first=first, **_ASKED) for first in (_BY_TURN, _ALIKE))

_BEFORE = f"""
    SELECT place, found.turn, found.tenant
    {_QUEUES}, LATERAL (
        SELECT turn, tenant FROM checks
        WHERE status = 'queued' AND environment = queue.name AND priority = queue.class
          AND tier = ANY(string_to_array(queue.tiers, ' ')) AND {_OUR_KIND} AND turn >= queue.front
          AND id <> ALL(CAST(%(unreadable)s AS bigint[]))
        ORDER BY turn, id LIMIT 1
    ) AS found
"""

_WAITING = f"""
    SELECT name FROM unnest(CAST(%(names)s AS text[]), CAST(%(tiers)s AS text[])) AS served (name, tiers)
    WHERE EXISTS (
        SELECT FROM checks
        WHERE status = 'queued' AND environment = name AND tier = ANY(string_to_array(tiers, ' '))
          AND {_OUR_KIND})
"""

_HELD = """unnest(
        CAST(%(ids)s AS bigint[]), CAST(%(attempts)s AS integer[]), CAST(%(moments)s AS timestamptz[])
    ) AS held (id, attempt, claimed_at)"""

# Here and below each check is looked up by its id: a join could begin with all that runs anywhere.
_LOST = f"""
    SELECT held.id, held.attempt, held.claimed_at
    FROM {_HELD}
    LEFT JOIN LATERAL (
        SELECT true AS is_ours FROM checks
        WHERE checks.id = held.id AND checks.attempt = held.attempt AND started_at = claimed_at
          AND status = 'running' LIMIT 1
    ) AS found ON true
    WHERE is_ours IS NULL
"""

# One that a crash loses is extended again in seconds.
_EXTEND = f"""
    UPDATE checks SET lease_until = now() + %(lease)s * interval '1 second'
    FROM {UNHURRIED}, (
        SELECT locked.id FROM (
            SELECT * FROM {_HELD} ORDER BY id
        ) AS wanted, LATERAL (
            SELECT id FROM checks
            WHERE checks.id = wanted.id AND checks.attempt = wanted.attempt AND started_at = claimed_at
              AND status = 'running'
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS locked
    ) AS kept WHERE checks.id = kept.id
"""

# Those that are locked are being finished, or can be marked the next time.
_BEGUN = f"""
    UPDATE checks SET ahead = false
    FROM {_HELD}, LATERAL (
        SELECT id FROM checks
        WHERE checks.id = held.id AND checks.attempt = held.attempt AND started_at = claimed_at
          AND status = 'running'
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS locked
    WHERE checks.id = locked.id
"""

# A check keeps its identity, so that later lines share its verdict, if the verdict would come out the same
# again and the worker had the environment and the version that the identity names.
_FINISH = """
    WITH given AS (
        SELECT * FROM jsonb_to_recordset(CAST(%(given)s AS jsonb)) AS given (
            id bigint, attempt integer, claimed_at timestamptz, verdict text, reason text,
            detail text, messages jsonb, hits jsonb, audit jsonb, goals jsonb, statement text, trusts text[],
            preamble text, wall_seconds float8, cpu_seconds float8,
            peak_memory_kib bigint, isolation text, digest text, toolchain text, checker_version text,
            trace_id text, facts jsonb, reproducible boolean, sentence jsonb)
    ), held AS (
        SELECT locked.* FROM (SELECT id, attempt, claimed_at FROM given ORDER BY id) AS wanted, LATERAL (
            SELECT id, attempt, started_at AS claimed_at FROM checks
            WHERE checks.id = wanted.id AND checks.attempt = wanted.attempt AND started_at = claimed_at
              AND status = 'running'
            FOR NO KEY UPDATE
        ) AS locked
    ), done AS (
        UPDATE checks SET
            status = 'done', lease_until = NULL, identity = CASE
                WHEN reproducible AND given.digest = checks.environment_digest
                AND given.checker_version = checks.checker_version THEN identity END
        FROM held JOIN given USING (id, attempt, claimed_at) WHERE checks.id = held.id
        RETURNING checks.id, checks.attempt, checks.worker, checks.started_at AS claimed_at
    ), ended AS (
        INSERT INTO attempts (check_id, number, worker, started_at, outcome, detail)
        SELECT id, attempt, worker, claimed_at, verdict, detail
        FROM done JOIN given USING (id, attempt, claimed_at)
        RETURNING outcome
    ), counted AS (
        INSERT INTO tallies SELECT 'attempts', outcome, count(*) FROM ended GROUP BY outcome
    ), judged AS (
        INSERT INTO verdicts (
            check_id, attempt, verdict, reason, detail, messages, hits, audit, goals, statement, trusts,
            preamble, wall_seconds, cpu_seconds, peak_memory_kib, isolation, environment_digest, toolchain,
            checker_version, trace_id, facts)
        SELECT id, attempt, verdict, reason, detail, messages, hits, audit, goals, statement, trusts,
               preamble, wall_seconds, cpu_seconds, peak_memory_kib, isolation, digest, toolchain,
               given.checker_version, trace_id, facts
        FROM done JOIN given USING (id, attempt, claimed_at)
    ), stated AS (
        INSERT INTO sentences (check_id, key, negated, uses, allows)
        SELECT id, decode(key, 'hex'), negated, uses, allows
        FROM done JOIN given USING (id, attempt, claimed_at),
             jsonb_to_record(sentence) AS stated (key text, negated boolean, uses text[], allows text[])
        WHERE sentence IS NOT NULL
    )
    SELECT id, attempt, claimed_at FROM done
"""

_GIVE_BACK = text("""
    WITH given AS (
        SELECT * FROM jsonb_to_recordset(CAST(:given AS jsonb)) AS given (
            id bigint, attempt integer, claimed_at timestamptz, outcome text, detail text, failed boolean)
    ), held AS (
        SELECT locked.* FROM (SELECT id, attempt, claimed_at FROM given ORDER BY id) AS wanted, LATERAL (
            SELECT id, attempt, started_at AS claimed_at FROM checks
            WHERE checks.id = wanted.id AND checks.attempt = wanted.attempt AND started_at = claimed_at
              AND status = 'running'
            FOR NO KEY UPDATE
        ) AS locked
    ), back AS (
        UPDATE checks SET
            status = 'queued', lease_until = NULL, failures = failures + CAST(failed AS integer)
        FROM held JOIN given USING (id, attempt, claimed_at) WHERE checks.id = held.id
        RETURNING checks.id, checks.attempt, checks.worker, checks.started_at AS claimed_at
    ), ended AS (
        INSERT INTO attempts (check_id, number, worker, started_at, outcome, detail)
        SELECT id, attempt, worker, claimed_at, outcome, detail
        FROM back JOIN given USING (id, attempt, claimed_at)
        RETURNING check_id, outcome
    ), counted AS (
        INSERT INTO tallies SELECT 'attempts', outcome, count(*) FROM ended GROUP BY outcome
    )
    SELECT check_id FROM ended
""")

_LEAVE = """
    UPDATE runs SET deadline_at = least(deadline_at, now() + %(seconds)s * interval '1 second')
    WHERE id = %(id)s
"""
_ASK_AGAIN = """
    UPDATE runs SET deadline_at =
        created_at + CAST(options ->> 'deadline_seconds' AS float8) * interval '1 second'
    WHERE id = ANY(%(ids)s)
"""

_EXPORTING = text("""
    UPDATE manifests SET next_sha256 = :sha256, next_size = :size WHERE run_id = :run_id AND number = :number
""")

_EXPORTED = text("""
    UPDATE manifests SET
        sha256 = next_sha256, size = next_size, next_sha256 = NULL, next_size = NULL, exported_at = :began
    WHERE run_id = :run_id AND number = :number AND next_sha256 IS NOT NULL
""")


class Store:
    """The farm's state in PostgreSQL.

    Every method raises `ServerDown` when PostgreSQL cannot be reached; the change was then made whole or not
    at all, and calling again is safe. `max_failures` attempts may fail before a check ends as `judge_error`.
    """

    def __init__(self, engine: Engine, *, max_failures: int = ATTEMPTS) -> None:
        self.engine = engine
        self.max_failures = max_failures
        self._rounds: dict[Place, Round] = defaultdict(Round)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Commit the changes of the block, all or none.

        Raises `CutOff` where the connection is lost before the commit.
        """
        with reaching(self.engine), self.engine.begin() as connection, before_commit(connection):
            yield connection

    def register(self, served: Iterable[Served]) -> None:
        """Say which environments a worker serves, now."""
        rows = [asdict(each) | {"tiers": list(each.tiers), "fresh": _FRESH_SECONDS} for each in served]
        for row in rows:
            with single(self.engine) as cursor:
                cursor.execute(_REGISTER, row)

    def declare(
        self, name: str, *, kind: str = Kind.LEAN, toolchain: str = "", tiers: Sequence[str] = tuple(Tier)
    ) -> bool:
        """Make an environment known that no worker serves yet; returns whether the farm knows it so now.

        One that workers serve, or served last as the same kind, is left as it is.

        Besides its kind its version may be known beforehand, "" where it is not, and its tiers.
        """
        values = {"name": name, "kind": kind, "toolchain": toolchain, "tiers": list(tiers)}
        with self.transaction() as connection:
            return connection.execute(_DECLARE, values).rowcount > 0

    def claim(
        self,
        served: Sequence[str],
        *,
        worker: str,
        lease_seconds: float,
        most: int = 1,
        suspects: bool = True,
        front: Front | None = None,
        tiers: Tiers = MappingProxyType({}),
        traced: bool = False,
        alike: Alike | None = None,
        kinds: Kinds = MappingProxyType({}),
    ) -> list[Claim]:
        """Take up to `most` queued checks of these environments, those first whose turn it is.

        Tenants take turns, each by its weight, and within them their runs. Among equals, the environments
        come in the order given. Of checks that have one attempt left, one is taken at most, and none without
        `suspects`. `front` has this worker's cursors into the queues. With `tiers` only checks are claimed
        whose tier this worker gives in their environment, with `kinds` none that was assembled for another
        proof system than this worker has there. A check that this release cannot read, such as one with a
        newer release's option, is given back unharmed. Claims have their `traceparent` if `traced`.
        With `alike` checks that share one image are claimed, whatever their run's turn, and none while a
        check of a more urgent class waits.
        """
        front = front or Front(rounds=self._rounds)
        queues = [(name, priority) for priority in Priority for name in served]
        values = {
            "worker": worker,
            "lease": lease_seconds,
            "most": most,
            "suspects": suspects,
            "last": max(1, self.max_failures - 1),
            "kinds": json.dumps(dict(kinds)),
            "traced": traced,
        }
        if alike is not None:
            return self._claim_alike(alike, queues, front, tiers, values)
        for _ in range(_MOST_CLAIMS):
            found, claims = self._claim(queues, front, tiers, values)
            if claims or not found or not front.has_room:
                break
        return claims if claims or front.gives_up() else self._claim(queues, front, tiers, values)[1]

    def is_overtaken(
        self,
        served: Sequence[str],
        priority: int,
        *,
        front: Front,
        tiers: Tiers = MappingProxyType({}),
        kinds: Kinds = MappingProxyType({}),
    ) -> bool:
        """Return whether a check of a class before this one waits in these environments.

        `front` learns where such checks stand, so that the next claim finds them.
        """
        queues = [(name, each) for each in Priority if each < priority for name in served]
        if not queues:
            return False
        asked = self._asked(queues, front.look(queues), front) | _tiers_of(queues, tiers)
        asked["kinds"] = json.dumps(dict(kinds))
        with single(self.engine) as cursor:
            rows = cursor.execute(_BEFORE, asked).fetchall()
        front.looked(queues, [_head(queues, row) for row in rows])
        return bool(rows)

    def _claim(
        self, queues: Sequence[Place], front: Front, tiers: Tiers, values: Mapping[str, Any]
    ) -> tuple[bool, list[Claim]]:
        """Claim once; returns whether a check was found, and the claims that this release can read."""
        spans = front.spans(queues)
        asked = {**values, **_spanned(spans, tiers), "unreadable": front.unreadable}
        with single(self.engine) as cursor:
            rows = cursor.execute(_CLAIM_BY_TURN, asked).fetchall()
        places = [place for place, _ in spans]
        heads = [_head(places, each) for each in rows[0]["heads"]] if rows else []
        front.saw(spans, heads, is_all=not rows or rows[0]["found"] < values["most"])
        _took(front, places, rows, values["most"])
        return bool(rows), self._read(rows, front)

    def _claim_alike(
        self,
        alike: Alike,
        queues: Sequence[Place],
        front: Front,
        tiers: Tiers,
        values: Mapping[str, Any],
    ) -> list[Claim]:
        """Claim checks of one image once, and return the claims that this release can read."""
        place = alike.environment, Priority(alike.priority)
        spans = front.spans_alike(place, alike.tenant, alike.turn)
        before = [each for each in queues if each[1] < alike.priority]
        looked = {**self._asked(before, front.known(before), front), **_tiers_of(before, tiers)}
        with single(self.engine) as cursor:
            rows = cursor.execute(
                _CLAIM_ALIKE, {**values, **looked, **alike.row(), **_spanned(spans, tiers)}
            ).fetchall()
        _took(front, [place for place, _ in spans], rows, values["most"])
        return self._read(rows, front)

    @staticmethod
    def _asked(queues: Sequence[Place], turns: list[int], front: Front) -> dict[str, object]:
        return {
            "names": [name for name, _ in queues],
            "classes": [int(priority) for _, priority in queues],
            "turns": turns,
            "unreadable": front.unreadable,
        }

    def _read(self, rows: Sequence[DictRow], front: Front) -> list[Claim]:
        """Return the claims that rows are, each read by itself; give back those that cannot be read."""
        claims, unreadable = [], []
        for row in rows:
            try:
                claims.append(Claim.of_row(row))
            except Exception as error:  # noqa: BLE001 # a newer release's check can break any step of reading it
                why = f"farm {farm_version()} cannot read this check: {error}"
                if front.cannot_read(row["id"], why):
                    _log.warning("Check %d is left to newer workers: %s; upgrade this worker", row["id"], why)
                unreadable.append(unread(row, why))
        if unreadable:
            self._give_back_unread(unreadable)
        return claims

    def _give_back_unread(self, unreadable: Sequence[Mapping[str, object]]) -> None:
        try:
            self._give_back(unreadable)
        except ServerDown as error:  # the other claims must not be lost with them
            _log.warning("%s; %d checks that cannot be read are left to their leases", error, len(unreadable))

    def waiting(
        self,
        served: Sequence[str],
        tiers: Tiers = MappingProxyType({}),
        kinds: Kinds = MappingProxyType({}),
    ) -> list[str]:
        """Return the environments, of those given, whose queue has a check of these tiers and kinds."""
        values = {"names": list(served), "tiers": _tiers(served, tiers), "kinds": json.dumps(dict(kinds))}
        with single(self.engine) as cursor:
            return [row["name"] for row in cursor.execute(_WAITING, values)]

    def lost(self, held: Sequence[Hold]) -> list[Hold]:
        """Return the holds that this worker has lost: their checks were cancelled or taken back."""
        with single(self.engine) as cursor:
            return [_hold(row) for row in cursor.execute(_LOST, _held(held))]

    def extend(self, held: Sequence[Hold], *, lease_seconds: float) -> None:
        """Extend leases; one that another transaction has locked is extended the next time."""
        with single(self.engine) as cursor:
            cursor.execute(_EXTEND, _held(held) | {"lease": lease_seconds})

    def begun(self, held: Sequence[Hold]) -> None:
        """Mark checks that were claimed ahead as begun, for display only."""
        with single(self.engine) as cursor:
            cursor.execute(_BEGUN, _held(held))

    def record(self, decisions: Sequence[tuple[Claim, Decision]]) -> Recorded:
        """Record verdicts; those of attempts that are no longer held are refused, and change nothing.

        A verdict by chance is one line's own: the other lines of that check get new checks. Verdicts on a
        statement that is proved and disproved are taken back or marked (`farm.store.contradictions`). Nobody
        reads such a verdict as it was before: of two recorded at once, the later one waits for the other.
        """
        asked = {claim.hold: contradictions.asked_of(claim, decision) for claim, decision in decisions}
        values = {"given": storable_json([_given(*each, asked[each[0].hold]) for each in decisions])}
        verdicts = {claim.hold: decision.verdict for claim, decision in decisions}
        stated = [each for each in asked.values() if each is not None]
        with single(self.engine) as cursor, _together(cursor, verdicts.values(), stated):
            if stated:
                contradictions.lock(cursor, stated)
            rows = cursor.execute(_FINISH, values).fetchall()
            done = {row["id"]: verdicts[_hold(row)] for row in rows}
            chance = [id_ for id_, verdict in done.items() if verdict.by_chance]
            anew = waiting.part(cursor, chance) if chance else 0
            settled = contradictions.settle(cursor, [each for each in stated if each.check_id in done])
        proved = tuple(id_ for id_, verdict in done.items() if verdict.outcome in _DECIDED)
        return Recorded(check_ids=frozenset(done), anew=anew, proved=proved, settled=settled)

    def stop_rivals(self, proved: Sequence[int]) -> None:
        """Cancel the rest of the groups that these checks are the first proofs of, where a run asks for that.

        Not a part of recording the proofs: should it never come to this, the rest is checked for nothing.
        """
        with single(self.engine) as cursor:
            any_races = waiting.any_races(cursor, proved)
        if any_races:
            with self.transaction() as connection:
                waiting.stop_rivals(connection, proved)

    def give_back(self, returned: Sequence[Released]) -> frozenset[int]:
        """Queue leased checks again, with the outcomes of attempts; returns those with a valid lease."""
        return self._give_back([each.row() for each in returned])

    def _give_back(self, given: Sequence[Mapping[str, object]]) -> frozenset[int]:
        with self.transaction() as connection:
            return frozenset(connection.scalars(_GIVE_BACK, {"given": storable_json(given)}))

    def sweep(self, *, checker_version: str, answer_seconds: float = math.inf) -> Swept:
        """Requeue checks of dead workers, cancel lines past their deadline; see `sweeping.sweep`."""
        most = self.max_failures
        return sweep(self.engine, most=most, checker_version=checker_version, answer_seconds=answer_seconds)

    def leave(self, batch_id: str, *, seconds: float) -> None:
        """Cancel the queued checks of a batch after `seconds`, unless its client asks for it again."""
        with single(self.engine) as cursor:
            cursor.execute(_LEAVE, {"id": batch_id, "seconds": seconds})

    def ask_again(self, batch_ids: Sequence[str]) -> None:
        """Restore the deadlines of batches whose clients have asked for them again."""
        with single(self.engine) as cursor:
            cursor.execute(_ASK_AGAIN, {"ids": list(batch_ids)})

    def exporting(self, run_id: str, number: int, *, sha256: str, size: int) -> None:
        """Remember the bytes that a manifest is about to have, so that the farm knows its own work again.

        Raises `UnknownRun` when the run was deleted: lines may have been missing when they were read.
        """
        values = {"run_id": run_id, "number": number, "sha256": sha256, "size": size}
        with self.transaction() as connection:
            if not connection.execute(_EXPORTING, values).rowcount:
                raise gone(run_id)

    def exported(self, run_id: str, number: int, *, began: datetime) -> None:
        """Remember that the manifest has those bytes now, by an export that `began` then."""
        values = {"run_id": run_id, "number": number, "began": began}
        with self.transaction() as connection:
            connection.execute(_EXPORTED, values)


def _given(claim: Claim, decision: Decision, asked: contradictions.Asked | None) -> dict[str, object]:
    return {**decision.row(claim), "sentence": None if asked is None else asked.row}


def _together(
    cursor: Cursor[DictRow], verdicts: Iterable[Verdict], stated: Sequence[contradictions.Asked]
) -> AbstractContextManager[object]:
    """Make one transaction of recording these verdicts, where more than one statement does it."""
    is_several = bool(stated) or any(verdict.by_chance for verdict in verdicts)
    return cursor.connection.transaction() if is_several else nullcontext()


def _tiers(names: Sequence[str], tiers: Tiers) -> list[str]:
    """Return for each environment the tiers that can be had there, as one text: an array has no arrays."""
    return [" ".join(tiers.get(name, Tier)) for name in names]


def _tiers_of(places: Sequence[Place], tiers: Tiers) -> dict[str, object]:
    return {"tiers": _tiers([name for name, _ in places], tiers)}


def _spanned(spans: Sequence[tuple[Place, Span]], tiers: Tiers) -> dict[str, object]:
    names = [name for (name, _), _ in spans]
    return {
        "span_names": names,
        "span_tiers": _tiers(names, tiers),
        "span_classes": [int(priority) for (_, priority), _ in spans],
        "firsts": [span.first for _, span in spans],
        "span_turns": [span.turn for _, span in spans],
        "lasts": [span.last for _, span in spans],
    }


def _head(places: Sequence[Place], row: Mapping[str, Any]) -> Head:
    part = row["place"] - 1
    return Head(place=places[part], tenant=row["tenant"], turn=row["turn"], part=part)


def _took(front: Front, places: Sequence[Place], rows: Sequence[DictRow], most: int) -> None:
    """Note in each queue's round which tenants the claimed checks are of."""
    taken: dict[Place, list[Taken]] = defaultdict(list)
    for row in rows:
        one = Taken(tenant=row["tenant"], weight=row["weight"], in_order=row["in_order"])
        taken[places[row["place"] - 1]].append(one)
    for place, some in taken.items():
        front.took(place, some, most)


def _held(held: Sequence[Hold]) -> dict[str, object]:
    ids, attempts, moments = ([*each] for each in zip(*held, strict=True)) if held else ([], [], [])
    return {"ids": ids, "attempts": attempts, "moments": moments}


def _hold(row: DictRow) -> Hold:
    return row["id"], row["attempt"], row["claimed_at"]
