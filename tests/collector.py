"""What the tests of traces share: a collector that takes OTLP over HTTP, and looking through what it got."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from tests.processes import eventually


@dataclass(frozen=True, kw_only=True)
class Got:
    """A span that a collector got; ids are in hexadecimal digits, and `parent` is "" for none."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    seconds: float
    is_error: bool
    facts: dict[str, Any]


@dataclass
class Collector:
    """A collector at a port of this machine."""

    url: str
    spans: list[Got] = field(default_factory=list)
    requests: int = 0
    _forgotten: set[str] = field(default_factory=set)

    @property
    def settings(self) -> dict[str, str]:
        """What a command is told so that it sends its spans here, soon."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url, "OTEL_BSP_SCHEDULE_DELAY": "100"}

    def named(self, name: str, *, count: int = 1) -> list[Got]:
        """Wait for so many spans of this name, and return those that there are."""

        def there() -> list[Got]:
            return [span for span in list(self.spans) if span.name == name]

        eventually(lambda: len(there()) >= count)
        return there()

    def forget(self) -> None:
        """Drop every trace so far, and what still comes of one, for the next of the tests that share this."""
        self._forgotten |= {span.trace for span in self.spans}
        self.spans.clear()

    def take(self, body: bytes) -> None:
        """Keep the spans of a request."""
        self.requests += 1
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            own = {each.key: _value(each.value) for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [
                    Got(
                        service=own["service.name"],
                        name=span.name,
                        trace=span.trace_id.hex(),
                        id=span.span_id.hex(),
                        parent=span.parent_span_id.hex(),
                        seconds=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
                        is_error=span.status.code == span.status.STATUS_CODE_ERROR,
                        facts={each.key: _value(each.value) for each in span.attributes},
                    )
                    for span in scope.spans
                    if span.trace_id.hex() not in self._forgotten
                ]


def _value(value: AnyValue) -> Any:
    return getattr(value, str(value.WhichOneof("value")))


@contextmanager
def collecting(*, status: int = 200) -> Iterator[Collector]:
    """Take spans inside the block, and answer with this status."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name that the library calls
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/traces"
            collector.take(body)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_said: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        collector = Collector(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield collector
        server.shutdown()
        thread.join()
