"""Queries of the browser page: counts, pages of lines, problems, differences between runs.

A run may have a million lines, so a page is the rows after a key (keyset pagination, no OFFSET), and every
filter is answered from indexes alone. These queries only read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from pathlib import PurePath
from typing import Any, NamedTuple

from psycopg.rows import DictRow
from sqlalchemy import Engine

from farm.characters import storable
from farm.errors import UnknownRun
from farm.store.postgres import single
from farm.store.queries import Tally, rechecked
from farm.store.records import SHOWN_STATUS, RunLine, sentences

#: Lines, and problems, of one page.
PAGE = 100


class LinePlace(NamedTuple):
    """A line of a run: the number of its manifest, from 0, and its own, from 1."""

    manifest: int
    line: int


#: Characters of a sentence in a list.
_SENTENCE = 400

#: Verdicts of which a list shows no sentence.
_WITHOUT = (None, "proved")

#: Before every line.
START = LinePlace(0, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenRun:
    """A run or a batch; `owner` is the key that submitted a batch, None for a run of `farm submit`."""

    id: str
    created_at: datetime
    cancelled_at: datetime | None
    options: Mapping[str, Any]
    farm_version: str
    owner: str | None
    manifests: tuple[PurePath, ...]

    @property
    def tier(self) -> str:
        """The tier that it was submitted with; "" where an early farm did not write that down."""
        return str(self.options.get("assurance", {}).get("tier", ""))

    @property
    def batch_name(self) -> str:
        """The name that its client gave a batch, "" without one."""
        return str(self.options.get("batch_name") or "")

    @property
    def rechecks(self) -> str | None:
        """The run whose lines it judges again; None where it is no recheck."""
        return rechecked(self.options)


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenCheck:
    """A batch of one item without a name, in short; `id` is that of the batch.

    `detail` is the sentence of its verdict with the item's own place, "" for one that is proved.
    """

    id: str
    created_at: datetime
    name: str
    status: str
    cancelled: str | None
    verdict: str | None
    reason: str | None
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenHour:
    """The single checks that a key sent in the hour from `begins` on, counted by result.

    `newest` is the batch of the last of them, `name` the name of its item.
    """

    begins: datetime
    counts: Mapping[str, int]
    newest: str
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LineFilter:
    """A filter of lines; "" stands for any.

    `state` is a verdict, ``cancelled``, or ``waiting`` for lines without a verdict. `name` is a part of a
    name, `group` a whole group.
    """

    state: str = ""
    reason: str = ""
    name: str = ""
    group: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenLine:
    """A line of a run in short.

    `detail` is the sentence of its verdict with the line's own place, "" for one that is proved.
    """

    manifest: int
    line: int
    name: str
    group_name: str | None
    status: str
    cancelled: str | None
    verdict: str | None
    reason: str | None
    detail: str
    wall_seconds: float | None

    @property
    def place(self) -> LinePlace:
        """Which line it is."""
        return LinePlace(self.manifest, self.line)


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenProblem:
    """A problem of a run, by its first line: how many answers it has, how many are judged and proved."""

    manifest: int
    line: int
    name: str
    group_name: str | None
    samples: int
    judged: int
    proved: int

    @property
    def place(self) -> LinePlace:
        """Its first line."""
        return LinePlace(self.manifest, self.line)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckLimits:
    """The limits of a check, and the time of its verdict."""

    wall_seconds: float
    cpu_seconds: float
    memory_mib: int
    decided_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A line, or a problem by its first line, of two runs, with its results in each.

    A line has verdicts with their reasons; a problem has the numbers of its proved answers and of all.
    """

    manifest: int
    line: int
    name: str
    group_name: str | None
    one: str
    other: str

    @property
    def place(self) -> LinePlace:
        """The line in the first of the runs."""
        return LinePlace(self.manifest, self.line)


_RUN = """
    SELECT id, created_at, cancelled_at, options, farm_version, owner,
           ARRAY(SELECT path FROM manifests WHERE run_id = runs.id ORDER BY number) AS manifests
    FROM runs
"""
# There may be millions of batches; runs of `farm submit` have an index of their own.
_SUBMITTED = f"""
    {_RUN} WHERE owner IS NULL AND (
        %(before)s = '' OR (created_at, id) < (SELECT created_at, id FROM runs WHERE id = %(before)s))
    ORDER BY created_at DESC, id DESC LIMIT %(most)s
"""
# A single check is a batch of one item without a name: a person looks at them together, an hour at a time.
_SINGLE = """(NOT jsonb_exists(CAST(options AS jsonb), 'batch_name') AND NOT EXISTS (
    SELECT 1 FROM jobs WHERE run_id = runs.id AND manifest = 0 AND line > 1))"""
