"""Benchmarks, looking at the farm: a worker's sign of life, and one picture of `farm status --watch`.

The database has a million verdicts, of which the last five minutes brought a share, a long queue, and as many
workers as a large cluster, each with its checks under way.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from functools import partial

from rich.console import Console
from sqlalchemy import text

from farm.cli import live_tables
from farm.judging.tiers import Tier
from farm.store import postgres
from farm.store.environments import Served
from farm.store.overview import Overview
from farm.store.rates import Rates
from farm.store.workers import SignOfLife, State, Workers
from tests.bench.around.site import FarmAtWork, farm_at_work
from tests.bench.checks.figures import Figure

VERDICTS, QUEUED, WORKERS, THREADS = 1_000_000, 100_000, 512, 8
#: So many verdicts of a second, over the last minutes.
RATE = 300
#: How often each figure is measured.
TIMES = 30
_BAR_MS = 100.0

_FILL = """
    INSERT INTO runs (id, options, farm_version) VALUES ('run', '{{}}', '0');
    INSERT INTO manifests (run_id, number, path, sha256, size) VALUES ('run', 0, '/a.jsonl', '', 0);
    INSERT INTO checks (
        program_sha256, submitted, environment, tier, native, axioms, policy, wall_seconds, cpu_seconds,
        memory_mib, environment_digest, checker_version, priority, turn, status, attempt, worker, started_at,
        lease_until)
    SELECT sha256('x'), '[]', 'core', 'kernel', false, '[]', '{{}}', 30, 60, 4096, 'd', '1', 2, n,
           CASE WHEN n <= {verdicts} THEN 'done' WHEN n <= {begun} THEN 'running' ELSE 'queued' END,
           CASE WHEN n <= {begun} THEN 1 ELSE 0 END, CASE WHEN n <= {begun} THEN 'w' || mod(n, {workers}) END,
           CASE WHEN n <= {begun} THEN now() END,
           CASE WHEN n > {verdicts} AND n <= {begun} THEN now() + interval '1 hour' END
    FROM generate_series(1, {all}) AS n;
    INSERT INTO jobs (run_id, manifest, line, check_id, name, segments, warnings)
    SELECT 'run', 0, turn, id, 'name' || turn, '[]', '[]' FROM checks;
    INSERT INTO verdicts (
        check_id, attempt, verdict, reason, detail, messages, hits, audit, wall_seconds, cpu_seconds,
        peak_memory_kib, isolation, environment_digest, toolchain, checker_version, decided_at)
    SELECT id, 1, (ARRAY['proved', 'rejected', 'timeout'])[1 + mod(turn, 3)], 'ok', '', '[]', '[]',
           jsonb_build_object('sentence', repeat('x', 300)), 1, 1, 1, 'bwrap', 'd', 'Lean', '1',
           now() - ({verdicts} - turn) * interval '1 second' / {rate}
    FROM checks WHERE status = 'done' ORDER BY turn
"""


def looking() -> Iterator[Figure]:
    """Time signs of life and pictures of a large farm."""
    with farm_at_work() as farm:
        served = Served(name="core", digest="d", toolchain="Lean 4.35.0", tiers=tuple(Tier))
        farm.store.register([served])
        signs = [_sign(number, served) for number in range(WORKERS)]
        workers = Workers(postgres.connect(farm.database_url, application="farm-worker", works=True))
        for sign in signs:
            workers.say(sign)
        begun = iter(signs * TIMES)
        yield _figure("sign_of_life", "a sign of life", lambda: workers.say(next(begun)), times=10 * WORKERS)
        yield _growth(farm)
        _fill(farm)
        yield from _pictures(farm)


def _sign(number: int, served: Served) -> SignOfLife:
    return SignOfLife(
        name=f"w{number}",
        since=float(number),
        node=f"node{number}",
        pid=number,
        environments=[served],
        isolation="cgroup2+bwrap",
        farm_version="1",
        threads=THREADS,
        busy=THREADS,
        state=State.SERVING,
        lease_seconds=3600.0,
    )


def _growth(farm: FarmAtWork) -> Figure:
    with farm.engine.connect() as connection:
        pages = connection.scalar(text("SELECT pg_table_size('workers') / 1024.0"))
    return Figure(
        key="workers_size", name=f"table of {WORKERS} workers then", unit="KiB", samples=(float(pages or 0),)
    )


def _fill(farm: FarmAtWork) -> None:
    begun = VERDICTS + WORKERS * THREADS
    counts = {"verdicts": VERDICTS, "begun": begun, "all": begun + QUEUED, "workers": WORKERS, "rate": RATE}
    with farm.engine.begin() as connection:
        connection.exec_driver_sql(_FILL.format(**counts))
    with farm.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))


def _pictures(farm: FarmAtWork) -> Iterator[Figure]:
    overview = Overview(farm.engine)
    workers, rates = Workers(farm.engine), Rates(overview)
    terminal = Console(file=io.StringIO(), width=200, height=50, force_terminal=True)

    def picture() -> None:
        rates.look()
        shown = live_tables.top(
            minute=rates.verdicts(seconds=60),
            minutes=rates.verdicts(seconds=300),
            queues=overview.queues(most=live_tables.MOST_COUNTED),
            workers=workers.all(),
            sessions=None,
            at_work=live_tables.by_worker(overview.longest_at_work(most=live_tables.MOST_SHOWN)),
        )
        terminal.print(shown)

    yield _figure("top_first", "farm status --watch, the first picture", picture, times=1)
    yield _figure("top", "farm status --watch, each after it", picture, times=TIMES, at_most=_BAR_MS)
    yield _figure("top_pace", "of it the pace", rates.look, times=TIMES)
    yield _figure("top_queues", "of it the queues", lambda: overview.queues(most=live_tables.MOST_COUNTED))
    longest = partial(overview.longest_at_work, most=live_tables.MOST_SHOWN)
    yield _figure("top_at_work", "of it what is under way", longest)
    yield _figure("top_workers", "of it the workers", workers.all)
    yield _figure("status_unfinished", "farm status, what is unfinished", overview.unfinished, times=3)
    yield _figure("status_queues", "farm status, the whole queue", overview.queues, times=3)


def _figure(
    key: str, name: str, step: Callable[[], object], *, times: int = TIMES, at_most: float | None = None
) -> Figure:
    samples = []
    for _ in range(times):
        begun = time.perf_counter()
        step()
        samples.append((time.perf_counter() - begun) * 1000)
    ordered = sorted(samples)
    few = (
        tuple(ordered)
        if times <= TIMES
        else (ordered[times // 10], ordered[times // 2], ordered[-times // 10])
    )
    return Figure(key=key, name=name, unit="ms", samples=few, at_most=at_most)
