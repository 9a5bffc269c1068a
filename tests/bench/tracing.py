"""Benchmarks, traces: what they cost a worker, beside one that makes none."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from farm_workers.bench.measure import programs

from farm import tracing
from farm.settings import Settings
from tests.bench.around.judging import Judged, judged
from tests.bench.around.site import farm_at_work
from tests.bench.around.workers import farm_worker
from tests.bench.checks.checks import ATTEMPTS
from tests.bench.checks.figures import Figure

_ENVIRONMENT, _HEADER = "core", "prelude\nimport Core\n"
_CHECKS, _TURNS = 400, 7


def traces() -> Iterator[Figure]:
    """Have two workers judge the same small programs in turns, of which one is traced."""
    at_once = Settings.load().concurrency
    with (
        _collector() as url,
        _asking(url),
        farm_at_work() as plain,
        farm_at_work() as traced,
        farm_worker(plain, _ENVIRONMENT, at_once, {"OTEL_SDK_DISABLED": "true"}) as silent,
        farm_worker(traced, _ENVIRONMENT, at_once, {}) as telling,
    ):
        pairs: list[tuple[Judged, Judged]] = []
        for turn in range(_TURNS + 1):
            sys.stderr.write(f"traces: round {turn} of {_TURNS}\n")
            given = programs(_HEADER, turn * _CHECKS, _CHECKS, attempts=ATTEMPTS)
            sides = [(plain, silent), (traced, telling)]
            found = {
                worker.process.pid: judged(farm, worker, _ENVIRONMENT, given)
                for farm, worker in (sides if turn % 2 else sides[::-1])
            }
            if turn:  # the first one warms up
                pairs.append((found[silent.process.pid], found[telling.process.pid]))
        yield from _compared(pairs)


def _compared(pairs: list[tuple[Judged, Judged]]) -> Iterator[Figure]:
    yield Figure(
        key="traces_rate",
        name="small programs, tier kernel: checks/s of a traced worker over those of another",
        unit="",
        samples=tuple(traced.per_second / plain.per_second for plain, traced in pairs),
        at_least=0.95,
    )
    yield Figure(
        key="traces_cpu",
        name="processor time of a traced worker's own process over that of another",
        unit="",
        samples=tuple(traced.worker_seconds / plain.worker_seconds for plain, traced in pairs),
    )
    yield Figure(
        key="traces_each",
        name="processor time per check that traces add to a worker's own process",
        unit="ms",
        samples=tuple(
            traced.each_ms(traced.worker_seconds) - plain.each_ms(plain.worker_seconds)
            for plain, traced in pairs
        ),
    )
    yield Figure(
        key="traces_off_rate",
        name="small programs, tier kernel, through a worker that is not traced",
        unit="checks/s",
        samples=tuple(plain.per_second for plain, _ in pairs),
    )


@contextmanager
def _asking(url: str) -> Iterator[None]:
    """Trace what this process submits, and the workers that it starts."""
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = url
    tracing.begin("farm-bench")
    try:
        yield
    finally:
        del os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]


@contextmanager
def _collector() -> Iterator[str]:
    """Take what is sent, and do nothing with it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_said: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
