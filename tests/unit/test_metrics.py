"""The metrics: the page and the code name the same ones, buckets fit, and nothing is counted unasked."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from farm_workers.metrics import events
from farm_workers.metrics.registry import (
    CHECK_SECONDS,
    IMAGE_SECONDS,
    LIMIT_RATIO,
    MEMORY_BYTES,
    WAIT_SECONDS,
    Metrics,
)
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from farm.errors import ServerDown, UsageError
from farm.judging.audit import Replay
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason
from farm.metrics.farm import FarmMetrics, exposition
from farm.metrics.port import MOST_CONNECTIONS, exposed
from farm.store.environments import STARTING, UNFIT, Pending
from farm.store.readings import FarmReading
from tests.farms import a_decision
from tests.metric_samples import CLAIM, READING, STATE
from tests.processes import eventually
from tests.reports import SEALED
from tests.scraping import by, parsed, scraped

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text()

#: A metric: its name as a scrape shows it, its type and its labels.
Told = tuple[str, str, frozenset[str]]


def documented(part: str) -> set[Told]:
    """Return the metrics in the table of a part of the page."""
    text = PAGE.partition(f"\n## {part}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(farm_\w+)` \| (\w+) \|([^|]*)\| \S", text, re.MULTILINE)
    return {(name, kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def defined(collectors: Iterable[Any]) -> set[Told]:
    """Return the metrics that collectors would tell."""
    return {
        (f"{each.name}_total" if each.type == "counter" else each.name, each.type, labels)
        for collector in collectors
        for each, labels in _with_labels(collector)
        if each.name.startswith("farm_")
    }


def _with_labels(collector: Any) -> Iterator[tuple[Any, frozenset[str]]]:
    own = getattr(collector, "_labelnames", None)
    for family in collector.describe():
        yield family, frozenset(getattr(family, "_labelnames", ()) if own is None else own)


def test_the_page_names_each_metric_of_a_worker_and_no_other() -> None:
    metrics = Metrics()
    collectors = set(metrics.registry._names_to_collectors.values())
    assert documented("A worker") == defined(collectors)


def test_the_page_names_each_metric_of_the_farm_and_no_other() -> None:
    assert documented("The farm") == defined([FarmMetrics(lambda: READING)])


def test_the_page_names_each_metric_of_the_process() -> None:
    shown = {each.name for each in Metrics().registry.collect() if each.name.startswith("process_")}
    told = {name.removesuffix("_total") for name in re.findall(r"`(process_\w+)`", PAGE)}
    assert told == shown


def _of_page(name: str) -> list[float]:
    """Return the buckets of a metric in the page, memory in bytes."""
    (found,) = re.findall(rf"^- .*`{name}`.*?: ([\d., \nMGiB]+?)(?: seconds)?\.$", PAGE, re.MULTILINE)
    scale, buckets = 1.0, list[float]()
    for number, unit in reversed(re.findall(r"([\d.]+)(?: (MiB|GiB))?", found)):
        scale = {"MiB": 2.0**20, "GiB": 2.0**30}.get(unit, scale)
        buckets.append(float(number) * scale)
    return buckets[::-1]


@pytest.mark.parametrize(
    ("name", "buckets"),
    [
        ("farm_check_wall_seconds", CHECK_SECONDS),
        ("farm_check_cpu_seconds", CHECK_SECONDS),
        ("farm_check_wait_seconds", WAIT_SECONDS),
        ("farm_check_limit_ratio", LIMIT_RATIO),
        ("farm_check_peak_memory_bytes", MEMORY_BYTES),
        ("farm_image_seconds", IMAGE_SECONDS),
    ],
)
def test_the_page_names_the_buckets(name: str, buckets: tuple[float, ...]) -> None:
    assert _of_page(name) == list(buckets)
    assert list(buckets) == sorted(set(buckets))


def test_a_limit_from_a_second_to_ten_minutes_is_the_edge_of_a_bucket() -> None:
    assert {1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0} <= set(CHECK_SECONDS)
    assert {0.5, 0.8, 0.9, 1.0} <= set(LIMIT_RATIO)


@pytest.fixture
def url() -> Iterator[str]:
    with events.served(address="127.0.0.1", port=0) as url:
        yield url


def value(url: str, name: str, **labels: str) -> float:
    return scraped(url).get((name, frozenset(labels.items())), 0.0)


def test_a_recorded_check_is_told_with_the_share_of_its_limits(url: str) -> None:
    events.recorded(CLAIM, a_decision(wall_seconds=1.5, cpu_seconds=2.0, peak_memory_kib=32 << 10))
    told = scraped(url)

    def of(name: str, **labels: str) -> float:
        return told[name, frozenset(labels.items())]

    verdict = {"environment": "core", "verdict": "proved"}
    assert of("farm_checks_total", tier="audit", reason="ok", **verdict) == 1
    assert of("farm_check_wall_seconds_sum", **verdict) == 1.5
    assert of("farm_check_cpu_seconds_sum", **verdict) == 2.0
    assert of("farm_check_peak_memory_bytes_sum", environment="core") == 32 << 20
    assert of("farm_seals_total", environment="core", result="accepted") == 1
    for limit, share in (("wall", 0.75), ("cpu", 0.5), ("memory", 0.5)):
        assert of("farm_check_limit_ratio_sum", environment="core", limit=limit) == share
    half = of("farm_check_limit_ratio_bucket", environment="core", limit="wall", le="0.5")
    most = of("farm_check_limit_ratio_bucket", environment="core", limit="wall", le="0.8")
    assert (half, most) == (0, 1)


def test_a_module_that_the_second_kernel_alone_refuses_is_counted(url: str) -> None:
    second = Replay(accepted=False, said="no", checker="other")
    decision = a_decision(audit=replace(SEALED, second=second))
    assert decision.verdict.reason is Reason.KERNELS_DISAGREE
    events.recorded(CLAIM, decision)
    assert value(url, "farm_kernels_disagree_total", environment="core") == 1
    assert value(url, "farm_seals_total", environment="core", result="kernels_disagree") == 1


def test_what_a_check_waited_is_told_by_its_class(url: str) -> None:
    events.begun(CLAIM, waited_seconds=3.0)
    assert value(url, "farm_check_wait_seconds_sum", **{"environment": "core", "class": "online"}) == 3.0


def test_what_a_worker_may_count_is_told_as_0_before_it_happens_in_no_more_series_than_the_page_says(
    url: str,
) -> None:
    events.started({"core": tuple(Tier), "mathlib": tuple(Tier)})
    told = scraped(url)
    counters = {key: number for key, number in told.items() if key[0].endswith("_total")}
    mine = {key: number for key, number in counters.items() if key[0].startswith("farm_")}
    assert set(mine.values()) == {0}
    for environment in ("core", "mathlib"):
        checks = {"environment": environment, "tier": "kernel", "verdict": "rejected", "reason": "crash"}
        assert ("farm_checks_total", frozenset(checks.items())) in mine
        seal = {"environment": environment, "result": "axiom"}
        assert ("farm_seals_total", frozenset(seal.items())) in mine
    assert ("farm_kills_total", frozenset({("cause", "wall")})) in mine
    assert ("farm_policy_hits_total", frozenset({("rule", "axiom"), ("action", "report")})) in mine
    each = sum(("environment", "core") in labels for _, labels in mine)
    once = sum(bool(labels) and "environment" not in dict(labels) for _, labels in mine)
    (said,) = re.findall(r"these are\s+(\d+) series for each environment and (\d+) more", PAGE)
    assert (each, once) == tuple(map(int, said))


def test_the_state_is_told_as_it_is_at_the_scrape(url: str) -> None:
    assert "farm_worker_slots" not in {name for name, _ in scraped(url)}
    states = iter([STATE, replace(STATE, busy=2)])
    events.watch(lambda: next(states))
    told = scraped(url)
    assert told["farm_worker_busy_slots", frozenset()] == 1
    assert told["farm_worker_broker_up", frozenset()] == 0
    images = {dict(labels)["environment"]: n for (name, labels), n in told.items() if name == "farm_images"}
    assert images == {"core": 2, "mathlib": 1}
    assert told["farm_images_memory_bytes", frozenset({("environment", "core")})] == 150
    assert value(url, "farm_worker_busy_slots") == 2


def test_a_worker_is_alive_from_the_start_and_ready_only_while_it_takes_checks(url: str) -> None:
    assert _health(url, "live") == (200, {"status": "ok"})
    status, said = _health(url, "ready")
    assert (status, said["detail"][:22]) == (503, "the worker is starting")
    events.watch(lambda: STATE)
    assert _health(url, "ready") == (200, {"status": "ok"})
    events.watch(lambda: replace(STATE, is_database_up=False))
    status, said = _health(url, "ready")
    assert (status, said["detail"][:36]) == (503, "the worker cannot reach PostgreSQL, ")
    assert value(url, "farm_worker_database_up") == 0
    events.watch(lambda: replace(STATE, is_healthy=False))
    status, said = _health(url, "ready")
    assert (status, said["detail"][:23]) == (503, "the worker is unhealthy")
    assert _health(url, "live") == (200, {"status": "ok"})


def test_whoever_tells_metrics_and_takes_no_checks_is_ready_at_once() -> None:
    with exposed(CollectorRegistry(), address="127.0.0.1", port=0) as url:
        assert _health(url, "ready") == _health(url, "live") == (200, {"status": "ok"})


def _health(url: str, word: str) -> tuple[int, dict[str, str]]:
    asked = url.replace("/metrics", f"/health/{word}")
    try:
        with urlopen(asked, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_each_worker_counts_from_nothing_and_only_while_it_serves() -> None:
    with events.served(address="127.0.0.1", port=0) as url:
        events.killed("wall")
        assert value(url, "farm_kills_total", cause="wall") == 1
    events.killed("wall")
    with events.served(address="127.0.0.1", port=0) as url:
        assert value(url, "farm_kills_total", cause="wall") == 0


def test_a_port_that_is_taken_is_bad_usage_and_names_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(UsageError, match=rf"^cannot serve metrics on 127\.0\.0\.1:{port}: .*in use; "),
            exposed(CollectorRegistry(), address="127.0.0.1", port=port),
        ):
            pass


def test_two_workers_on_one_machine_serve_on_ports_of_their_own() -> None:
    with (
        exposed(Metrics().registry, address="127.0.0.1", port=0) as one,
        exposed(Metrics().registry, address="127.0.0.1", port=0) as other,
    ):
        assert one != other
        assert scraped(one)
        assert scraped(other)


def test_connections_beyond_a_few_are_closed_and_nobody_is_kept_out_by_them() -> None:
    with exposed(Metrics().registry, address="127.0.0.1", port=0) as url:
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(_connected(url)) for _ in range(4 * MOST_CONNECTIONS)]
            assert all(_is_closed(each) for each in silent[MOST_CONNECTIONS:])
        eventually(lambda: _answers(url))


def test_a_silent_connection_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farm.metrics.port._Handler.timeout", 0.2)
    with exposed(Metrics().registry, address="127.0.0.1", port=0) as url, _connected(url) as silent:
        assert _is_closed(silent)


def _connected(url: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(url.split(":")[2].partition("/")[0])), timeout=5)


def _is_closed(connection: socket.socket) -> bool:
    with contextlib.suppress(ConnectionResetError):
        return connection.recv(1) == b""
    return True


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError):
        return bool(scraped(url))
    return False


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9700", "localhost.evil.example", "[::", "10.0.0.1"]
)
def test_a_page_whose_name_leads_to_this_machine_reads_nothing(host: str) -> None:
    with exposed(Metrics().registry, address="127.0.0.1", port=0) as url:
        with pytest.raises(HTTPError, match="403"):
            urlopen(Request(url, headers={"Host": host}), timeout=30)
        for own in ("localhost", "127.0.0.1:1", "[::1]:9700", "LOCALHOST:9700"):
            with urlopen(Request(url, headers={"Host": own}), timeout=30) as answer:
                assert answer.status == 200


def test_an_address_of_the_network_is_asked_by_any_name() -> None:
    with exposed(Metrics().registry, address="0.0.0.0", port=0) as url:
        asked = Request(url.replace("0.0.0.0", "127.0.0.1"), headers={"Host": "worker-1.farm:9700"})
        with urlopen(asked, timeout=30) as answer:
            assert answer.status == 200


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_scrapes_of_one_second_share_a_reading_and_a_long_one_lasts_longer() -> None:
    clock, readings = Clock(), list[FarmReading]()

    def read() -> FarmReading:
        readings.append(replace(READING, seconds=0.5 if readings else 0.01))
        return readings[-1]

    metrics = FarmMetrics(read, clock=clock)
    for seconds, number in ((0.0, 1), (0.9, 1), (1.1, 2), (10.0, 2), (11.2, 3)):
        clock.seconds = 100.0 + seconds
        list(metrics.collect())
        assert len(readings) == number, seconds


def test_a_farm_without_postgresql_tells_that_and_nothing_else_and_recovers() -> None:
    clock, answers = Clock(), iter([None, READING])

    def read() -> FarmReading:
        if (reading := next(answers)) is None:
            raise ServerDown("PostgreSQL does not answer")
        return reading

    metrics = FarmMetrics(read, clock=clock)
    text, _ = exposition(metrics)
    assert [line for line in text.decode().splitlines() if line[0] != "#"] == ["farm_up 0.0"]
    clock.seconds += 2
    text, _ = exposition(metrics)
    assert "\nfarm_up 1.0\n" in text.decode()
    assert 'farm_queue_checks{class="batch",environment="core"} 3.0' in text.decode()


def test_what_never_happened_is_told_as_0_so_that_its_first_time_is_an_increase() -> None:
    text, _ = exposition(FarmMetrics(lambda: replace(READING, attempts={}, lines={})))
    told = parsed(text.decode())
    verdicts = tuple(Outcome)
    ends = (*verdicts, "returned", "cancelled", "lost")
    assert by(told, "farm_attempts_total", "outcome") == {(end,): 0 for end in ends}
    assert by(told, "farm_lines_total", "check") == {("own",): 0, ("shared",): 0}
    told = parsed(exposition(FarmMetrics(lambda: READING))[0].decode())
    assert by(told, "farm_attempts_total", "outcome")["lost",] == 1


def test_a_postgresql_that_dies_after_a_slow_reading_is_told_within_half_a_minute() -> None:
    clock, answers = Clock(), iter([replace(READING, seconds=9.0)])

    def read() -> FarmReading:
        if (reading := next(answers, None)) is None:
            raise ServerDown("PostgreSQL does not answer")
        return reading

    metrics = FarmMetrics(read, clock=clock)
    assert "\nfarm_up 1.0\n" in exposition(metrics)[0].decode()
    clock.seconds += 31
    assert "\nfarm_up 0.0\n" in exposition(metrics)[0].decode()


def test_a_label_that_is_hostile_is_quoted() -> None:
    name = 'x"} 1\nfarm_up 1\\'
    text, _ = exposition(FarmMetrics(lambda: replace(READING, held={name: 1})))
    (family,) = (
        each for each in text_string_to_metric_families(text.decode()) if each.name == "farm_leases_held"
    )
    assert [sample.labels["environment"] for sample in family.samples] == [name]


def test_an_environment_that_is_not_served_is_told_by_state_and_keeps_a_worker_from_being_ready(
    url: str,
) -> None:
    slow = Pending(name="hol", state=STARTING, seconds=12.0)
    unfit = Pending(name="slow", state=UNFIT, seconds=30.0, reason="the checker never ends")
    events.watch(lambda: replace(STATE, serving=("core",), pending=(slow, unfit)))
    expected = {"core": "serving", "hol": "starting", "slow": "unfit"}
    for environment, state in expected.items():
        for each in ("serving", "starting", "unfit"):
            told = value(url, "farm_worker_environment_state", environment=environment, state=each)
            assert told == float(each == state)
    with pytest.raises(HTTPError) as refused:
        urlopen(url.replace("/metrics", "/health/ready"))
    with refused.value as answer:
        assert answer.code == 503
        said = answer.read().decode()
    assert "hol: starting for 12 s" in said
    assert "slow: unfit for 30 s, is examined again now: the checker never ends" in said
    events.watch(lambda: replace(STATE, serving=("core",), pending=()))
    with urlopen(url.replace("/metrics", "/health/ready")) as ready:
        assert ready.status == 200