_NEWEST = "(SELECT * FROM runs WHERE owner = %(owner)s ORDER BY created_at DESC LIMIT 5000) AS runs"
_BATCHES = f"""
    {_RUN} WHERE owner = %(owner)s AND NOT {_SINGLE}
    ORDER BY created_at DESC, id LIMIT %(most)s
"""
_HOURS = f"""
    SELECT hour, word, count(*) AS n, max(created_at) AS last,
           (array_agg(id ORDER BY created_at DESC))[1] AS id,
           (array_agg(name ORDER BY created_at DESC))[1] AS name
    FROM (
        SELECT date_trunc('hour', runs.created_at, 'UTC') AS hour, runs.id, runs.created_at, name,
               CASE WHEN cancelled IS NOT NULL THEN 'cancelled' ELSE coalesce(verdict, 'queued') END AS word
        FROM {_NEWEST} JOIN jobs ON jobs.run_id = runs.id
        LEFT JOIN verdicts ON verdicts.check_id = jobs.check_id AND cancelled IS NULL
        WHERE {_SINGLE}
    ) AS checks GROUP BY 1, 2 ORDER BY 1 DESC, 2
"""
_CHECKS = f"""
    SELECT runs.id, runs.created_at, name, cancelled, {SHOWN_STATUS} AS status, verdict, reason
    FROM runs JOIN jobs ON jobs.run_id = runs.id
    JOIN LATERAL (SELECT status, ahead FROM checks WHERE id = check_id LIMIT 1) AS asked ON true
    LEFT JOIN verdicts ON verdicts.check_id = jobs.check_id AND cancelled IS NULL
    WHERE owner = %(owner)s AND runs.created_at >= %(hour)s
      AND runs.created_at < %(hour)s + interval '1 hour' AND {_SINGLE}
      AND (%(before)s = '' OR (runs.created_at, runs.id) < (
          SELECT created_at, id FROM runs WHERE id = %(before)s AND owner = %(owner)s))
    ORDER BY runs.created_at DESC, runs.id DESC LIMIT %(most)s
"""

# The indexes alone answer this. `farm.store.queries` counts more, and takes three times as long.
_COUNTS = """
    SELECT cancelled IS NOT NULL AS is_cancelled, verdict, reason, count(*) AS n,
           count(*) FILTER (WHERE statement = 'unchecked') AS unchecked,
           count(*) FILTER (WHERE NOT trusts <@
               ARRAY['a sorry of the dataset', 'an answer that was not compared',
                     'a module that the farm did not rebuild']) AS trusting,
           count(*) FILTER (WHERE 'a module that the farm did not rebuild' = ANY(trusts)) AS unrebuilt,
           count(*) FILTER (WHERE 'a sorry of the dataset' = ANY(trusts)) AS open_below
    FROM jobs LEFT JOIN verdicts ON verdicts.check_id = jobs.check_id AND cancelled IS NULL
    WHERE run_id = %(run)s GROUP BY 1, 2, 3
"""
_RUNNING = """
    SELECT count(*) AS n FROM checks JOIN jobs ON jobs.check_id = checks.id
    WHERE lease_until IS NOT NULL AND status = 'running' AND NOT ahead
      AND run_id = %(run)s AND cancelled IS NULL
"""

_LINES = f"""
    SELECT manifest, line, name, group_name, cancelled, {SHOWN_STATUS} AS status, verdict, reason,
           verdict.wall_seconds
    FROM (
        SELECT jobs.* FROM jobs
        LEFT JOIN verdicts ON verdicts.check_id = jobs.check_id AND cancelled IS NULL
        WHERE run_id = %(run)s AND (manifest, line) > (%(manifest)s, %(line)s)
          AND CASE CAST(%(state)s AS text)
                WHEN '' THEN true
                WHEN 'cancelled' THEN cancelled IS NOT NULL
                WHEN 'waiting' THEN cancelled IS NULL AND verdict IS NULL
                ELSE verdict = %(state)s END
          AND (%(reason)s = '' OR reason = %(reason)s)
          AND (%(name)s = '' OR strpos(name, %(name)s) > 0)
          AND (%(group)s = '' OR group_name = %(group)s)
        ORDER BY manifest, line LIMIT %(most)s
    ) AS jobs
    JOIN LATERAL (SELECT status, ahead FROM checks WHERE id = check_id LIMIT 1) AS asked ON true
    LEFT JOIN LATERAL (
        SELECT verdict, reason, wall_seconds FROM verdicts
        WHERE verdicts.check_id = jobs.check_id AND cancelled IS NULL LIMIT 1
    ) AS verdict ON true
    ORDER BY manifest, line
"""

