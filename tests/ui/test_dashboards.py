"""Every query of every panel and rule, asked of a real Prometheus and PostgreSQL about a farm at work."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from sqlalchemy import text

from farm.embedded import down, ensure
from farm.store import postgres
from farm.store.reader import make_reader
from tests.commands import Command
from tests.dashboards import ENVIRONMENTS, RUNS, Query, documented, filled, queries, rules
from tests.processes import eventually
from tests.ui.watching import Watched, configuration, exporting, judged, prometheus

#: Rounds of manifests: a rate needs a second of each kind.
ROUNDS = 3
#: What Grafana would take for a scrape each second and the last minutes.
WINDOW = "30s"

#: The alerts that what is judged here calls for: that some statements do not compile is no operator's fault.
FIRING: set[str] = set()


@pytest.fixture(scope="module")
def watched(
    pair: str, program: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    """A farm that judged three rounds of manifests while Prometheus watched."""
    folder = tmp_path_factory.mktemp("watched")
    home = folder / "home"
    with ExitStack() as stack:
        servers = ensure(home, idle_minutes=30, servers=pair, worker=False)
        stack.callback(down, home)
        postgres.upgrade(servers.database_url)
        engine = postgres.connect(servers.database_url, application="farm-test")
        stack.callback(engine.dispose)
        make_reader(engine, password=None)
        settings = {
            "FARM_HOME": str(folder / "worker-home"),
            "FARM_DATABASE_URL": servers.database_url,
            "FARM_BROKER_URL": servers.broker_url,
            "FARM_CONCURRENCY": "2",
            "FARM_ISOLATION": "rlimit",
        }
        farm = Command(settings)
        token = folder / "token"
        token.write_text(farm("keys", "add", "prometheus", "--scope", "read").stdout)
        ports = stack.enter_context(exporting(farm, folder))
        since = time.time()
        address = stack.enter_context(prometheus(program, folder / "prometheus", configuration(ports, token)))
        found = Watched(farm, engine, address, since, ())
        eventually(lambda: found.now("count(up == 1) == 3"), seconds=60)
        eventually(lambda: found.now("farm_environment_silent_seconds"), seconds=120)
        runs = [run for nth in range(ROUNDS) for run in judged(farm, folder, nth)]
        watched = Watched(farm, engine, address, since, tuple(runs))
        (judged_lines,) = watched.stored("SELECT count(*) FROM verdicts")[0]
        eventually(lambda: _sum(watched, "farm_checks_total") == judged_lines, seconds=30)
        with engine.begin() as connection:  # as a worker does where two keys prove the contrary
            connection.execute(
                text("SELECT contest(array_agg(check_id)) FROM verdicts WHERE verdict = 'proved'")
            )
        yield watched


def _sum(watched: Watched, metric: str) -> float:
    return sum(watched.now(metric).values())


def _asked(watched: Watched, query: Query) -> str:
    span = f"{math.ceil(time.time() - watched.since)}s"
    return filled(query.text, window=WINDOW, span=span, environments="core", run=watched.runs[0])


PROMETHEUS = [query for query in queries() if not query.is_sql]
SQL = [query for query in queries() if query.is_sql]


@pytest.mark.parametrize("query", PROMETHEUS, ids=str)
def test_a_query_to_prometheus_returns_numbers(watched: Watched, query: Query) -> None:
    asked = _asked(watched, query)
    values = [*watched.now(asked).values()] if query.is_now else watched.over_time(asked)
    assert [value for value in values if not math.isnan(value)], asked


@pytest.mark.parametrize("query", SQL, ids=str)
def test_a_query_to_postgresql_returns_rows_to_the_reader(watched: Watched, query: Query) -> None:
    rows = watched.read(_asked(watched, query))
    assert rows, query
    assert all(any(value is not None for value in row.values()) for row in rows)


def test_the_variables_offer_what_there_is(watched: Watched) -> None:
    metric, label = ENVIRONMENTS
    assert watched.api(f"label/{label}/values", **{"match[]": metric}) == ["core"]
    offered = watched.read(RUNS)
    assert {row["__value"] for row in offered} == {*watched.runs}
    assert all(row["__value"] in row["__text"] for row in offered)


def test_every_documented_metric_is_known_to_prometheus(watched: Watched) -> None:
    known = watched.api("metadata")
    suffixes = ("_bucket", "_sum", "_count")
    for series in documented().keys() - {"up"}:
        if series.startswith("kube_"):  # those of kube-state-metrics are there in a cluster alone
            continue
        name = series
        for suffix in suffixes:
            name = name.removesuffix(suffix)
        assert name in known or name.removesuffix("_total") in known, series


def test_prometheus_computes_every_rule_and_warns_of_nothing_else(watched: Watched) -> None:
    groups = watched.api("rules")["groups"]
    found = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert found.keys() == {rule.get("alert") or rule["record"] for rule in rules()}
    assert {name: rule["lastError"] for name, rule in found.items() if rule["health"] != "ok"} == {}
    assert {name for name, rule in found.items() if rule.get("state") == "firing"} == FIRING
    for rule in rules():
        if "record" in rule:
            assert watched.over_time(rule["record"]), rule["record"]


def test_the_totals_of_the_metrics_are_those_of_the_store(watched: Watched) -> None:
    by_reason = {
        (verdict, reason): count
        for verdict, reason, count in watched.stored(
            "SELECT verdict, reason, count(*) FROM verdicts GROUP BY 1, 2"
        )
    }
    assert len(by_reason) > 8
    told: dict[tuple[str, str], float] = {}
    for labels, value in watched.now("sum by (verdict, reason) (farm_checks_total) > 0").items():
        found = dict(labels)
        told[found["verdict"], found["reason"]] = value
    assert told == by_reason

    ((cpu, checks),) = watched.stored("SELECT sum(cpu_seconds), count(*) FROM verdicts")
    assert _sum(watched, "farm_check_cpu_seconds_sum") == pytest.approx(cpu)
    assert _sum(watched, "farm_check_wall_seconds_count") == checks


# A reading is shown again for twenty times as long as it took.
@pytest.mark.parametrize("job", ["farm", "farm-service"])
def test_farm_metrics_and_the_service_both_come_to_tell_what_the_store_has(
    watched: Watched, job: str
) -> None:
    outcomes = dict(watched.stored("SELECT outcome, count(*) FROM attempts GROUP BY 1"))
    lines = dict(
        watched.stored("SELECT CASE WHEN shared THEN 'shared' ELSE 'own' END, count(*) FROM jobs GROUP BY 1")
    )

    def told(metric: str, label: str) -> dict[str, float]:
        shown = watched.now(f'{metric}{{job="{job}"}} > 0')
        return {dict(labels)[label]: value for labels, value in shown.items()}

    eventually(lambda: told("farm_attempts_total", "outcome") == outcomes, seconds=60)
    eventually(lambda: told("farm_lines_total", "check") == lines, seconds=60)


def test_the_views_count_what_the_metrics_count(watched: Watched) -> None:
    asked = "SELECT sum(judged) AS judged, sum(timeouts) AS timeouts, sum(lines) AS lines FROM report.runs"
    (row,) = watched.read(asked)
    assert row["judged"] == row["lines"]
    own = watched.now("sum(max by (check) (farm_lines_total))")
    assert [*own.values()] == [row["lines"]]
    timeouts = watched.now('sum(farm_checks_total{verdict="timeout"})')
    assert [*timeouts.values()] == [row["timeouts"]]  # no line that times out is shared here
