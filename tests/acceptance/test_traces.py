"""A run is one trace, from submit over each check to export, in all processes, and costs nothing else."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from farm.client import Client
from tests.collector import Collector, Got, collecting
from tests.commands import HEADER, PROGRAMS, PROVED, WRONG, Command, Running, entry, lines, verdicts, write
from tests.farms import Quiet, a_worker
from tests.processes import eventually
from tests.services import Service, serving_http

STATED = {
    "name": "stated",
    "header": HEADER,
    "formal_statement": "theorem t : 1 = 1 := by sorry",
    "generation": "```lean4\ntheorem t : 1 = 1 := by\n  exact rfl\n```",
}
#: What a span may tell: nothing of it comes from a proof or a manifest.
TOLD = {
    "farm.submit": {"run_id", "lines", "environment", "tier", "priority"},
    "farm.check": {
        *("check_id", "attempt", "environment", "tier", "queued_seconds"),
        *("verdict", "reason", "wall_seconds", "cpu_seconds"),
    },
    "farm.lean": {"way"},
    "farm.challenge": set(),
    "farm.seal": set(),
    "farm.record": set(),
    "farm.export": {"run_id", "manifest", "lines"},
}
UPSTREAM = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def shared_collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.fixture(scope="module")
def worker(
    shared_quiet: Quiet, shared_collector: Collector, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A worker that is traced, and logs each check."""
    settings = {**shared_collector.settings, "FARM_LOG_LEVEL": "debug"}
    with a_worker(shared_quiet, tmp_path_factory.mktemp("worker"), **settings) as worker:
        yield worker


@pytest.fixture
def collector(shared_collector: Collector) -> Collector:
    shared_collector.forget()
    return shared_collector


@pytest.fixture
def traced(shared_quiet: Quiet, worker: Running, collector: Collector) -> Command:
    """The command of a farm that is traced, as its worker is; nothing was submitted to it yet."""
    shared_quiet.clear()
    return shared_quiet.farm.having(**collector.settings)


def whole(collector: Collector, *, checks: int) -> dict[str, list[Got]]:
    """Return the spans by name when those of so many checks, and an export, are there."""
    collector.named("farm.record", count=checks)
    collector.named("farm.check", count=checks)
    collector.named("farm.export")
    return {name: collector.named(name, count=0) for name in {span.name for span in collector.spans}}


def test_a_run_is_one_trace_from_submit_to_export(
    traced: Command, collector: Collector, tmp_path: Path
) -> None:
    manifest = write(tmp_path / "a.jsonl", STATED, entry(PROVED, 1), entry(WRONG, 2))
    assert traced("submit", manifest).returncode == 0
    spans = whole(collector, checks=3)
    (root,) = spans["farm.submit"]
    assert {span.trace for span in collector.spans} == {root.trace}
    assert (root.parent, root.service, root.facts["farm.lines"]) == ("", "farm", 3)
    assert {span.parent for span in spans["farm.check"] + spans["farm.export"]} == {root.id}
    assert {span.service for span in spans["farm.check"]} == {"farm-worker"}
    assert set(spans) == set(TOLD)
    for name, found in spans.items():
        assert {key for span in found for key in span.facts} == {f"farm.{key}" for key in TOLD[name]}
    assert not any(span.is_error for span in collector.spans)


def test_the_steps_of_a_check_are_below_it(traced: Command, collector: Collector, tmp_path: Path) -> None:
    # Another statement: a worker makes the challenge of each once.
    stated = {name: text.replace("1 = 1", "2 = 2") for name, text in STATED.items()}
    assert traced("submit", write(tmp_path / "a.jsonl", stated)).returncode == 0
    spans = whole(collector, checks=1)
    (check,), (challenge,), (seal,) = (spans[f"farm.{name}"] for name in ("check", "challenge", "seal"))
    assert {seal.parent, challenge.parent, spans["farm.record"][0].parent} == {check.id}
    assert {span.parent for span in spans["farm.lean"]} == {check.id, challenge.id}
    told = {
        key: check.facts[f"farm.{key}"] for key in ("verdict", "reason", "tier", "environment", "attempt")
    }
    assert told == {
        "verdict": "proved",
        "reason": "ok",
        "tier": "kernel",
        "environment": "core",
        "attempt": 1,
    }
    assert 0 < check.facts["farm.cpu_seconds"] <= check.seconds * 2


