"""The HTTP/1.1 protocol of the server, with a deadline for clients that never finish a request."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: A client must send the head of a request within this time after it connects.
HEAD_SECONDS = 10.0


class InTime(H11Protocol):
    """Closes a connection whose client has not sent a complete head in time: each costs an open file.

    The same deadline holds for the rest of a body whose request is answered already. uvicorn itself only
    closes connections on which nothing follows an answer.
    """

    _head_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first head."""
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """End the deadline if the head is complete."""
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

    def _expect_head(self) -> None:
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
