"""The methods of both clients that make a single request."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from farm.client import requests, results
from farm.client.caller import Caller
from farm.client.exchange import Call, Steps, ask
from farm.client.requests import Item, Request
from farm.client.results import Batch, Bundle, Declarations, Environment
from farm.client.sessions import AsyncSession, Session, opening

#: Seconds until the deadline of a call that waits for no check.
_SHORT_SECONDS = 60.0
_ENVIRONMENTS = Request(method="GET", path="/v1/environments")

_T = TypeVar("_T")


class Calls(Caller):
    """The methods of `farm.client.Client` that make one request."""

    def batch(self, batch: str, *, wait_seconds: float = 0.0) -> Batch:
        """Return the results of a batch, after waiting up to `wait_seconds` for all of its verdicts."""
        return self._once(requests.look(batch, wait_seconds=wait_seconds), results.parse_batch)

    def cancel(
        self, batch: str, *, items: Sequence[str] | None = None, groups: Sequence[str] | None = None
    ) -> int:
        """Cancel these items and groups of a batch, or the whole batch; return how many were unfinished."""
        return self._once(requests.cancellation(batch, items, groups), results.parse_cancelled)

    def bundle(self, item: str) -> Bundle:
        """Return a proved item, by its id, as files with which others check it without the farm."""
        return self._once(requests.bundle(item), results.parse_bundle)

    def environments(self) -> list[Environment]:
        """Return the Lean environments of the farm."""
        return self._once(_ENVIRONMENTS, results.parse_environments)

    def declarations(self, contains: str, *, environment: str | None = None, most: int = 20) -> Declarations:
        """Return declarations of an environment whose names contain all words of a text, in any case."""
        request = requests.declarations(contains, environment=environment, most=most)
        return self._once(request, results.parse_declarations)

    def session(self, item: Item, *, environment: str | None = None) -> Session:
        """Open a session on a statement, or on a program with sorries, to try tactics step by step."""
        return self._once(opening(item, environment), lambda answer: Session(answer, self._once))

    def resumed(self, session: str) -> Session:
        """Return a session that was opened before, by its id; it does not know its roots."""
        return Session({"id": session, "environment": "", "states": []}, self._once)

    def _once(self, request: Request, parse: Callable[[Any], _T]) -> _T:
        call = self._call(request.wait_seconds + _SHORT_SECONDS)
        return parse(self._done(ask(request, call), call))

    @abstractmethod
    def _done(self, steps: Steps[_T], call: Call) -> _T:
        """Carry out steps and return their result."""


class AsyncCalls(Caller):
    """The methods of `farm.client.AsyncClient` that make one request."""

    async def batch(self, batch: str, *, wait_seconds: float = 0.0) -> Batch:
        """Return the results of a batch, after waiting up to `wait_seconds` for all of its verdicts."""
        return await self._once(requests.look(batch, wait_seconds=wait_seconds), results.parse_batch)

    async def cancel(
        self, batch: str, *, items: Sequence[str] | None = None, groups: Sequence[str] | None = None
    ) -> int:
        """Cancel these items and groups of a batch, or the whole batch; return how many were unfinished."""
        return await self._once(requests.cancellation(batch, items, groups), results.parse_cancelled)

    async def bundle(self, item: str) -> Bundle:
        """Return a proved item, by its id, as files with which others check it without the farm."""
        return await self._once(requests.bundle(item), results.parse_bundle)

    async def environments(self) -> list[Environment]:
        """Return the Lean environments of the farm."""
        return await self._once(_ENVIRONMENTS, results.parse_environments)

    async def declarations(
        self, contains: str, *, environment: str | None = None, most: int = 20
    ) -> Declarations:
        """Return declarations of an environment whose names contain all words of a text, in any case."""
        request = requests.declarations(contains, environment=environment, most=most)
        return await self._once(request, results.parse_declarations)

    async def session(self, item: Item, *, environment: str | None = None) -> AsyncSession:
        """Open a session on a statement, or on a program with sorries, to try tactics step by step."""
        return await self._once(opening(item, environment), lambda answer: AsyncSession(answer, self._once))

    def resumed(self, session: str) -> AsyncSession:
        """Return a session that was opened before, by its id; it does not know its roots."""
        return AsyncSession({"id": session, "environment": "", "states": []}, self._once)

    async def _once(self, request: Request, parse: Callable[[Any], _T]) -> _T:
        call = self._call(request.wait_seconds + _SHORT_SECONDS)
        return parse(await self._done(ask(request, call), call))

    @abstractmethod
    async def _done(self, steps: Steps[_T], call: Call) -> _T:
        """Carry out steps and return their result."""