def test_a_verdict_says_in_which_trace_it_was_made(
    traced: Command, worker: Running, collector: Collector, tmp_path: Path
) -> None:
    said_before = worker.said
    manifest = write(tmp_path / "a.jsonl", entry(PROVED, 1))
    assert traced("submit", manifest).returncode == 0
    (root,) = collector.named("farm.submit")
    assert traced.json("show")["farm"]["trace_id"] == root.trace
    assert traced.json("show", "--line", 1)["farm"]["trace_id"] == root.trace
    assert f"trace: {root.trace}" in traced("show", "--line", 1).stdout
    assert lines(manifest)[0]["farm"]["trace_id"] == root.trace
    said = worker.said.removeprefix(said_before)
    checked = [line for line in said.splitlines() if "proved" in line]
    assert all(f"trace_id={root.trace}" in line for line in checked)
    assert checked


def test_a_trace_makes_no_other_run_and_no_other_check(
    shared_quiet: Quiet, traced: Command, collector: Collector, tmp_path: Path
) -> None:
    manifest = write(tmp_path / "a.jsonl", entry(PROVED, 1))
    assert traced("submit", manifest).returncode == 0
    for farm in (shared_quiet.farm, traced):
        assert "submitted before" in farm("submit", manifest).stderr
    assert "1 shared" in shared_quiet.farm("submit", write(tmp_path / "b.jsonl", entry(PROVED, 1))).stderr
    (root,) = [span for span in collector.named("farm.submit") if "farm.resumed" not in span.facts]
    assert lines(tmp_path / "b.jsonl")[0]["farm"]["trace_id"] == root.trace
    assert shared_quiet.rows()["checks"] == 1


def test_what_is_not_traced_on_both_sides_has_no_trace(
    shared_quiet: Quiet, traced: Command, collector: Collector, tmp_path: Path
) -> None:
    unasked = write(tmp_path / "a.jsonl", entry(PROVED, 1))
    assert shared_quiet.farm("submit", unasked).returncode == 0
    unsampled = write(tmp_path / "b.jsonl", entry(PROVED, 2))
    assert traced.having(OTEL_TRACES_SAMPLER="always_off")("submit", unsampled).returncode == 0
    asked = write(tmp_path / "c.jsonl", entry(PROVED, 3))
    assert traced("submit", asked).returncode == 0
    assert [lines(path)[0]["farm"]["trace_id"] is None for path in (unasked, unsampled, asked)] == [
        *(True, True, False)
    ]
    spans = whole(collector, checks=1)
    assert [len(spans[name]) for name in ("farm.submit", "farm.check", "farm.export")] == [1, 1, 1]


def test_an_error_is_told_by_its_type_alone(traced: Command, collector: Collector, tmp_path: Path) -> None:
    manifest = write(tmp_path / "a.jsonl", {**entry(PROVED, 1), "environment": "secret"})
    assert traced("submit", manifest).returncode == 2
    (root,) = collector.named("farm.submit")
    assert root.is_error
    assert "secret" not in json.dumps(root.facts)
    assert root.facts["error.type"].endswith(("ManifestError", "WrongLines"))


