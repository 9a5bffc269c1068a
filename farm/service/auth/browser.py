"""Who visits the page: by the session of a cookie, and never by what the API takes."""

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

#: Everything that the page answers is at this address or below.
ROOT = "/page"

_COOKIE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
# Where a sign-in may lead: an address of the page, and no other host's.
_WAY = re.compile(r"/page/[A-Za-z0-9/]*(?:\?[A-Za-z0-9=&:%._~+-]*)?", re.ASCII)


def is_page(path: str) -> bool:
    """Return whether an address is the page's own."""
    return path in ("/", "/docs", ROOT) or path.startswith(ROOT + "/")


def way(path: str) -> str:
    """Return where to go after a sign-in: this address of the page, or its beginning."""
    return path if len(path) < 1000 and _WAY.fullmatch(path) else f"{ROOT}/"


@dataclass(frozen=True, kw_only=True, slots=True)
class Viewer:
    """Who looks at the page: a key, the session it came by, and whether it sees runs of `farm submit`."""

    key: Key
    session: Session
    sees_runs: bool

    def may(self, scope: Scope) -> bool:
        """Return whether the key has a scope."""
        return scope in self.key.scopes

    def require(self, scope: Scope) -> None:
        """Raise `Forbidden` where the key has not the scope."""
        if not self.may(scope):
            raise Forbidden(f"the key {self.key.name} has not the scope {scope}; use another key")

    def sees(self, run: SeenRun) -> bool:
        """Return whether a run is the viewer's to look at: a key's own batches, and runs where it may."""
        return self.sees_runs if run.owner is None else run.owner == self.key.id


class BrowserAuth:
    """Lets browsers in; `verify` finds the key of a token, "" where there is none, and may ask PostgreSQL.

    Runs of `farm submit` belong to no key. Who started the service sees them, and the keys of these names.
    """

    def __init__(self, verify: Callable[[str], Key | None], *, shown_to: Collection[str] = ()) -> None:
        self._verify, self._shown_to = verify, frozenset(shown_to)
        self._outage = Outage()
        self.sessions = Sessions()

    async def key(self, token: str) -> Key | None:
        """Return the key of a token as it is now; raises `ServerDown`."""
        with self._outage.noticed():
            return await asyncio.get_running_loop().run_in_executor(None, self._verify, token)

    async def viewer(self, cookies: Iterable[str], *, host: str) -> Viewer | None:
        """Return who sends these `Cookie` headers, None for who has to sign in; raises `ServerDown`."""
        session = self.session(cookies, host=host) or self.sessions.nobody
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
    """Return what the cookie is called: browsers have one jar for all ports of a machine."""
    port = re.search(r":([0-9]+)$", host)
    return f"{'__Secure-' if is_secure else ''}farm-page-{port[1] if port else 'usual'}"


def cookie(session: Session | None, *, host: str, is_secure: bool) -> str:
    """Return the `Set-Cookie` that signs a browser in, or out.

    Neither scripts nor pages of other sites can use it, and browsers send it to the page's addresses alone.
    """
    value, seconds = ("", 0) if session is None else (session.id, SESSION_SECONDS)
    name = cookie_name(host, is_secure=is_secure)
    words = f"{name}={value}; Max-Age={seconds}; Path={ROOT}; HttpOnly; SameSite=Strict"
    return words + ("; Secure" if is_secure else "")
