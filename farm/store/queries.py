"""Queries of the commands and the service: runs, their progress, their verdicts. They only read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from psycopg.rows import DictRow
from sqlalchemy import Engine, RowMapping, text

from farm.assembly.challenge import Challenge
from farm.characters import decoded, storable
from farm.errors import ServerDown, UnknownRun, gone
from farm.judging.advisories import advisories
from farm.judging.forgeable import is_forgeable
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome
from farm.manifest.lines import Fingerprint
from farm.store.candidates import challenges_of
from farm.store.environments import Pending, ServedEnvironment
from farm.store.postgres import reaching, single
from farm.store.records import LAST_LINE, SHOWN_STATUS, Item, Judged, judged, judged_items
from farm.store.workers import pending_of
from farm.task import Task

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredRun:
    """A run of `farm submit` or `farm rejudge`, or a batch, which has no `manifests`."""

    id: str
    created_at: datetime
    options: Mapping[str, Any]
    manifests: tuple[Path, ...]

    @property
    def tier(self) -> str:
        """The tier that it was submitted with; "" where an early farm did not write that down."""
        return str(self.options.get("assurance", {}).get("tier", ""))

    @property
    def rechecks(self) -> str | None:
        """The run whose lines it judges again; None where it is no recheck."""
        return rechecked(self.options)

    def place(self, manifest: int, line: int) -> str:
        """Return a line's name for people: its file and line, or its number in a batch."""
        return f"{self.manifests[manifest].name}:{line}" if self.manifests else f"item {line}"


def rechecked(options: Mapping[str, Any]) -> str | None:
    """Return the run that a run with these options rechecks, None for none."""
    return (options.get("recheck") or {}).get("of")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """How far a run is: lines by status and by tier, and verdicts by (verdict, reason).

    `shared` lines wait for, or were answered by, a check that another line brought. Among
    proved lines, `unchecked` ones were compared with no statement, `open_below` ones rest on a sorry in
    the dataset, `unrebuilt` ones on a module that the farm did not rebuild, and `trusting` ones on something
    else besides the kernel.
    """

    statuses: Mapping[str, int]
    verdicts: Mapping[tuple[str, str], int]
    tiers: Mapping[str, int] = field(default_factory=dict)
    shared: int = 0
    unchecked: int = 0
    trusting: int = 0
    open_below: int = 0
    unrebuilt: int = 0

    @property
    def total(self) -> int:
        """All lines of the run."""
        return sum(self.statuses.values())

    @property
    def unfinished(self) -> int:
        """Lines that wait for a verdict."""
        return self.statuses.get("queued", 0) + self.statuses.get("running", 0)

    @property
    def done(self) -> int:
        """Lines that have a verdict or were cancelled."""
        return self.total - self.unfinished

    @property
    def unjudged(self) -> int:
        """Lines that the farm could not judge."""
        return sum(n for (verdict, _), n in self.verdicts.items() if verdict == Outcome.JUDGE_ERROR)


