"""Proofs step by step over HTTP: open a session on a statement, try tactics, and have a state proved.

with farm.session({"formal_statement": "theorem t (p : Prop) (h : p) : p"}) as session:
step = session.step(session.root, ["simp", "exact h"])[1]
session.prove(step.state).reward
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

from farm.client.errors import ServiceFailed, Unanswered, Unreachable
from farm.client.requests import Request
from farm.client.results import Result, parse_result
from farm.client.states import State, Step

_T = TypeVar("_T")

#: Carries out a request and parses its answer.
Once = Callable[[Request, Callable[[Any], Any]], Any]
#: A state, or its id.
Place = State | str

_ROOT = "/v1/sessions"
#: Seconds that an answer may take besides the tactics' own limits.
_SPARE_SECONDS = 120.0


def opening(item: str | Mapping[str, object], environment: str | None) -> Request:
    """Return the request that opens a session on an item without an answer, or on a program with sorries."""
    given = {"program": item} if isinstance(item, str) else dict(item)
    if environment is not None:
        given["environment"] = environment
    return Request(method="POST", path=_ROOT, body=json.dumps(given), wait_seconds=_SPARE_SECONDS)


def _id(place: Place) -> str:
    return place if isinstance(place, str) else place.id


class Requests:
    """The requests of one session, which its owner carries out."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.id: str = answer["id"]
        self.environment: str = answer["environment"]
        self.roots: tuple[State, ...] = tuple(map(_state, answer["states"]))
        self._path = f"{_ROOT}/{quote(self.id, safe='')}"

    @property
    def root(self) -> State:
        """The first state: that at the only sorry, or the first one, of the program."""
        return self.roots[0]

    def steps_request(
        self,
        attempts: Sequence[tuple[Place, Sequence[str]]],
        *,
        seconds: float | None,
        heartbeats: int | None,
        first_success: bool,
    ) -> Request:
        """Return the request to try tactics on states."""
        given: dict[str, object] = {
            "steps": [{"state": _id(place), "tactics": list(tactics)} for place, tactics in attempts],
            "first_success": first_success,
        }
        if seconds is not None:
            given["seconds"] = seconds
        if heartbeats is not None:
            given["heartbeats"] = heartbeats
        count = sum(len(tactics) for _, tactics in attempts)
        wait = _SPARE_SECONDS + (seconds or 5.0) * count
        return Request(method="POST", path=f"{self._path}/steps", body=json.dumps(given), wait_seconds=wait)

    def state_request(self, place: Place) -> Request:
        """Return the request for a state."""
        return Request(method="GET", path=f"{self._path}/states/{quote(_id(place), safe='')}")

    def prove_request(self, places: Sequence[Place], options: Mapping[str, object]) -> Request:
        """Return the request to have the whole text of these states checked and sealed."""
        body = json.dumps({"states": [_id(place) for place in places], **options})
        return Request(method="POST", path=f"{self._path}/prove", body=body, wait_seconds=_SPARE_SECONDS)

    def end_request(self) -> Request:
        """Return the request to end the session."""
        return Request(method="DELETE", path=self._path, body="{}")


