"""Tracing step, the interface of a span, which is also the span of an untraced process."""

from __future__ import annotations


class Span:
    """A span that is not recorded."""

    #: The parent for child spans in any process, in the form of W3C's header; None: not recorded.
    traceparent: str | None = None

    @property
    def trace_id(self) -> str | None:
        """The id of its trace, None if it is not recorded."""
        return trace_id(self.traceparent)

    def set_attributes(self, **facts: object) -> None:
        """Add attributes, except those that are None."""


def trace_id(traceparent: str | None) -> str | None:
    """Return the trace's id in a ``traceparent``: https://www.w3.org/TR/trace-context/#traceparent-header."""
    return None if traceparent is None else traceparent.split("-")[1]
