"""Tracing step, a span as the farm sees it; this one is what there is where nothing is traced."""

from __future__ import annotations


class Span:
    """A span that nobody records."""

    #: What a child, in whatever process, is told of this span, as W3C's header has it; None: not recorded.
    traceparent: str | None = None

    @property
    def trace_id(self) -> str | None:
        """The id of its trace, None where it is not recorded."""
        return trace_id(self.traceparent)

    def tell(self, **facts: object) -> None:
        """Add attributes; those that are None are left out."""


def trace_id(traceparent: str | None) -> str | None:
    """Return the trace's id in a ``traceparent``: https://www.w3.org/TR/trace-context/#traceparent-header."""
    return None if traceparent is None else traceparent.split("-")[1]
