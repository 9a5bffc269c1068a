"""Tracing step, the spans themselves, on OpenTelemetry's SDK.

The provider is the farm's own: a program that imports the farm may have another one. Errors are recorded by
type only, because their messages may quote a manifest.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from farm.errors import SettingsError
from farm.log import logger
from farm.tracing.span import Span
from farm.version import farm_version

#: How long a command waits at its end for its last spans to be sent.
FLUSH_SECONDS = 3.0

_propagator = TraceContextTextMapPropagator()


class RecordedSpan(Span):
    """A span of OpenTelemetry's."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        context = span.get_span_context()
        if span.is_recording():
            ids = f"{context.trace_id:032x}-{context.span_id:016x}"
            self.traceparent = f"00-{ids}-{context.trace_flags:02x}"

    def set_attributes(self, **facts: object) -> None:
        """Add attributes, except those that are None."""
        self._span.set_attributes(_attributes(facts))


class Tracer:
    """Makes spans, which are sent in the background; thread-safe."""

    def __init__(self, service: str) -> None:
        """Begin by the variables; raises ValueError for a wrong one."""
        named = Resource.create({"service.name": service, "service.version": farm_version()})
        self._exporting = Exporting()
        # No exit waits for it: `flush` is bounded.
        provider = TracerProvider(
            resource=named.merge(OTELResourceDetector().detect()), shutdown_on_exit=False
        )
        provider.add_span_processor(Batches(self._exporting))
        self._provider, self._tracer = provider, provider.get_tracer("farm", farm_version())

    @property
    def is_inside(self) -> bool:
        """Whether this thread is inside a span that is recorded."""
        return trace.get_current_span().is_recording()

    @contextmanager
    def span(self, name: str, parent: str | None, facts: Mapping[str, object]) -> Iterator[Span]:
        """Make a span inside the block, and make it this thread's current one."""
        span = self._tracer.start_span(name, context=_context(parent), attributes=_attributes(facts))
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield RecordedSpan(span)
            except Exception as error:
                span.set_status(trace.StatusCode.ERROR)
                span.set_attribute("error.type", type(error).__name__)
                raise

    def ended(self, name: str, parent: str, began_ns: int) -> None:
        """Make a span that began at this time and ends now."""
        self._tracer.start_span(name, context=_context(parent), start_time=began_ns).end()

    def flush(self) -> None:
        """Send the pending spans, without waiting for an unreachable collector."""
        done = self._exporting.settled
        done.clear()

        def send() -> None:
            self._provider.force_flush()
            done.set()

        threading.Thread(target=send, name="flush traces", daemon=True).start()
        done.wait(FLUSH_SECONDS)


def _context(parent: str | None) -> Context | None:
    """Return the context of a ``traceparent``, an empty one if it is malformed; None: the current one."""
    return None if parent is None else _propagator.extract({"traceparent": parent}, context=Context())


def _attributes(facts: Mapping[str, object]) -> dict[str, str | bool | int | float]:
    told = {f"farm.{name}": value for name, value in facts.items() if value is not None}
    return {
        name: value if isinstance(value, bool | int | float) else str(value) for name, value in told.items()
    }


#: The only protocol of the SDK's exporter here.
_PROTOCOL = "http/protobuf"
#: The loggers of the SDK that report lost spans: each try of an export, and a queue that is full.
_TALKATIVE = (trace_exporter.__name__, "opentelemetry.sdk._shared_internal")

_log = logger(__name__)


class Exporting(SpanExporter):
    """Sends spans over HTTP, and logs once that they are lost."""

    def __init__(self) -> None:
        """Begin by OpenTelemetry's variables; raises `SettingsError` for another protocol."""
        _require_protocol()
        self._exporter = trace_exporter.OTLPSpanExporter()
        self._is_told = False
        self._here = threading.local()
        self.settled = threading.Event()
        for name in _TALKATIVE:
            logging.getLogger(name).addFilter(self._is_of_others)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans, and return whether they have arrived."""
        with self.speaking():
            try:
                result = self._exporter.export(spans)
            except Exception as error:  # noqa: BLE001 # the thread's edge: the SDK would log a traceback each time
                self._tell(f"{type(error).__name__}: {error}")
                result = SpanExportResult.FAILURE
        if result is not SpanExportResult.SUCCESS:
            self.settled.set()
        return result

    def shutdown(self) -> None:
        """Stop sending."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call] # the SDK leaves it so

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Return at once: no span is kept here."""
        return self._exporter.force_flush(timeout_millis)

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """Treat the SDK's log records of this thread, inside the block, as reports about these spans."""
        self._here.speaks = True
        try:
            yield
        finally:
            self._here.speaks = False

    def _is_of_others(self, record: logging.LogRecord) -> bool:
        """Whether a log record of the SDK is about the spans of the program that imports the farm."""
        is_own = getattr(self._here, "speaks", False)
        if is_own:
            self._tell(record.getMessage())
            if record.name == trace_exporter.__name__:
                self.settled.set()  # it tries again, for seconds
        return not is_own

    def _tell(self, why: str) -> None:
        if not self._is_told:
            self._is_told = True
            _log.warning(
                "Traces do not reach the collector: %s. Only spans are lost until they do; "
                "start the collector, or correct OTEL_EXPORTER_OTLP_ENDPOINT. This is logged once.",
                " ".join(why.split()).rstrip("."),
            )


class Batches(BatchSpanProcessor):
    """Gives spans to an exporter in batches, in the background; when too many wait, the oldest are lost."""

    def __init__(self, exporting: Exporting) -> None:
        self._exporting = exporting
        super().__init__(exporting)

    def on_end(self, span: ReadableSpan) -> None:
        """Have a span sent."""
        with self._exporting.speaking():
            super().on_end(span)


def _require_protocol() -> None:
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    given = next(((name, value) for name in names if (value := os.environ.get(name))), None)
    if given is not None and given[1] != _PROTOCOL:
        raise SettingsError(
            f"{given[0]}={given[1]}: the farm sends traces as {_PROTOCOL} only; set that, and the endpoint "
            "of the collector for it, which is usually port 4318"
        )
