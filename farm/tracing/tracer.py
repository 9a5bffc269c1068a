"""Tracing step, the spans themselves, on OpenTelemetry's SDK.

The provider is the farm's own: a program that imports the farm may have another one. Errors are recorded by
type only, because their messages may quote a manifest.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from farm.tracing.exporting import Batches, Exporting
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