@pytest.fixture(scope="module")
def shared_service(
    shared_quiet: Quiet, shared_collector: Collector, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    traced = shared_quiet.farm.having(**shared_collector.settings)
    with serving_http(traced, tmp_path_factory.mktemp("service")) as service:
        yield service


@pytest.fixture
def service(traced: Command, shared_service: Service) -> Service:
    return shared_service


def posted(service: Service, number: int, **headers: str) -> dict[str, Any]:
    """Return the result of an item that was submitted with these headers."""
    item = {"program": HEADER + PROGRAMS[PROVED].format(n=number)}
    body = {"items": [item], "wait_seconds": 60}
    (result,) = service.ask("POST", "/v1/batches", json=body, headers=headers)["items"]
    return dict(result)


def test_a_batch_over_http_is_a_part_of_the_trace_of_its_request(
    service: Service, collector: Collector
) -> None:
    found = posted(service, 1, traceparent="00-{}-{}-01".format(*UPSTREAM))
    assert found["provenance"]["trace_id"] == UPSTREAM[0]
    (root,), (check,) = collector.named("farm.submit"), collector.named("farm.check")
    assert (root.trace, root.parent) == UPSTREAM
    assert (check.trace, check.parent) == (UPSTREAM[0], root.id)
    assert found["id"].startswith(root.facts["farm.run_id"])


@pytest.mark.parametrize(
    "header",
    ["", "nonsense", "00-" + "0" * 32 + "-00f067aa0ba902b7-01", "00-{}-{}".format(*UPSTREAM), "9" * 3000],
)
def test_a_header_that_is_none_begins_a_trace(service: Service, collector: Collector, header: str) -> None:
    found = posted(service, 2, traceparent=header)
    (root,) = collector.named("farm.submit")
    assert (root.parent, root.trace) == ("", found["provenance"]["trace_id"])
    assert root.trace != UPSTREAM[0]


def test_the_client_sends_the_span_in_which_it_is_called(service: Service, collector: Collector) -> None:
    items = [HEADER + PROGRAMS[PROVED].format(n=number) for number in range(3)]
    provider = TracerProvider(shutdown_on_exit=False)
    with Client(f"unix:{service.path}", batch_size=1) as client:
        with provider.get_tracer("training").start_as_current_span("step") as span:
            results = client.check_all(items)
        client.check_all([HEADER + PROGRAMS[PROVED].format(n=9)])
    context = span.get_span_context()
    trace, own = f"{context.trace_id:032x}", f"{context.span_id:016x}"
    assert {each.provenance and each.provenance.trace_id for each in results} == {trace}
    roots = collector.named("farm.submit", count=4)
    assert sorted((root.trace, root.parent) == (trace, own) for root in roots) == [False, True, True, True]


def test_the_farm_from_python_is_traced(traced: Command, collector: Collector) -> None:
    program = f"from farm import Farm\nwith Farm() as farm: print(farm.check({STATED!r}).outcome)"
    ended = subprocess.run(
        [sys.executable, "-c", program], env=traced.environment, capture_output=True, text=True, check=True
    )
    assert ended.stdout == "proved\n"
    (root,), (check,) = collector.named("farm.submit"), collector.named("farm.check")
    assert (check.trace, check.parent) == (root.trace, root.id)


@pytest.fixture
def hanging() -> Iterator[str]:
    """The address of a collector that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def judged(quiet: Quiet, folder: Path, url: str) -> tuple[str, str]:
    """Return what a command and a worker said that tell their spans to an address; both end."""
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_BSP_SCHEDULE_DELAY": "50"}
    manifest = write(folder / "a.jsonl", *(entry(PROVED, number) for number in range(12)))
    with a_worker(quiet, folder / "worker", **settings) as worker:
        said = quiet.farm.having(**settings)("submit", manifest)
        assert said.returncode == 0, said.stderr
        assert verdicts(manifest) == [PROVED] * 12
        worker.process.send_signal(signal.SIGTERM)
        assert worker.ended() == 0
        return said.stderr, worker.said


def test_a_collector_that_is_away_is_told_of_once_and_delays_nothing(quiet: Quiet, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    for words in judged(quiet, tmp_path, url):
        assert words.count("Traces do not reach the collector") == 1
        assert "Traceback" not in words
        assert "retrying" not in words.partition("Traces do not reach")[0]


def test_a_command_and_a_worker_end_though_their_collector_hangs(
    quiet: Quiet, hanging: str, tmp_path: Path
) -> None:
    command, worker = judged(quiet, tmp_path, hanging)
    assert "Traceback" not in command + worker


def test_a_wrong_variable_ends_a_command_at_its_start(quiet: Quiet, tmp_path: Path) -> None:
    manifest = write(tmp_path / "a.jsonl", entry(PROVED, 1))
    wrong = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    farm = quiet.farm.having(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4317", **wrong)
    for words in (("submit", manifest), ("worker",)):
        ended = farm(*words)
        assert ended.returncode == 2
        assert re.search(
            r"^farm: OTEL_EXPORTER_OTLP_PROTOCOL=grpc: .*http/protobuf", ended.stderr, re.MULTILINE
        )
    assert quiet.rows() == {}


def test_the_farms_own_worker_is_traced_when_a_command_is(
    own_farm: Command, collector: Collector, tmp_path: Path
) -> None:
    # The worker follows the settings of a command: tests/acceptance/test_own_worker.py.
    traced = own_farm.having(**collector.settings)
    assert traced("submit", write(tmp_path / "a.jsonl", entry(PROVED, 2))).returncode == 0
    eventually(lambda: collector.named("farm.check", count=0))
    (check,) = collector.named("farm.check")
    assert check.trace == collector.named("farm.submit")[0].trace
