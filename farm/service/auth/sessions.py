"""Who is signed in on the page: sessions and one-time codes, in this process's memory only."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from farm.service.auth.tokens import digest, is_same

#: A session ends so many seconds after its beginning, whatever is done in it.
SESSION_SECONDS = 12 * 3600
#: So long the link that `farm serve` prints opens the page, once.
CODE_SECONDS = 3600
#: Where a token has more sessions, its oldest ends: who signs in again and again uses up no memory, and signs
#: nobody else out.
MOST_SESSIONS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """A browser that is signed in with a token, which is looked at anew for every request.

    `id` is in the browser's cookie, `csrf` in every form that changes something: a page of strangers may
    have the cookie sent, and cannot read a form.
    """

    id: str = field(repr=False)
    token: str = field(repr=False)
    csrf: str = field(repr=False)
    until: float

    def allows(self, csrf: str) -> bool:
        """Return whether a form with this token is one of this session's."""
        return is_same(digest(csrf), digest(self.csrf))


class Sessions:
    """The sessions of this process; many threads may use it at once.

    Only digests of ids and codes are kept as keys, so that a look-up takes the same time for all wrong ones.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: dict[bytes, Session] = {}
        self._codes: dict[bytes, tuple[str, float]] = {}
        #: For a service that demands no token: nobody signs in, and forms have a token all the same.
        self.nobody = Session(id="", token="", csrf=secrets.token_urlsafe(32), until=float("inf"))

    def begin(self, token: str) -> Session:
        """Return a new session, with an id that nobody has seen before."""
        now = self._clock()
        session = Session(
            id=secrets.token_urlsafe(32),
            token=token,
            csrf=secrets.token_urlsafe(32),
            until=now + SESSION_SECONDS,
        )
        with self._lock:
            self._sessions = {key: each for key, each in self._sessions.items() if each.until > now}
            own = [key for key, each in self._sessions.items() if each.token == token]
            for key in own[: max(0, len(own) - MOST_SESSIONS + 1)]:
                del self._sessions[key]
            self._sessions[digest(session.id)] = session
        return session

    def find(self, session_id: str) -> Session | None:
        """Return the session of this id, None for one that has ended or never was."""
        with self._lock:
            found = self._sessions.get(digest(session_id))
        return found if found is not None and found.until > self._clock() else None

    def end(self, session: Session) -> None:
        """End a session; one that has ended stays so."""
        with self._lock:
            self._sessions.pop(digest(session.id), None)

    def invite(self, token: str) -> str:
        """Return a code that is worth this token, once."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            self._codes[digest(code)] = token, self._clock() + CODE_SECONDS
        return code

    def redeem(self, code: str) -> str | None:
        """Return the token that a code is worth, None for one that was used, is too old, or never was."""
        with self._lock:
            token, until = self._codes.pop(digest(code), (None, 0.0))
        return token if until > self._clock() else None