# All lines of a group are answers to one problem; without a group, all of a name; else a line is one.
_PROBLEM = "coalesce('g' || group_name, 'n' || nullif(name, ''), manifest || ':' || line)"
_PLACE = "(CAST(manifest AS bigint) << 32) + line"
_OF_PROBLEMS = f"""
    SELECT {_PROBLEM} AS problem, min({_PLACE}) AS place, min(name) AS name, min(group_name) AS group_name,
           count(*) AS samples, count(verdict) AS judged, count(*) FILTER (WHERE verdict = 'proved') AS proved
    FROM jobs LEFT JOIN verdicts ON verdicts.check_id = jobs.check_id AND cancelled IS NULL
    WHERE run_id = %(run)s GROUP BY 1
"""
_PROBLEMS = f"""
    SELECT place >> 32 AS manifest, place & 4294967295 AS line, name, group_name, samples, judged, proved
    FROM ({_OF_PROBLEMS}) AS problems
    WHERE place > %(place)s AND CASE CAST(%(state)s AS text)
        WHEN 'solved' THEN proved > 0 WHEN 'unsolved' THEN proved = 0 ELSE true END
    ORDER BY place LIMIT %(most)s
"""
_LIMITS = """
    SELECT checks.wall_seconds, checks.cpu_seconds, memory_mib, decided_at
    FROM jobs JOIN checks ON checks.id = jobs.check_id LEFT JOIN verdicts ON verdicts.check_id = checks.id
    WHERE jobs.run_id = %(run)s AND manifest = %(manifest)s AND line = %(line)s
"""

_SIDE = """
    SELECT manifest, line, name, group_name, coalesce(verdict, CASE WHEN cancelled IS NULL
               THEN 'waiting' ELSE 'cancelled' END) AS verdict, coalesce(reason, '') AS reason
    FROM jobs LEFT JOIN verdicts ON verdicts.check_id = jobs.check_id AND cancelled IS NULL
    WHERE run_id = %({run})s AND (manifest, line) > (%(manifest)s, %(line)s)
"""
_BOTH = f"""
    FROM ({_SIDE.format(run="one")}) AS a JOIN ({_SIDE.format(run="other")}) AS b
    USING (manifest, line, name)
"""
_LINES_DIFFER = f"""
    SELECT manifest, line, name, a.group_name, a.verdict || ' ' || a.reason AS one,
           b.verdict || ' ' || b.reason AS other
    {_BOTH} WHERE a.verdict <> b.verdict ORDER BY manifest, line LIMIT %(most)s
"""
_TURNS = f"SELECT a.verdict AS one, b.verdict AS other, count(*) AS n {_BOTH} GROUP BY 1, 2"
_PROBLEMS_DIFFER = f"""
    SELECT a.place >> 32 AS manifest, a.place & 4294967295 AS line, a.name, a.group_name,
           a.proved || '/' || a.samples AS one, b.proved || '/' || b.samples AS other
    FROM ({_OF_PROBLEMS.replace("%(run)s", "%(one)s")}) AS a
    JOIN ({_OF_PROBLEMS.replace("%(run)s", "%(other)s")}) AS b USING (problem)
    WHERE (a.proved > 0) <> (b.proved > 0) AND a.place > %(place)s ORDER BY a.place LIMIT %(most)s
"""


