"""The HTTP/1.1 protocol of the server, with a deadline for clients that never finish a request."""

from __future__ import annotations

import asyncio
import json
import sys
from http import HTTPStatus

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: A client must send the head of a request within this time after it connects.
HEAD_SECONDS = 10.0
#: The most bytes of a request's head: its first line and its headers.
MOST_HEAD_BYTES = 64 << 10
HEAD_TOO_LARGE = (
    f"the head of the request, its first line and headers, has more than {MOST_HEAD_BYTES} bytes; "
    "send data in the body"
)


class InTime(H11Protocol):
    """Closes a connection whose client has not sent a complete head in time: each costs an open file.

    The same deadline holds for the rest of a body whose request is answered already. uvicorn itself only
    closes connections on which nothing follows an answer.
    """

    _head_due: asyncio.TimerHandle | None = None
    _is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first head."""
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """End the deadline if the head is complete; discard what follows a request that is no HTTP."""
        if self._is_refused:
            return
        super().data_received(data)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the deadline."""
        super().connection_lost(exc)
        self._forget_head()

    def on_response_complete(self) -> None:
        """Start the deadline of the rest of the body, or of the next head."""
        super().on_response_complete()
        self._expect_head()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is no HTTP, or whose head is too large, in the words of the other refusals.

        What the client still sends is read and discarded, until it closes the connection or for the time of a
        head: a connection that is closed with unread bytes is reset, and the client loses the answer.
        """
        error = sys.exception()
        hint = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if hint == 431 else HTTPStatus.BAD_REQUEST
        words = HEAD_TOO_LARGE if hint == 431 else f"the request is no HTTP/1.1: {error or msg}"
        body = json.dumps({"detail": words}).encode("ascii")
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        answer = h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())
        for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self._is_refused = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._forget_head()
        self._head_due = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _expect_head(self) -> None:
        if self._is_refused:
            return
        is_answered = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        if self.conn.their_state is not h11.IDLE and not is_answered:
            self._forget_head()
        elif self._head_due is None:
            self._head_due = self.loop.call_later(HEAD_SECONDS, self.timeout_keep_alive_handler)

    def _forget_head(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: `AuthMiddleware` refuses upgrades, and uvicorn would advise to install a library."""
