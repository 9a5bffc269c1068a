"""Offers the farm to language models: a server of the Model Context Protocol on stdin and stdout.

Protocol: https://modelcontextprotocol.io. The server reaches the farm over HTTP, with `farm.client` alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from farm.client import AsyncClient, ClientError, Result
from farm.client.sessions import AsyncSession
from farm.version import VERSION

#: After this time the model gets the answer that there is no verdict yet.
_DEADLINE_SECONDS = 600.0
#: The sessions that are remembered; the service ends those that are idle.
_MOST_SESSIONS = 256

_T = TypeVar("_T")


def server(client: AsyncClient) -> MCPServer[Any]:
    """Return a server whose tools use this client."""
    tools = Tools(client)
    made = MCPServer[Any](
        "farm", version=VERSION, instructions="Checks Lean 4 proofs; its verdicts are final."
    )
    for tool in (
        tools.check_proof,
        tools.explain_verdict,
        tools.open_proof,
        tools.try_tactics,
        tools.show_state,
        tools.seal_proof,
        tools.list_environments,
    ):
        made.tool()(tool)
    return made


def run() -> None:
    """Serve the farm at FARM_URL, or this machine's, until stdin ends. Raises NoService."""
    server(AsyncClient(deadline=_DEADLINE_SECONDS)).run("stdio")


class Tools:
    """The tools of the server."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._sessions = dict[str, AsyncSession]()

    async def check_proof(
        self,
        answer: str,
        formal_statement: str = "",
        header: str = "",
        context: str = "",
        environment: str | None = None,
        timeout: float | None = None,
    ) -> dict[str, object]:
        """Check whether Lean 4 code proves a statement, with Lean's kernel.

        answer: the Lean code, bare or in a ```lean4 block; it may repeat the statement.
        formal_statement: the theorem up to its `:= by`. Without it the answer is a whole program, and nothing
        checks which theorem it proves.
        header: imports and options that precede the statement, such as `import Mathlib`.
        context: in place of a header, all of the theorem's file before it.
        environment: the name of the Lean environment; timeout: seconds that Lean may take.
        A reward of 1.0 means proved, 0.0 not proved, null unknown.
        """
        item: dict[str, object] = (
            {"formal_statement": formal_statement, "header": header, "generation": answer}
            if formal_statement
            else {"program": header + context + answer}
        )
        below = context if formal_statement and context else None
        chosen: dict[str, Any] = {"context": below, "environment": environment, "timeout": timeout}
        item |= {name: value for name, value in chosen.items() if value is not None}
        try:
            result = await self._client.check(item)
        except ClientError as error:
            raise ToolError(str(error)) from error
        return {**_shown(result), "explanation": result.explain()}

    async def explain_verdict(self, id: str) -> str:  # noqa: A002 # the name that check_proof answers with
        """Explain a verdict: its meaning, how far to trust it, and all messages of Lean.

        id: the id that check_proof or the farm's HTTP service gave.
        """
        try:
            batch = await self._client.batch(id.rpartition("-")[0] or id)
        except ClientError as error:
            raise ToolError(str(error)) from error
        found = next((each for each in batch.results if each.id == id), None)
        if found is None:
            raise ToolError(f"the farm has no check {id!r}. Give the id that check_proof answered with.")
        return found.explain()

    async def open_proof(
        self,
        formal_statement: str = "",
        program: str = "",
        header: str = "",
        context: str = "",
        environment: str | None = None,
    ) -> dict[str, object]:
        """Open a session in which tactics are tried step by step; returns its id and the first states.

        formal_statement: the theorem up to its `:= by`, with its header or context as for check_proof.
        program: instead of a statement, a whole Lean text with a sorry for each open place.
        """
        given = {
            "program": program,
            "formal_statement": formal_statement,
            "header": header,
            "context": context,
        }
        item = {name: value for name, value in given.items() if value}
        try:
            session = await self._client.session(item, environment=environment)
        except ClientError as error:
            raise ToolError(str(error)) from error
        self._sessions[session.id] = session
        while len(self._sessions) > _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return {"session": session.id, "states": [dataclasses.asdict(each) for each in session.roots]}

    async def try_tactics(
        self, session: str, state: str, tactics: list[str], seconds: float = 10.0
    ) -> list[dict[str, object]]:
        """Try tactics on a state, each by itself; returns the outcome of each, in order.

        session, state: ids from open_proof or from an earlier answer. tactics: 1 to 64 Lean tactics; several
        cost little more than one. seconds: the limit of each. An outcome `goals` or `no_goals` has the id of
        the new state. A state with no goals is no proof yet: call seal_proof with it.
        """
        steps = await self._in(session, lambda opened: opened.step(state, tactics, seconds=seconds))
        return [dataclasses.asdict(each) for each in steps]

    async def show_state(self, session: str, state: str) -> dict[str, object]:
        """Show a state again: its goals, and the tactics that lead to it."""
        return dataclasses.asdict(await self._in(session, lambda opened: opened.state(state)))

    async def seal_proof(self, session: str, states: list[str]) -> dict[str, object]:
        """Have the whole text of a state checked by Lean's kernel; only this says that something is proved.

        states: the id of a state with no goals; for a session on a program one for each of its sorries.
        """
        result = await self._in(session, lambda opened: opened.prove(*states))
        return {**_shown(result), "explanation": result.explain()}

    async def list_environments(self) -> list[dict[str, object]]:
        """List the Lean environments that the farm checks in."""
        try:
            return [dataclasses.asdict(each) for each in await self._client.environments()]
        except ClientError as error:
            raise ToolError(str(error)) from error

    async def _in(self, session: str, ask: Callable[[AsyncSession], Awaitable[_T]]) -> _T:
        opened = self._sessions.get(session)
        if opened is None:
            raise ToolError(f"there is no session {session!r} here; open one with open_proof")
        try:
            return await ask(opened)
        except ClientError as error:
            raise ToolError(str(error)) from error


def _shown(result: Result) -> dict[str, object]:
    kept = ("id", "status", "verdict", "reason", "detail", "error_kind", "reward", "weaker")
    shown = {name: getattr(result, name) for name in kept}
    return {
        **shown,
        "messages": [dataclasses.asdict(each) for each in result.messages],
        "warnings": [dataclasses.asdict(each) for each in result.warnings],
    }
