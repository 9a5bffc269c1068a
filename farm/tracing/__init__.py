"""Traces: sends the durations of a run and its checks to an OpenTelemetry collector; docs/operate/traces.md.

Off unless OpenTelemetry's own variables name a collector: then nothing of OpenTelemetry is imported, and each
function here costs one comparison. A collector that is away or slow delays nothing and fails nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from farm.errors import SettingsError
from farm.extras import remedy
from farm.tracing.span import Span

if TYPE_CHECKING:
    from farm.tracing.tracer import Tracer

#: The variables of OpenTelemetry that name a collector; one of them suffices.
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

_OFF = nullcontext(Span())

_tracer: Tracer | None = None


def settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return OpenTelemetry's variables if they name a collector, else nothing."""
    is_disabled = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if is_disabled or not any(environ.get(name) for name in ENDPOINTS):
        return {}
    return {name: value for name, value in environ.items() if name.startswith("OTEL_")}


def begin(service: str) -> None:
    """Trace this process from now on, under this service's name, if the variables name a collector.

    Raises `SettingsError` if a variable is wrong, or the packages of the extra ``traces`` are missing.
    """
    global _tracer
    if _tracer is not None or not settings(os.environ):
        return
    try:
        from farm.tracing.tracer import Tracer

        _tracer = Tracer(service)
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"{_endpoint()} asks for traces, but {remedy(error)}; or set OTEL_SDK_DISABLED=true to do without"
        ) from error
    except ValueError as error:
        raise SettingsError(
            f"{_endpoint()} asks for traces, but a variable of OpenTelemetry is wrong: {error}; correct it, "
            "or set OTEL_SDK_DISABLED=true to do without"
        ) from error


def _endpoint() -> str:
    return next(name for name in ENDPOINTS if os.environ.get(name))


def is_on() -> bool:
    """Whether this process makes spans."""
    return _tracer is not None


def flush() -> None:
    """Send the pending spans, for a few seconds at most."""
    if _tracer is not None:
        _tracer.flush()


def root(
    name: str, facts: Mapping[str, object], *, parent: str | None = None
) -> AbstractContextManager[Span]:
    """Make a span inside the block, with these attributes: the first of a trace, unless there is a parent.

    The parent is a W3C ``traceparent``; one that is malformed is as good as none. Without one, it is the
    current span of the program that this runs in.
    """
    return _OFF if _tracer is None else _tracer.span(name, parent, facts)


def child(name: str, parent: str | None, facts: Mapping[str, object]) -> AbstractContextManager[Span]:
    """Make a span inside the block as the child of a ``traceparent``; without a parent, make none."""
    return _OFF if _tracer is None or parent is None else _tracer.span(name, parent, facts)


def step(name: str) -> AbstractContextManager[Span]:
    """Make a span inside the block as the child of this thread's current span, if it has one."""
    return _OFF if _tracer is None or not _tracer.is_inside else _tracer.span(name, None, {})


def ended(name: str, parents: Iterable[str | None], *, began_ns: int) -> None:
    """Make a span that began at this time and ends now, in ns since 1970, for each ``traceparent``."""
    if _tracer is not None:
        for parent in filter(None, parents):
            _tracer.ended(name, parent, began_ns)
