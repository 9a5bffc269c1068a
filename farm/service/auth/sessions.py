"""The browser sessions of the page, and one-time sign-in codes; in this process's memory only."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from farm.service.auth.tokens import digest, is_same

#: A session ends this long after its start, used or not.
SESSION_SECONDS = 12 * 3600
#: The link that `farm serve` prints is valid this long, for one use.
CODE_SECONDS = 3600
#: Sessions of one token; a further one ends the oldest. So repeated sign-ins use no more memory, and sign out
#: no browser of another token.
MOST_SESSIONS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """A browser that signed in with a token; the token is verified again for every request.

    `id` is in the browser's cookie, `csrf` in every form that changes something: a foreign page may cause the
    browser to send the cookie, but cannot read a form.
    """

    id: str = field(repr=False)
    token: str = field(repr=False)
    csrf: str = field(repr=False)
    until: float

    def allows(self, csrf: str) -> bool:
        """Return whether a form with this token comes from this session."""
        return is_same(digest(csrf), digest(self.csrf))


class Sessions:
    """The sessions of this process; for many threads.

    Sessions and codes are found by digests, so a look-up takes the same time for every wrong id.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: dict[bytes, Session] = {}
        self._codes: dict[bytes, tuple[str, float]] = {}
        #: The session of all browsers of a service without tokens; its forms have a csrf token too.
        self.anonymous = Session(id="", token="", csrf=secrets.token_urlsafe(32), until=float("inf"))

    def begin(self, token: str) -> Session:
        """Start a session with a new random id, and return it."""
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
        """Return the session of this id, None if it has ended or never existed."""
        with self._lock:
            found = self._sessions.get(digest(session_id))
        return found if found is not None and found.until > self._clock() else None

    def end(self, session: Session) -> None:
        """End a session, unless it has ended already."""
        with self._lock:
            self._sessions.pop(digest(session.id), None)

    def invite(self, token: str) -> str:
        """Return a code that `redeem` exchanges once for this token."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            self._codes[digest(code)] = token, self._clock() + CODE_SECONDS
        return code

    def redeem(self, code: str) -> str | None:
        """Return the token of a code, None for a code that was used, is too old or never existed."""
        with self._lock:
            token, until = self._codes.pop(digest(code), (None, 0.0))
        return token if until > self._clock() else None
