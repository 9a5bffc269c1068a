"""Service step, event streams: what both kinds of server-sent events share.

Format: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

from farm.service.json_body import Json

TYPE = "text/event-stream"
#: A comment, and after how many quiet seconds it is sent: proxies close streams on which nothing moves.
PING, PING_SECONDS = b": \n\n", 15.0


def event(kind: str, data: object) -> bytes:
    """Return one event, whose data is one line of JSON."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), bytes(Json(data).body))