class Session(Requests):
    """A session of `farm.client.Client`; a context manager, which ends it."""

    def __init__(self, answer: Mapping[str, Any], once: Once) -> None:
        super().__init__(answer)
        self._once = once

    def step(
        self,
        state: Place,
        tactics: Sequence[str] | str,
        *,
        seconds: float | None = None,
        heartbeats: int | None = None,
        first_success: bool = False,
    ) -> list[Step]:
        """Try tactics on one state, and return the outcome of each; as `steps` does."""
        listed = [tactics] if isinstance(tactics, str) else tactics
        given = {"seconds": seconds, "heartbeats": heartbeats, "first_success": first_success}
        return self.steps([(state, listed)], **given)[0]  # type: ignore[arg-type] # each has its own type

    def steps(
        self,
        attempts: Sequence[tuple[Place, Sequence[str]]],
        *,
        seconds: float | None = None,
        heartbeats: int | None = None,
        first_success: bool = False,
    ) -> list[list[Step]]:
        """Try lists of tactics, each on a state; return the outcomes of each list.

        `seconds` of wall time and Lean's `heartbeats` limit each tactic. With `first_success` a list ends
        with its first tactic that does not fail.
        """
        request = self.steps_request(
            attempts, seconds=seconds, heartbeats=heartbeats, first_success=first_success
        )
        found: list[list[Step]] = self._once(request, parse_steps)
        return found

    def state(self, state: str) -> State:
        """Return a state by its id."""
        found: State = self._once(self.state_request(state), _state)
        return found

    def prove(self, *states: Place, **options: object) -> Result:
        """Have the whole text of a state checked and sealed, like any proof, and return the result.

        A session on a program takes a state for each of its sorries, in their order.
        """
        found: Result = self._once(self.prove_request(states, options), parse_result)
        return found

    def close(self) -> None:
        """End the session's processes; those of a service that is away end by themselves."""
        with suppress(Unreachable, Unanswered, ServiceFailed):
            self._once(self.end_request(), lambda answer: answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncSession(Requests):
    """A session of `farm.client.AsyncClient`: the methods of `Session`, to be awaited."""

    def __init__(self, answer: Mapping[str, Any], once: Callable[..., Awaitable[Any]]) -> None:
        super().__init__(answer)
        self._once = once

    async def step(
        self,
        state: Place,
        tactics: Sequence[str] | str,
        *,
        seconds: float | None = None,
        heartbeats: int | None = None,
        first_success: bool = False,
    ) -> list[Step]:
        """Try tactics on one state, and return the outcome of each; as `Session.step` does."""
        listed = [tactics] if isinstance(tactics, str) else tactics
        given = {"seconds": seconds, "heartbeats": heartbeats, "first_success": first_success}
        return (await self.steps([(state, listed)], **given))[0]  # type: ignore[arg-type] # as above

    async def steps(
        self,
        attempts: Sequence[tuple[Place, Sequence[str]]],
        *,
        seconds: float | None = None,
        heartbeats: int | None = None,
        first_success: bool = False,
    ) -> list[list[Step]]:
        """Try lists of tactics, each on a state; as `Session.steps` does."""
        request = self.steps_request(
            attempts, seconds=seconds, heartbeats=heartbeats, first_success=first_success
        )
        found: list[list[Step]] = await self._once(request, parse_steps)
        return found

    async def state(self, state: str) -> State:
        """Return a state by its id."""
        found: State = await self._once(self.state_request(state), _state)
        return found

    async def prove(self, *states: Place, **options: object) -> Result:
        """Have the whole text of a state checked and sealed, as `Session.prove` does."""
        found: Result = await self._once(self.prove_request(states, options), parse_result)
        return found

    async def close(self) -> None:
        """End the session's processes, as `Session.close` does."""
        with suppress(Unreachable, Unanswered, ServiceFailed):
            await self._once(self.end_request(), lambda answer: answer)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _state(answer: Mapping[str, Any]) -> State:
    return State(
        id=answer["id"],
        root=answer["root"],
        tactics=tuple(answer["tactics"]),
        goals=tuple(answer["goals"]),
        line=answer.get("line", 0),
        column=answer.get("column", 0),
        is_term=answer.get("is_term", False),
    )


def parse_steps(answer: Mapping[str, Any]) -> list[list[Step]]:
    """Return the outcomes in the service's answer."""
    return [[_step(each) for each in one] for one in answer["steps"]]


def _step(answer: Mapping[str, Any]) -> Step:
    return Step(
        tactic=answer["tactic"],
        outcome=answer["outcome"],
        state=answer.get("state"),
        goals=tuple(answer.get("goals", ())),
        messages=tuple(answer.get("messages", ())),
        message=answer.get("message", ""),
        cpu_ms=answer.get("cpu_ms", 0.0),
    )
