"""Tracing step, export: sends spans to the collector; logs an unreachable one once, and never waits."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from farm.errors import SettingsError
from farm.log import logger

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