@dataclass(frozen=True, kw_only=True, slots=True)
class Solved:
    """How many names of a run there are, how many problems, and of how many of each something is proved.

    All lines of a group are answers to one problem; without a group, all lines of a name are; a line with
    neither is a problem of its own.
    """

    names: int
    names_proved: int
    problems: int
    problems_solved: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredManifest:
    """A manifest of a run, and the bytes it may have: as the farm last read or wrote it.

    It has two fingerprints if an export died between announcing the new file and renaming it.
    """

    number: int
    path: Path
    fingerprints: tuple[Fingerprint, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Waited:
    """The check that an item waits for, and whether there is nothing to wait for any more."""

    check_id: int
    is_settled: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class BroughtBatch:
    """A batch's `accept`, the weaker proofs that earn a reward, and its idempotency keys by line.

    `feedback`: its answers tell a model what to correct.
    `is_left`: its client disconnected before the answer, and has not asked for the batch since.
    """

    accept: tuple[str, ...]
    feedback: bool
    keys: Mapping[str, str]
    is_left: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedLine:
    """What a line's proof was held against: the program that states the theorem, its name, axioms and task.

    Program and challenge begin with the line's context up to `context_end`, 0 without one.
    """

    challenge: str
    name: str
    axioms: tuple[str, ...]
    native: bool
    context_end: int
    task: Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Untiered:
    """Lines that wait for a tier in an environment whose workers give other tiers, those in `had`."""

    environment: str
    tier: str
    had: Sequence[str]
    lines: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Misfits:
    """Lines that were assembled while their environment was of the kind `was`; it is of another `now`."""

    environment: str
    was: str
    now: str
    lines: int


_RUNS = """
    SELECT runs.id, created_at, options, array_remove(array_agg(path ORDER BY number), NULL) AS manifests
    FROM runs LEFT JOIN manifests ON manifests.run_id = runs.id
"""

_WAITED = """
    SELECT run, nth, check_id, cancelled IS NOT NULL OR status IN ('done', 'cancelled') AS is_settled
    FROM unnest(CAST(%(runs)s AS text[]), CAST(%(lines)s AS integer[])) AS item (run, nth)
    JOIN LATERAL (
        SELECT check_id, cancelled FROM jobs
        WHERE run_id = run AND manifest = 0 AND jobs.line = nth LIMIT 1
    ) AS job ON true
    JOIN LATERAL (SELECT status FROM checks WHERE id = check_id LIMIT 1) AS asked ON true
"""
_BATCH = """
    SELECT options -> 'places' AS places,
           (SELECT array_agg(line ORDER BY line) FROM jobs WHERE run_id = runs.id) AS lines
    FROM runs WHERE id = %(id)s AND owner = %(owner)s
"""
# A batch whose client went away has an earlier deadline than it was given; one that is over has none.
_BROUGHT_BATCHES = """
    SELECT id, options -> 'accept' AS accept, coalesce(options ->> 'feedback' = 'true', false) AS feedback,
           (SELECT array_agg(ARRAY[line::text, key]) FROM item_keys WHERE run_id = runs.id) AS keys,
           coalesce(deadline_at < coalesce(
               created_at + CAST(options ->> 'deadline_seconds' AS float8) * interval '1 second', 'infinity'
           ), false) AS is_left
    FROM runs WHERE id = ANY(%(ids)s) AND owner = %(owner)s
"""
_QUEUE_LENGTH = """
    SELECT count(*) AS n FROM (SELECT FROM checks WHERE status = 'queued' LIMIT %(most)s) AS queued
"""

_TALLY = """
    SELECT {shown} AS status, verdict, reason, tier, count(*) AS n,
           count(*) FILTER (WHERE shared) AS shared,
           count(*) FILTER (WHERE statement = 'unchecked') AS unchecked,
           count(*) FILTER (WHERE NOT trusts <@
               ARRAY['a sorry of the dataset', 'an answer that was not compared',
                     'a module that the farm did not rebuild']) AS trusting,
           count(*) FILTER (WHERE 'a module that the farm did not rebuild' = ANY(trusts)) AS unrebuilt,
           count(*) FILTER (WHERE 'a sorry of the dataset' = ANY(trusts)) AS open_below
    FROM jobs JOIN checks ON checks.id = check_id
    LEFT JOIN verdicts ON verdicts.check_id = checks.id AND cancelled IS NULL
    WHERE run_id = :run GROUP BY 1, 2, 3, 4
"""
# Each check is looked up by its id alone: before ANALYZE has counted a load, PostgreSQL takes the index of
# queued checks for empty, and would scan all of it for each line.
_QUEUED_OF_RUN = """
    WITH queued AS MATERIALIZED (
        SELECT environment, tier, kind, count(*) AS lines
        FROM jobs CROSS JOIN LATERAL (
            SELECT environment, tier, kind, status FROM checks WHERE id = check_id LIMIT 1
        ) AS asked
        WHERE run_id = :run_id AND cancelled IS NULL AND status = 'queued' GROUP BY 1, 2, 3
    )
"""


def _only_pending(found: Sequence[Pending]) -> ServedEnvironment:
    """Return an environment that workers are configured with and none has ever served."""
    return ServedEnvironment(
        name=found[0].name,
        kind=found[0].kind,
        digest="",
        toolchain="",
        tiers=tuple(Tier),
        silent_seconds=math.inf,
        pending=tuple(found),
    )


def _asked_of(rows: Iterable[DictRow]) -> dict[str, BroughtBatch]:
    return {
        row["id"]: BroughtBatch(
            accept=tuple(row["accept"] or ()),
            feedback=row["feedback"],
            keys=dict(row["keys"] or ()),
            is_left=row["is_left"],
        )
        for row in rows
    }


class Queries:
    """Questions to the store; every one raises `ServerDown` when PostgreSQL cannot be reached."""

    def __init__(self, engine: Engine, *, most_seconds: int | None = None) -> None:
        """Take the way to PostgreSQL; a statement that takes longer than `most_seconds` is no answer."""
        self.engine, self._most_seconds = engine, most_seconds

    def _all(self, statement: str, **values: object) -> list[RowMapping]:
        with reaching(self.engine), self.engine.connect() as connection:
            if self._most_seconds is not None:
                connection.execute(text(f"SET LOCAL statement_timeout = '{self._most_seconds}s'"))
            return list(connection.execute(text(statement), values).mappings())

    def recorded_until(self) -> datetime:
        """Return the newest time such that every verdict that bears an earlier one can be seen.

        A verdict bears the time at which its transaction began, so one that a worker is recording is older
        than now and cannot be seen yet.
        """
        (row,) = self._all("SELECT recorded_until() AS at")
        at: datetime = row["at"]
        return at

    def served(self) -> list[ServedEnvironment]:
        """Return the environments that workers have served or have a table of, and declared ones, by name."""
        rows = self._all(
            """
            SELECT name, kind, digest, toolchain, tiers, checker, checker_version,
                   coalesce(extract(epoch FROM now() - seen_at)::float, 'infinity') AS silent_seconds
            FROM environments ORDER BY name
            """
        )
        pending: dict[str, list[Pending]] = {}
        for each in self.pending():
            pending.setdefault(each.name, []).append(each)
        known = [ServedEnvironment(**row, pending=tuple(pending.pop(row["name"], ()))) for row in rows]
        return sorted([*known, *map(_only_pending, pending.values())], key=lambda each: each.name)

    def pending(self) -> list[Pending]:
        """Return the environments that workers are configured with and do not serve, by worker."""
        rows = self._all(
            """
            SELECT name, pending, extract(epoch FROM now() - seen_at)::float8 AS silent_seconds FROM workers
            WHERE seen_at >= now() - lease_seconds * interval '1 second' AND pending <> '[]'
            ORDER BY name
            """
        )
        return [
            each for row in rows for each in pending_of(row["pending"], row["name"], row["silent_seconds"])
        ]

    def signs_of_life(self, *, within_seconds: float) -> str:
        """Return a message that lists the served environments with the age of their last heartbeat.

        Raises `ServerDown` when all heartbeats are older than `within_seconds`.
        """
        known = self.served()
        found = [each for each in known if not each.is_only_declared]
        pending = [each for environment in known for each in environment.pending]
        if pending and all(each.silent_seconds > within_seconds for each in found):
            raise ServerDown(
                "no worker serves an environment yet: "
                + "; ".join(f"{each.name}: {each.words}" for each in pending)
            )
        if not found:
            raise ServerDown("no worker has ever served an environment; start one with: farm worker")
        words = "; ".join(
            [
                *(f"{e.name} ({e.toolchain}), heard of {e.silent_seconds:.0f} s ago" for e in found),
                *(f"{each.name}: {each.words}" for each in pending),
            ]
        )
        if all(each.silent_seconds > within_seconds for each in found):
            raise ServerDown(
                f"no worker was heard of for {within_seconds:g} s (FARM_LEASE_SECONDS): {words}; "
                "start one with: farm worker"
            )
        return words

    def unserved(self, run_id: str, *, seconds: float) -> list[str]:
        """Return the environments that a run still waits for and no worker has served for so long."""
        rows = self._all(
            _QUEUED_OF_RUN
            + """
            SELECT name FROM environments
            WHERE coalesce(seen_at, '-infinity') < now() - :seconds * interval '1 second'
              AND name IN (SELECT environment FROM queued)
            """,
            run_id=run_id,
            seconds=seconds,
        )
        return [row["name"] for row in rows]

    def untiered(self, run_id: str) -> list[Untiered]:
        """Return which lines of a run wait for a tier that their environment is served without."""
        rows = self._all(
            _QUEUED_OF_RUN
            + """
            SELECT environment, tier, environments.tiers AS had, sum(lines)::bigint AS lines
            FROM queued JOIN environments ON environments.name = environment
            WHERE tier <> ALL(tiers) GROUP BY 1, 2, 3 ORDER BY 1, 2
            """,
            run_id=run_id,
        )
        return [Untiered(**row) for row in rows]

    def misfits(self, run_id: str) -> list[Misfits]:
        """Return which lines of a run wait in an environment that is of another kind by now."""
        rows = self._all(
            _QUEUED_OF_RUN
            + """
            SELECT environment, queued.kind AS was, environments.kind AS now, sum(lines)::bigint AS lines
            FROM queued JOIN environments ON environments.name = environment
            WHERE queued.kind <> environments.kind GROUP BY 1, 2, 3 ORDER BY 1, 2
            """,
            run_id=run_id,
        )
        return [Misfits(**row) for row in rows]

    def holed(self, run_id: str) -> dict[str, int]:
        """Return how many lines of a run were proved by a kernel with known holes, by its toolchain."""
        rows = self._all(
            """
            SELECT toolchain, count(*) AS n
            FROM jobs JOIN checks ON checks.id = check_id JOIN verdicts ON verdicts.check_id = checks.id
            WHERE run_id = :run AND cancelled IS NULL AND verdict = 'proved' AND tier = 'kernel'
            GROUP BY 1 ORDER BY 1
            """,
            run=run_id,
        )
        return {row["toolchain"]: row["n"] for row in rows if advisories(row["toolchain"])}

    def expired(self, *, within_seconds: float = 0.0) -> int:
        """Return the number of leases that have expired, or will within `within_seconds`."""
        (row,) = self._all(
            """
            SELECT count(*) AS n FROM checks
            WHERE status = 'running' AND lease_until < now() + :within * interval '1 second'
            """,
            within=within_seconds,
        )
        return int(row["n"])

    def queued_in(self, run_id: str) -> list[str]:
        """Return the environments in which checks of a run are queued."""
        rows = self._all(
            _QUEUED_OF_RUN
            + """
            SELECT name FROM environments WHERE name IN (SELECT environment FROM queued)
            """,
            run_id=run_id,
        )
        return [row["name"] for row in rows]

    def environments_of(self, run_id: str) -> list[str]:
        """Return the environments that the lines of a run name, in the order of the alphabet."""
        rows = self._all(
            "SELECT DISTINCT environment FROM jobs JOIN checks ON checks.id = check_id WHERE run_id = :run",
            run=run_id,
        )
        return sorted(row["environment"] for row in rows)

    def runs(self, *, most: int = 20) -> list[StoredRun]:
        """Return the newest runs, newest first, without batches."""
        rows = self._all(
            f"{_RUNS} WHERE owner IS NULL GROUP BY runs.id ORDER BY created_at DESC LIMIT :most", most=most
        )
        return [_run(row) for row in rows]

    def runs_named(self, ids: Sequence[str]) -> list[StoredRun]:
        """Return the runs with these ids, newest first; an id without a run is left out."""
        rows = self._all(
            f"{_RUNS} WHERE runs.id = ANY(:ids) GROUP BY runs.id ORDER BY created_at DESC", ids=list(ids)
        )
        return [_run(row) for row in rows]

    def chosen(self, prefixes: Sequence[str] | None) -> list[StoredRun]:
        """Return the runs that begin with these, without any the newest run; raises `UnknownRun`."""
        return [self.run(each) for each in prefixes or (None,)]

    def run(self, prefix: str | None) -> StoredRun:
        """Return the run whose id begins so, the newest one for None; raises `UnknownRun`.

        A batch is found by its whole id.
        """
        if prefix is None:
            found = self.runs(most=1)
        else:
            named = "runs.id = :prefix OR owner IS NULL AND starts_with(runs.id, :prefix)"
            rows = self._all(f"{_RUNS} WHERE {named} GROUP BY runs.id LIMIT 2", prefix=prefix)
            found = [_run(row) for row in rows]
        if len(found) == 1:
            return found[0]
        if prefix is None:
            raise UnknownRun("there is no run yet; create one with: farm submit MANIFEST")
        problem = "more than one run begins with" if found else "no run begins with"
        raise UnknownRun(f"{problem} {prefix!r}; list all runs with: farm status --runs")

    def tally(self, run_id: str) -> Tally:
        """Return how far a run is."""
        rows = self._all(_TALLY.format(shown=SHOWN_STATUS), run=run_id)
        statuses: Counter[str] = Counter()
        tiers: Counter[str] = Counter()
        worth: Counter[tuple[str, str]] = Counter()
        for row in rows:
            statuses[row["status"]] += row["n"]
            tiers[row["tier"]] += row["n"]
            if row["verdict"] is not None:
                worth[row["verdict"], row["reason"]] += row["n"]
        proved = [row for row in rows if row["verdict"] == Outcome.PROVED]
        return Tally(
            statuses=dict(statuses),
            verdicts=dict(worth),
            tiers=dict(tiers),
            shared=sum(row["shared"] for row in rows),
            unchecked=sum(row["unchecked"] for row in proved),
            trusting=sum(row["trusting"] for row in proved),
            open_below=sum(row["open_below"] for row in proved),
            unrebuilt=sum(row["unrebuilt"] for row in proved),
        )

    def awaited(self, run_id: str) -> frozenset[int]:
        """Return the ids of the checks that unfinished lines of a run wait for."""
        rows = self._all(
            """
            SELECT check_id FROM jobs JOIN checks ON checks.id = check_id
            WHERE run_id = :run AND cancelled IS NULL AND status IN ('queued', 'running')
            """,
            run=run_id,
        )
        return frozenset(row["check_id"] for row in rows)

    def solved(self, run_id: str) -> Solved:
        """Return how many names and problems of a run have a proof."""
        (row,) = self._all(
            """
            SELECT count(DISTINCT name) AS names,
                   count(DISTINCT name) FILTER (WHERE is_proved) AS names_proved,
                   count(DISTINCT problem) AS problems,
                   count(DISTINCT problem) FILTER (WHERE is_proved) AS problems_solved
            FROM (
                SELECT name, verdict = 'proved' AS is_proved,
                       coalesce('g' || group_name, 'n' || nullif(name, ''), manifest || ':' || line)
                           AS problem
                FROM jobs LEFT JOIN verdicts ON verdicts.check_id = jobs.check_id AND cancelled IS NULL
                WHERE jobs.run_id = :run
            ) AS answers
            """,
            run=run_id,
        )
        return Solved(**row)

    def brought(self, run_id: str) -> int:
        """Return how many lines of a run are judged by a `predicted_proof` that they brought."""
        (row,) = self._all(
            """
            SELECT count(*) AS n FROM jobs
            WHERE run_id = :run AND segments::text LIKE '%"predicted_proof"%'
            """,
            run=run_id,
        )
        return int(row["n"])

    def forgeable(self, run_id: str) -> int:
        """Return how many verdicts of a run were made where a proof could forge them."""
        rows = self._all(
            """
            SELECT isolation, count(*) AS n FROM jobs JOIN verdicts USING (check_id)
            WHERE run_id = :run AND cancelled IS NULL GROUP BY isolation
            """,
            run=run_id,
        )
        return sum(row["n"] for row in rows if is_forgeable(row["isolation"]))

    def contested(self, run_id: str) -> int:
        """Return how many verdicts of a run are contested: another key proved the contrary."""
        (row,) = self._all(
            """
            SELECT count(*) AS n FROM jobs JOIN verdicts USING (check_id)
            WHERE run_id = :run AND cancelled IS NULL AND contested
            """,
            run=run_id,
        )
        return int(row["n"])

    def manifests(self, run_id: str) -> list[StoredManifest]:
        """Return the manifests of a run in their order."""
        rows = self._all("SELECT * FROM manifests WHERE run_id = :run ORDER BY number", run=run_id)
        return [
            StoredManifest(
                number=row["number"],
                path=Path(row["path"]),
                fingerprints=tuple(
                    Fingerprint(sha256=sha256, size=row[size])
                    for sha256, size in ((row["sha256"], "size"), (row["next_sha256"], "next_size"))
                    if sha256 is not None
                ),
            )
            for row in rows
        ]

    def manifest(self, run_id: str, number: int) -> StoredManifest:
        """Return one manifest of a run; raises `UnknownRun` when the run was deleted."""
        for each in self.manifests(run_id):
            if each.number == number:
                return each
        raise gone(run_id)

    def require_there(self, run_id: str) -> None:
        """Raise `UnknownRun` when a run was deleted: not all of its lines may have been read then."""
        if not self._all("SELECT FROM runs WHERE id = :run", run=run_id):
            raise gone(run_id)

    def judged(
        self, run_id: str, manifest: int, *, first: int = 0, last: int = LAST_LINE
    ) -> Generator[Judged]:
        """Yield lines of a manifest in their order, as `farm.store.records.judged` does.

        Raises `UnknownRun` at the end when the run was deleted while it was read.
        """
        with reaching(self.engine), self.engine.connect() as connection:
            driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
            yield from judged(driver, run_id, manifest, first=first, last=last)
        self.require_there(run_id)

    def told(self, items: Sequence[Item], owner: str) -> tuple[dict[str, BroughtBatch], list[Judged]]:
        """Return this owner's batches of these items, and the items in the order given.

        Unknown items are left out.
        """
        with single(self.engine) as cursor, cursor.connection.pipeline():
            cursor.execute(_BROUGHT_BATCHES, {"ids": list({batch for batch, _ in items}), "owner": owner})
            judged = judged_items(cursor.connection, items)
            return _asked_of(cursor), list(judged)

    def waited(self, items: Sequence[Item]) -> dict[Item, Waited]:
        """Return the check of each of these items; unknown items are left out."""
        values = {"runs": [run for run, _ in items], "lines": [line for _, line in items]}
        with single(self.engine) as cursor:
            return {
                (row["run"], row["nth"]): Waited(check_id=row["check_id"], is_settled=row["is_settled"])
                for row in cursor.execute(_WAITED, values)
            }

    def batch(self, batch_id: str, owner: str) -> list[Item]:
        """Return the items of a batch of this owner; raises `UnknownRun` for another or none.

        Items whose idempotency key was used before are items of other batches.
        """
        with single(self.engine) as cursor:
            row = cursor.execute(_BATCH, {"id": storable(batch_id), "owner": owner}).fetchone()
        if row is None:
            raise UnknownRun(f"no batch has the id {batch_id!r}")
        if row["places"] is not None:
            return [(batch, line) for batch, line in row["places"]]
        return [(batch_id, line) for line in row["lines"] or ()]

    def asked_of(self, items: Sequence[Item], owner: str) -> dict[str, BroughtBatch]:
        """Return those of the batches of items that belong to this owner."""
        values = {"ids": list({batch for batch, _ in items}), "owner": owner}
        with single(self.engine) as cursor:
            return _asked_of(cursor.execute(_BROUGHT_BATCHES, values))

    def queue_length(self, *, most: int) -> int:
        """Return how many checks wait, counted to `most`."""
        with single(self.engine) as cursor:
            row = cursor.execute(_QUEUE_LENGTH, {"most": most}).fetchone()
        return 0 if row is None else int(row["n"])

    def line(self, run_id: str, manifest: int, line: int) -> Judged:
        """Return one line of a manifest; raises `UnknownRun` when the run has no such line."""
        found = list(self.judged(run_id, manifest, first=line, last=line))
        if not found:
            raise UnknownRun(f"run {run_id} has no line {line}; list its lines with: farm show {run_id}")
        return found[0]

    def stated(self, run_id: str, manifest: int, line: int) -> StatedLine | None:
        """Return what a line's proof is held against, None for a line without a statement."""
        rows = self._all(
            """
            SELECT source, challenge_name, axioms, native, task, context_end
            FROM jobs JOIN checks ON checks.id = check_id JOIN programs ON sha256 = challenge_sha256
            WHERE run_id = :run_id AND manifest = :manifest AND line = :line
            """,
            run_id=run_id,
            manifest=manifest,
            line=line,
        )
        if not rows:
            return None
        found, task = rows[0], Task.read(rows[0]["task"])
        name = found["challenge_name"] or ""
        stored = Challenge(program=decoded(found["source"]), name=name)
        proofs, _ = challenges_of(stored, task.kind)
        return StatedLine(
            challenge=(proofs or stored).program,
            name=name,
            axioms=tuple(found["axioms"] if task.axioms is None else task.axioms),
            native=found["native"],
            context_end=found["context_end"],
            task=task,
        )

    def attempts(self, run_id: str, manifest: int, line: int) -> list[RowMapping]:
        """Return each attempt at a line: number, worker, times, outcome, detail."""
        return self._all(
            """
            SELECT number, worker, started_at, ended_at, outcome, detail
            FROM attempts JOIN jobs USING (check_id)
            WHERE run_id = :run_id AND manifest = :manifest AND line = :line
            UNION ALL
            SELECT attempt, worker, started_at, NULL, NULL, NULL
            FROM checks JOIN jobs ON check_id = checks.id
            WHERE run_id = :run_id AND manifest = :manifest AND line = :line
              AND status = 'running' AND NOT ahead
            ORDER BY number
            """,
            run_id=run_id,
            manifest=manifest,
            line=line,
        )


def _run(row: RowMapping) -> StoredRun:
    return StoredRun(**{**row, "manifests": tuple(map(Path, row["manifests"]))})
