"""The sign-in of browsers for the page: by the session of a cookie, never by an API call's token."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from farm.errors import Forbidden
from farm.service.auth.local_token import LOCAL
from farm.service.auth.sessions import SESSION_SECONDS, Session, Sessions
from farm.service.outage import Outage
from farm.store.keys import Key, Scope
from farm.store.looking import SeenRun

#: All addresses of the page begin with this.
ROOT = "/page"

_COOKIE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
# A sign-in may lead to an address of the page only, on no other host.
_WAY = re.compile(r"/page/[A-Za-z0-9/]*(?:\?[A-Za-z0-9=&:%._~+-]*)?", re.ASCII)


def is_page(path: str) -> bool:
    """Return whether an address belongs to the page."""
    return path in ("/", "/docs", ROOT) or path.startswith(ROOT + "/")


def way(path: str) -> str:
    """Return the address to open after a sign-in: this one if it is the page's, else the page's start."""
    return path if len(path) < 1000 and _WAY.fullmatch(path) else f"{ROOT}/"


@dataclass(frozen=True, kw_only=True, slots=True)
class Viewer:
    """The key and session of a signed-in browser; `sees_runs`: also the runs of `farm submit`."""

    key: Key
    session: Session
    sees_runs: bool

    def may(self, scope: Scope) -> bool:
        """Return whether the key has a scope."""
        return scope in self.key.scopes

    def require(self, scope: Scope) -> None:
        """Raise `Forbidden` if the key lacks the scope."""
        if not self.may(scope):
            raise Forbidden(f"the key {self.key.name} lacks the scope {scope}; use another key")

    def sees(self, run: SeenRun) -> bool:
        """Return whether the viewer may see a run: a batch of its own key, or any run of `farm submit`."""
        return self.sees_runs if run.owner is None else run.owner == self.key.id


class BrowserAuth:
    """Signs browsers in. `verify` finds the key of a token, "" for none, and may query PostgreSQL.

    Runs of `farm submit` belong to no key: the local key sees them, and keys whose names are in `shown_to`.
    """

    def __init__(self, verify: Callable[[str], Key | None], *, shown_to: Collection[str] = ()) -> None:
        self._verify, self._shown_to = verify, frozenset(shown_to)
        self._outage = Outage()
        self.sessions = Sessions()

    async def key(self, token: str) -> Key | None:
        """Return the current key of a token, None if it has none; raises `ServerDown`."""
        with self._outage.noticed():
            return await asyncio.get_running_loop().run_in_executor(None, self._verify, token)

    async def viewer(self, cookies: Iterable[str], *, host: str) -> Viewer | None:
        """Return the viewer with these `Cookie` headers, None if it must sign in; raises `ServerDown`."""
        session = self.session(cookies, host=host) or self.sessions.anonymous
        key = await self.key(session.token)
        if key is None:
            return None
        sees_runs = key.id == LOCAL.id or key.name in self._shown_to
        return Viewer(key=key, session=session, sees_runs=sees_runs)

    def session(self, cookies: Iterable[str], *, host: str) -> Session | None:
        """Return the session of these `Cookie` headers."""
        pairs = [pair.strip().partition("=") for header in cookies for pair in header.split(";")]
        for name in (cookie_name(host, is_secure=True), cookie_name(host, is_secure=False)):
            for given, _, value in pairs:
                if given == name and _COOKIE.fullmatch(value) and (found := self.sessions.find(value)):
                    return found
        return None


def cookie_name(host: str, *, is_secure: bool) -> str:
    """Return the name of the cookie, with the port: browsers share cookies between ports of a host."""
    port = re.search(r":([0-9]+)$", host)
    return f"{'__Secure-' if is_secure else ''}farm-page-{port[1] if port else 'usual'}"


def cookie(session: Session | None, *, host: str, is_secure: bool) -> str:
    """Return the `Set-Cookie` that signs a browser in, or out.

    No script and no page of another site can use it, and browsers send it to the page's addresses only.
    """
    value, seconds = ("", 0) if session is None else (session.id, SESSION_SECONDS)
    name = cookie_name(host, is_secure=is_secure)
    words = f"{name}={value}; Max-Age={seconds}; Path={ROOT}; HttpOnly; SameSite=Strict"
    return words + ("; Secure" if is_secure else "")
