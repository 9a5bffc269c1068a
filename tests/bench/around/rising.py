"""Bench step, a simulated cluster under a rising load: many workers that check nothing, at several rates.

Store, queue, claims, leases, heartbeats, verdicts and Redis are real, and so are the workers but for the
checker: a stand-in takes a time around the tenth of a check's time limit, sampled anew for each. Verdicts are
counted while something waits: from when all threads have ended their first check until the last one begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import redis
from farm_workers.bench.measure import programs
from farm_workers.loop.context import CONNECTIONS
from sqlalchemy import text

from farm import broker
from farm.redis_client import redis_url
from farm.runs.submit import submit
from tests.bench.around.answers import write_programs
from tests.bench.around.judging import wait
from tests.bench.around.site import FarmAtWork, farm_at_work, options
from tests.bench.around.stand_in import SHARE_OF_LIMIT
from tests.bench.around.workers import SIMULATED, Workers, stand_ins
from tests.bench.checks.figures import rounded
from tests.bench.checks.processes import machine_cpu_seconds

#: Connections that a database needs besides those of the workers.
_OTHER_CONNECTIONS = 20
#: So many checks for each thread, and so long workers are looked at that have nothing to do.
_WAVES, _IDLE_SECONDS = 3, 10.0
#: How long checks are waited for: so long, and so many times as long as one takes on average.
_PATIENCE_SECONDS, _PATIENCE = 400.0, 10

_RATE = text("""
    WITH judged AS (
        SELECT started_at, decided_at
        FROM jobs JOIN checks ON checks.id = check_id JOIN verdicts USING (check_id) WHERE run_id = :run
    ), full_ AS (
        SELECT min(started_at) + :mean * interval '1 second' AS since, max(started_at) AS until FROM judged
    )
    SELECT count(*) / extract(epoch FROM until - since)::float8
    FROM judged, full_ WHERE decided_at BETWEEN since AND until GROUP BY since, until
""")
_WAL = text("SELECT (pg_current_wal_insert_lsn() - '0/0')::float8")
_CONNECTED = text("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'farm-worker'")


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """What was used until a moment: seconds of processors and of the clock, bytes and numbers."""

    seconds: float
    machine: float
    workers: float
    postgres: float
    redis: float
    transactions: int
    wal: float
    commands: int
    sent: int

    def rates(self, before: Spent, *, per: float, each: str) -> dict[str, object]:
        """Return what was used since then, for each of so many: processor time in milliseconds."""
        return {
            f"workers_ms_{each}": rounded((self.workers - before.workers) / per * 1000),
            f"postgres_ms_{each}": rounded((self.postgres - before.postgres) / per * 1000),
            f"redis_ms_{each}": rounded((self.redis - before.redis) / per * 1000),
            f"transactions_{each}": rounded((self.transactions - before.transactions) / per),
            f"wal_bytes_{each}": rounded((self.wal - before.wal) / per),
            f"redis_commands_{each}": rounded((self.commands - before.commands) / per),
            f"redis_bytes_{each}": rounded((self.sent - before.sent) / per),
            "machine_cores": rounded((self.machine - before.machine) / (self.seconds - before.seconds)),
        }


def rising(
    workers: int,
    at_once: int,
    means: Sequence[float],
    say: Callable[[str], None],
    *,
    idle_seconds: float = _IDLE_SECONDS,
) -> list[dict[str, object]]:
    """Look at an idle cluster, then have it judge runs of checks of these times; returns a row for each."""
    with farm_at_work(connections=CONNECTIONS * workers + _OTHER_CONNECTIONS) as farm:
        say(f"starting {workers} workers")
        with stand_ins(farm, workers, at_once=at_once, check_seconds=None) as cluster:
            _judge(farm, cluster, 1.0, 0, waves=1)
            rows = [_idle(farm, cluster, workers, idle_seconds)]
            for place, mean in enumerate(means, 1):
                say(f"{workers} workers, checks of {mean:g} s")
                rows.append(_row(farm, cluster, workers, mean, place))
    return rows


def _idle(farm: FarmAtWork, cluster: Workers, workers: int, seconds: float) -> dict[str, object]:
    """Look at workers that have nothing to do: what one of them costs in a second."""
    before = _spent(farm, cluster)
    time.sleep(seconds)
    after = _spent(farm, cluster)
    per = workers * (after.seconds - before.seconds)
    return {"workers": workers, **after.rates(before, per=per, each="worker_second")}


def _row(farm: FarmAtWork, cluster: Workers, workers: int, mean: float, place: int) -> dict[str, object]:
    before = _spent(farm, cluster)
    run_id = _judge(farm, cluster, mean, place, waves=_WAVES)
    after = _spent(farm, cluster)
    with farm.engine.connect() as connection:
        rate = float(connection.scalar(_RATE, {"run": run_id, "mean": mean}) or 0)
        connections = connection.scalar(_CONNECTED)
    offered = cluster.at_once / mean
    return {
        "workers": workers,
        "threads": cluster.at_once,
        "check_seconds": mean,
        "offered_per_second": rounded(offered),
        "verdicts_per_second": rounded(rate),
        "share": rounded(rate / offered),
        "connections": connections,
        **after.rates(before, per=_WAVES * cluster.at_once, each="verdict"),
    }


def _judge(farm: FarmAtWork, cluster: Workers, mean: float, place: int, *, waves: int) -> str:
    """Have a run judged that has so many checks for each thread, and return its id."""
    many = waves * cluster.at_once
    given = programs("", place * _WAVES * cluster.at_once, many)
    manifest = write_programs(farm.folder / f"{place}.jsonl", given)
    asked = replace(options(SIMULATED), wall_seconds=mean / SHARE_OF_LIMIT)
    run = submit(farm.store, [manifest], asked, known=farm.queries.served(), new_run=True)
    broker.call(farm.app, [SIMULATED])
    wait(farm, seconds=_PATIENCE_SECONDS + _PATIENCE * mean)
    return run.run_id


def _spent(farm: FarmAtWork, cluster: Workers) -> Spent:
    with redis.Redis.from_url(redis_url(farm.broker_url)) as client:
        info = client.info("stats")
    with farm.engine.connect() as connection:
        wal = float(connection.scalar(_WAL) or 0)
    used = farm.used()
    return Spent(
        seconds=time.monotonic(),
        machine=machine_cpu_seconds(),
        workers=cluster.cpu_seconds(),
        postgres=used.postgres_seconds,
        redis=used.redis_seconds,
        transactions=used.transactions,
        wal=wal,
        commands=info["total_commands_processed"],
        sent=info["total_net_input_bytes"] + info["total_net_output_bytes"],
    )
