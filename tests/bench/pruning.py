"""Benchmarks, pruning: how long a million old lines take to go, and what a worker beside it notices.

The database has default settings, and so waits for the disk at each commit. Old lines have a program and a
verdict of their own, eight have a statement in common, and every tenth check is shared with a younger run.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import text

from farm.judging.report import Answer, Execution, Report
from farm.judging.tiers import Tier
from farm.judging.verdict import judge
from farm.runs.prune import PrunePlan, prune
from farm.store import postgres
from farm.store.attempt import Decision
from farm.store.environments import Served
from farm.store.transitions import Store
from tests.bench.around.site import FarmAtWork, farm_at_work
from tests.bench.checks.figures import Figure, quantile
from tests.reports import SEALED

#: Old lines, runs that they are in, and checks that wait meanwhile for the worker beside.
LINES, RUNS, QUEUED = 1_000_000, 20, 60_000
#: Lines whose place is filled again, and for how long the worker is alone.
AGAIN, _ALONE_SECONDS = 200_000, 10.0
#: Fewer lines are stored as they are.
_FEW = 300_000
#: The worker beside claims and records so many checks together, and begins so many times a second.
_TOGETHER, _TURNS = 8, 40
_MOST_SECONDS, _MOST_MS = 60.0, 100.0

_OLDER = PrunePlan(older_than_seconds=30 * 86_400.0)

_REPORT = Report(
    run=Execution(exit_status=0, wall_seconds=0.02, cpu_seconds=0.01, peak_memory_kib=40_000),
    answer=Answer(reached_end=True),
    way="forked",
    audit=SEALED,
)
_DECISION = Decision(
    report=_REPORT, verdict=judge(_REPORT), digest="d1", toolchain="Lean 4.35.0", checker_version="1"
)

# Sizes as a farm's: programs of 1 KiB, statements of 600 bytes, verdicts with an audit and a message.
_FILL = """
    INSERT INTO runs (id, options, farm_version, created_at)
    SELECT '{name}' || n, '{{}}', '1', {since} FROM generate_series(1, {runs}) AS n;
    INSERT INTO manifests (run_id, number, path, sha256, size, exported_at)
    SELECT '{name}' || n, 0, '/{name}' || n, '', 0, {since} + interval '1 hour'
    FROM generate_series(1, {runs}) AS n;
    CREATE TEMPORARY TABLE made ON COMMIT DROP AS
    SELECT n, convert_to('{name}' || n || repeat(' theorem of ' || md5(n::text), 23), 'UTF8') AS source,
           convert_to('{name}' || n / 8 || repeat(md5((n / 8)::text), 18), 'UTF8') AS statement
    FROM generate_series(1, {lines}) AS n;
    INSERT INTO programs SELECT sha256(source), source FROM made;
    INSERT INTO programs SELECT sha256(statement), statement FROM made WHERE mod(n, 8) = 0 OR n = 1;
    INSERT INTO checks (
        identity, program_sha256, submitted, challenge_sha256, challenge_name, environment,
        environment_digest, checker_version, tier, native, axioms, policy, wall_seconds, cpu_seconds,
        memory_mib, priority, turn, status, attempt, worker, started_at)
    SELECT sha256(source), sha256(source), '[[120, 1020]]', sha256(statement), 'wanted', 'core', 'd1', '1',
           'kernel', false, '["propext", "Classical.choice", "Quot.sound"]', '{{}}', 30, 60, 4096, 2, n,
           '{status}', {done}, 'node:1', {since}
    FROM made ORDER BY n;
    INSERT INTO jobs (run_id, manifest, line, check_id, name, segments, warnings)
    SELECT '{name}' || 1 + (turn - 1) * {runs} / {lines}, 0, turn, id, 'algebra_' || turn / 8,
           '[[0, 120, "header", 0], [120, 900, "generation", 17]]', '[]'
    FROM checks WHERE id > {first};
    INSERT INTO attempts (check_id, number, worker, started_at, ended_at, outcome, detail)
    SELECT id, 1, 'node:1', {since}, {since}, 'proved', '' FROM checks
    WHERE status = 'done' AND id > {first};
    INSERT INTO verdicts (
        check_id, attempt, verdict, reason, detail, messages, hits, audit, wall_seconds, cpu_seconds,
        peak_memory_kib, isolation, environment_digest, toolchain, checker_version, statement, decided_at)
    SELECT id, 1, 'proved', 'ok', '', '[{{"text": "unused variable", "line": 3, "column": 4}}]', '[]',
           jsonb_build_object('axioms', axioms, 'sentence', repeat(md5(id::text), 8)), 0.1, 0.1, 90000,
           'cgroup2+bwrap', 'd1', 'Lean 4.35.0', '1', 'compared',
           {since} + id * interval '1 second' / 500
    FROM checks
    WHERE status = 'done' AND id > {first}
"""
_SHARE = text("""
    INSERT INTO jobs (run_id, manifest, line, check_id, name, segments, warnings, shared)
    SELECT 'young1', 0, line + 10000000, check_id, name, segments, warnings, true
    FROM jobs WHERE run_id LIKE 'old%' AND line % 10 = 0
""")
_INDEXES = text("""
    SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition FROM pg_index
    WHERE indrelid IN ('programs'::regclass, 'checks'::regclass, 'jobs'::regclass, 'verdicts'::regclass)
      AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
""")
_SIZES = text("""
    SELECT relname, pg_table_size(oid) AS rows, pg_indexes_size(oid) AS indexes FROM pg_class
    WHERE relname IN ('programs', 'checks', 'jobs', 'attempts', 'verdicts') ORDER BY relname
