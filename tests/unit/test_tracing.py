"""Traces are off unless OpenTelemetry's variables ask for them, and then what is wrong is said at once."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from farm import tracing
from farm.tracing.span import trace_id
from farm.tracing.tracer import Tracer
from tests.collector import Collector, collecting
from tests.processes import CODE, eventually

#: All that a command, a service or a worker imports. What it rests on imports OpenTelemetry's interface, and
#: its metrics where they are installed, but neither its spans nor what sends them.
EVERYTHING = """
    farm.api farm.cli.command farm.cli.submitting farm.runs.submit farm.runs.export farm.service.server
    farm.client farm_workers.loop.process farm_workers.cli.commands
"""


def python(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program in Python with these variables, and none of OpenTelemetry's besides."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "FARM_"))}
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**inherited, "PYTHONPATH": CODE, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.whole
def test_without_being_asked_nothing_imports_what_makes_or_sends_spans() -> None:
    disabled = {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}
    ended = python(
        "import importlib, os, sys\n"
        "def load(names):\n    for name in names.split(): importlib.import_module(name)\n"
        "    begin()\n"
        f"    os.environ.update({disabled})\n"
        "    begin()\n"
        f"    for name in {[*disabled]}: del os.environ[name]\n"
        "def begin():\n"
        "    from farm import tracing\n"
        "    tracing.begin('farm')\n"
        "    with tracing.root('a', {}) as span, tracing.step('b'): span.set_attributes(c=1)\n"
        "    tracing.flush()\n"
        "    print(span.traceparent, *(name for name in sys.modules if name.startswith('opentelemetry')))\n"
        f"load('farm.tracing farm.client farm.cli.command')\nload({EVERYTHING!r})",
    )
    assert ended.stderr == ""
    *few, everything, disabled_too = (line.split() for line in ended.stdout.splitlines())
    assert few == [["None"], ["None"]]
    assert everything == disabled_too
    assert everything[0] == "None"
    senders = ("opentelemetry.sdk.trace", "opentelemetry.exporter")
    assert [name for name in everything if name.startswith(senders)] == []


@pytest.mark.parametrize(
    ("environ", "is_asked"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_SERVICE_NAME": "farm"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        (
            {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces", "OTEL_SDK_DISABLED": "false"},
            True,
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, False),
    ],
)
def test_traces_are_asked_for_by_an_endpoint(environ: dict[str, str], is_asked: bool) -> None:
    assert tracing.settings({**environ, "FARM_HOME": "x"}) == (environ if is_asked else {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "1"),
    ],
)
def test_a_wrong_variable_is_one_error(name: str, value: str) -> None:
    program = "from farm import tracing\ntracing.begin('farm')"
    ended = python(program, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1", **{name: value})
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("farm.errors.SettingsError: OTEL_EXPORTER_OTLP_")
    assert "grpc" in last or "max_queue_size" in last


@pytest.fixture
def begun() -> Iterator[Callable[[], Tracer]]:
    """How to begin to trace; no thread of a tracer's goes on after the test."""
    tracers: list[Tracer] = []

    def begin() -> Tracer:
        tracers.append(Tracer("farm"))
        return tracers[-1]

    yield begin
    for tracer in tracers:
        tracer._exporting.shutdown()  # or it would try again for seconds
        tracer._provider.shutdown()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector, whose address the variables of this process name."""
    with collecting() as collector:
        for name, value in collector.settings.items():
            monkeypatch.setenv(name, value)
        yield collector


def test_a_span_goes_to_the_collector_with_its_attributes(
    begun: Callable[[], Tracer], collector: Collector
) -> None:
    tracer = begun()
    with tracer.span("a", None, {"number": 3, "none": None, "flag": True}) as span:
        assert span.trace_id == trace_id(span.traceparent)
        span.set_attributes(words="x", missing=None)
    tracer.flush()
    (found,) = collector.named("a")
    assert found.facts == {"farm.number": 3, "farm.flag": True, "farm.words": "x"}
    assert (found.service, found.trace, found.is_error) == ("farm", span.trace_id, False)


def test_an_error_is_told_by_its_type_alone(begun: Callable[[], Tracer], collector: Collector) -> None:
    tracer = begun()
    with pytest.raises(ValueError, match="secret"), tracer.span("a", None, {}):
        raise ValueError("secret")
    tracer.flush()
    (found,) = collector.named("a")
    assert (found.is_error, found.facts) == (True, {"error.type": "ValueError"})


def test_the_variables_name_the_service(
    begun: Callable[[], Tracer], collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    tracer = begun()
    tracer.ended("a", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", time.time_ns() - 10**9)
    tracer.flush()
    (found,) = collector.named("a")
    assert (found.service, found.parent) == ("mine", "00f067aa0ba902b7")
    assert found.seconds >= 1


def test_a_sampler_that_leaves_a_trace_out_leaves_no_id(
    begun: Callable[[], Tracer], collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    with begun().span("a", None, {}) as span:
        assert (span.traceparent, span.trace_id) == (None, None)


@contextmanager
def no_listener() -> Iterator[str]:
    """The address of a port that nobody listens at, and that nobody else gets."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{deaf.getsockname()[1]}"


@contextmanager
def refusing() -> Iterator[str]:
    """The address of a collector that refuses all spans."""
    with collecting(status=403) as collector:
        yield collector.url
        assert collector.requests > 1


@pytest.mark.parametrize(("collector_at", "word"), [(no_listener, "refused"), (refusing, "403")])
def test_a_collector_that_takes_no_spans_is_told_of_once_and_not_waited_for(
    begun: Callable[[], Tracer],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    collector_at: Callable[[], AbstractContextManager[str]],
    word: str,
) -> None:
    def told() -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.levelno >= logging.WARNING]

    with collector_at() as url:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        tracer = begun()
        for _ in range(3):
            with tracer.span("a", None, {}):
                pass
            tracer.flush()
        eventually(told)
    (said,) = told()
    assert said.getMessage().startswith("Traces do not reach the collector: ")
    assert word in said.getMessage()


def test_a_collector_that_hangs_holds_no_span_up_and_no_flush(
    begun: Callable[[], Tracer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector never answers, and its client waits a day: both come back before that or not at all."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "86400")
        monkeypatch.setattr("farm.tracing.tracer.FLUSH_SECONDS", 0.2)
        tracer = begun()
        for _ in range(3000):  # more than the queue holds
            with tracer.span("a", None, {}):
                pass
        tracer.flush()