class Looking:
    """Questions to the store; every one raises `ServerDown` when PostgreSQL cannot be reached."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _all(self, statement: str, **values: object) -> list[DictRow]:
        with single(self._engine) as cursor:
            # PostgreSQL's text cannot hold all that an address can.
            kept = {name: storable(each) if isinstance(each, str) else each for name, each in values.items()}
            return cursor.execute(statement.encode(), kept).fetchall()

    def submitted(self, *, most: int, before: str = "") -> list[SeenRun]:
        """Return the newest runs of `farm submit`, newest first, or those that are older than a run."""
        return [_run(row) for row in self._all(_SUBMITTED, most=most, before=before)]

    def batches(self, owner: str, *, most: int) -> list[SeenRun]:
        """Return the newest batches of a key, newest first, without its single checks."""
        return [_run(row) for row in self._all(_BATCHES, owner=owner, most=most)]

    def hours(self, owner: str) -> list[SeenHour]:
        """Return the newest 5000 batches of a key, as far as they are single checks, hour by hour."""
        return [
            _hour(begins, list(rows))
            for begins, rows in groupby(self._all(_HOURS, owner=owner), key=itemgetter("hour"))
        ]

    def checks(self, owner: str, hour: datetime, *, before: str = "", most: int = PAGE) -> list[SeenCheck]:
        """Return the single checks of a key in the hour that begins so, newest first, or older ones."""
        rows = self._all(_CHECKS, owner=owner, hour=hour, before=before, most=most)
        details = self._sentences([(row["id"], 0, 1) for row in rows if row["verdict"] not in _WITHOUT])
        return [SeenCheck(**row, detail=details.get((row["id"], 0, 1), "")) for row in rows]

    def run(self, run_id: str) -> SeenRun:
        """Return the run, or the batch, of this id; raises `UnknownRun`."""
        rows = self._all(_RUN + " WHERE id = %(run)s", run=run_id)
        if not rows:
            raise UnknownRun("no run has this id")
        return _run(rows[0])

    def counts(self, run_id: str) -> Tally:
        """Return how far a run is; its tiers and shared lines are not counted."""
        rows = self._all(_COUNTS, run=run_id)
        (running,) = (row["n"] for row in self._all(_RUNNING, run=run_id))
        statuses: Counter[str] = Counter()
        verdicts: Counter[tuple[str, str]] = Counter()
        for row in rows:
            if row["verdict"] is not None:
                statuses["done"] += row["n"]
                verdicts[row["verdict"], row["reason"]] += row["n"]
            else:
                statuses["cancelled" if row["is_cancelled"] else "queued"] += row["n"]
        running = min(running, statuses["queued"])  # counted a moment later
        statuses["queued"] -= running
        statuses["running"] += running
        proved = [row for row in rows if row["verdict"] == "proved"]
        return Tally(
            statuses=dict(+statuses),
            verdicts=dict(verdicts),
            unchecked=sum(row["unchecked"] for row in proved),
            trusting=sum(row["trusting"] for row in proved),
            open_below=sum(row["open_below"] for row in proved),
            unrebuilt=sum(row["unrebuilt"] for row in proved),
        )

    def lines(
        self, run_id: str, wanted: LineFilter, *, after: LinePlace = START, most: int = PAGE
    ) -> list[SeenLine]:
        """Return the first of these lines of a run after a place, in their order."""
        rows = self._all(
            _LINES,
            run=run_id,
            most=most,
            **after._asdict(),
            **{name: getattr(wanted, name) for name in ("state", "reason", "name", "group")},
        )
        places = [(run_id, row["manifest"], row["line"]) for row in rows]
        known = zip(places, rows, strict=True)
        details = self._sentences([place for place, row in known if row["verdict"] not in _WITHOUT])
        return [
            SeenLine(**row, detail=details.get(place, "")) for place, row in zip(places, rows, strict=True)
        ]

    def _sentences(self, lines: Sequence[RunLine]) -> dict[RunLine, str]:
        with single(self._engine) as cursor:
            known = sentences(cursor.connection, lines) if lines else {}
        return {line: sentence[:_SENTENCE] for line, sentence in known.items()}

    def problems(
        self, run_id: str, *, state: str = "", after: LinePlace = START, most: int = PAGE
    ) -> list[SeenProblem]:
        """Return the first problems of a run, ``solved``, ``unsolved`` or all, that begin after a place."""
        rows = self._all(_PROBLEMS, run=run_id, state=state, place=_number(after), most=most)
        return [SeenProblem(**row) for row in rows]

    def limits(self, run_id: str, place: LinePlace) -> CheckLimits:
        """Return the limits of a line's check; raises `UnknownRun`."""
        rows = self._all(_LIMITS, run=run_id, **place._asdict())
        if not rows:
            raise UnknownRun(f"the run has no line {place.line}")
        return CheckLimits(**rows[0])

    def turns(self, one: str, other: str) -> dict[tuple[str, str], int]:
        """Return how many lines have which verdict in the one run and which in the other.

        Lines are the same that have the same manifest's number, the same number and the same name.
        """
        rows = self._all(_TURNS, one=one, other=other, **START._asdict())
        return {(row["one"], row["other"]): row["n"] for row in rows}

    def lines_that_differ(self, one: str, other: str, *, after: LinePlace = START) -> list[Difference]:
        """Return the first lines after a place that have another verdict in the other run."""
        values = {"one": one, "other": other, "most": PAGE, **after._asdict()}
        return [Difference(**row) for row in self._all(_LINES_DIFFER, **values)]

    def problems_that_differ(self, one: str, other: str, *, after: LinePlace = START) -> list[Difference]:
        """Return the first problems after a place that only one of two runs has proved."""
        values = {"one": one, "other": other, "most": PAGE, "place": _number(after)}
        return [Difference(**row) for row in self._all(_PROBLEMS_DIFFER, **values)]


def _hour(begins: datetime, rows: list[DictRow]) -> SeenHour:
    last = max(rows, key=itemgetter("last"))
    counts = {row["word"]: row["n"] for row in rows}
    return SeenHour(begins=begins, counts=counts, newest=last["id"], name=last["name"])


def _number(place: LinePlace) -> int:
    return (place.manifest << 32) + place.line


def _run(row: DictRow) -> SeenRun:
    return SeenRun(**{**row, "manifests": tuple(map(PurePath, row["manifests"]))})