""")


def pruning() -> Iterator[Figure]:
    """Prune a million lines beside a worker; then fewer, and fill their place again."""
    yield from beside(LINES)
    yield from _again(AGAIN)


def beside(lines: int, *, queued: int = QUEUED, alone_seconds: float = _ALONE_SECONDS) -> Iterator[Figure]:
    """Prune so many lines while a worker claims what is queued, as it did alone for some seconds before."""
    with farm_at_work() as farm:
        _fill_all(farm, lines, queued=queued)
        with claiming(farm) as alone:
            threading.Event().wait(alone_seconds)
        with claiming(farm) as beside:
            before = farm.used()
            seconds = _pruned(farm)
        used = farm.used().since(before)
        yield _figure("prune", f"farm prune, {lines} lines", "s", seconds, at_most=_MOST_SECONDS)
        yield _figure("prune_postgres", "of it PostgreSQL's processors", "s", used.postgres_seconds)
        for key, name, waits in (("alone", "alone", alone), ("beside", "beside a prune", beside)):
            yield _figure(f"prune_{key}_p50", f"a claim {name}, median", "ms", quantile(waits, 0.5))
            yield _figure(f"prune_{key}_p99", f"a claim {name}, 99 of 100", "ms", quantile(waits, 0.99))
            most = _MOST_MS if key == "beside" else None
            yield _figure(f"prune_{key}_most", f"a claim {name}, the slowest", "ms", max(waits), at_most=most)


def _again(lines: int) -> Iterator[Figure]:
    with farm_at_work() as farm:
        _fill_all(farm, lines, queued=1)
        before = sizes(farm)
        prune(farm.store, _OLDER)
        farm.settle()
        after = sizes(farm)
        fill(farm, "again", lines=lines, runs=RUNS, since="now() - interval '1 hour'")
        farm.settle()
        yield from _grown(before, after, sizes(farm))


def _fill_all(farm: FarmAtWork, lines: int, *, queued: int) -> None:
    sys.stderr.write(f"Storing {lines} lines\n")
    served = Served(name="core", digest="d1", toolchain="Lean", tiers=tuple(Tier), checker_version="1")
    farm.store.register([served])
    fill(farm, "young", lines=queued, runs=1, since="now() - interval '1 day'", queued=True)
    fill(farm, "old", lines=lines, runs=RUNS)
    with farm.engine.begin() as connection:
        connection.execute(_SHARE)
    farm.settle()
    sys.stderr.write("Pruning them\n")


def fill(
    farm: FarmAtWork,
    name: str,
    *,
    lines: int,
    runs: int,
    since: str = "now() - interval '60 days'",
    queued: bool = False,
) -> None:
    """Store so many lines in so many runs, judged and exported then, or `queued`."""
    status, done = ("queued", 0) if queued else ("done", 1)
    asked = {"name": name, "lines": lines, "runs": runs, "since": since, "status": status, "done": done}
    with farm.engine.begin() as connection:
        first = connection.scalar(text("SELECT coalesce(max(id), 0) FROM checks"))
        # Indexes are made, and what lines refer to is known to be there: that is not what is measured.
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        connection.execute(text("SET LOCAL maintenance_work_mem = '256MB'"))
        indexes = connection.execute(_INDEXES).all() if lines > _FEW else []
        for index in indexes:
            connection.exec_driver_sql(f"DROP INDEX {index.name}")
        connection.exec_driver_sql(_FILL.format(**asked, first=first))
        for index in indexes:
            connection.exec_driver_sql(index.definition)


def sizes(farm: FarmAtWork) -> Mapping[str, tuple[int, int]]:
    """Return the bytes of each large table, and of its indexes."""
    with farm.engine.connect() as connection:
        return {row.relname: (row.rows, row.indexes) for row in connection.execute(_SIZES)}


def _pruned(farm: FarmAtWork) -> float:
    begun = time.perf_counter()
    prune(farm.store, _OLDER)
    return time.perf_counter() - begun


@contextmanager
def claiming(farm: FarmAtWork) -> Iterator[list[float]]:
    """Claim and record checks inside the block, as a worker does; gives the milliseconds of each claim."""
    engine = postgres.connect(farm.database_url, application="farm-worker", works=True)
    store, over, waits = Store(engine), threading.Event(), list[float]()

    def work() -> None:
        while not over.wait(1 / _TURNS):
            begun = time.perf_counter()
            claims = store.claim(["core"], worker="beside", lease_seconds=60, most=_TOGETHER)
            waits.append((time.perf_counter() - begun) * 1000)
            store.record([(claim, _DECISION) for claim in claims])

    thread = threading.Thread(target=work, name="beside")
    thread.start()
    try:
        yield waits
    finally:
        over.set()
        thread.join()
        engine.dispose()


def _figure(key: str, name: str, unit: str, value: float, *, at_most: float | None = None) -> Figure:
    return Figure(key=key, name=name, unit=unit, samples=(value,), at_most=at_most)


def _grown(*states: Mapping[str, tuple[int, int]]) -> Iterator[Figure]:
    """Yield the sizes of tables and indexes before, after, and when as much was stored again."""
    times = ("full", "pruned", "full again")
    for table in states[0]:
        for place, what in enumerate(("rows", "indexes")):
            yield Figure(
                key=f"prune_{table}_{what}",
                name=f"{table}, {what}: {', '.join(times)}",
                unit="MiB",
                samples=tuple(state[table][place] / 2**20 for state in states),
            )
