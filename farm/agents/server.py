"""Offers the farm to language models: the tools of a server of the Model Context Protocol.

Protocol: https://modelcontextprotocol.io. The server reaches the farm over HTTP, with `farm.client` alone.
`run` serves on stdin and stdout, `farm.agents.over_http` over HTTP.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from farm.agents import declared, pages
from farm.agents.searching import search
from farm.client import AsyncClient, AsyncSession, ClientError, Result
from farm.sessions.states import proof_of
from farm.version import farm_version

#: After this time the model gets the answer that there is no verdict yet.
DEADLINE_SECONDS = 600.0
#: The most declarations of one answer, and the limits of a search.
_MOST_DECLARATIONS, _MOST_TACTICS, _MOST_EXPANSIONS, _MOST_SECONDS = 30, 64, 512, 600.0

_T = TypeVar("_T")


def server(client: Callable[[], AsyncClient], kind: type[MCPServer[Any]] = MCPServer) -> MCPServer[Any]:
    """Return a server whose tools ask for the client of each call."""
    tools = Tools(client)
    made = kind(
        "farm",
        version=farm_version(),
        log_level="WARNING",
        instructions="Checks Lean 4 proofs, tries tactics step by step, and searches. Only check_proof, "
        "seal_proof and search_proof say that something is proved. read_docs teaches the tools.",
    )
    for tool in (
        tools.check_proof,
        tools.explain_verdict,
        tools.open_proof,
        tools.try_tactics,
        tools.show_state,
        tools.seal_proof,
        tools.search_proof,
        tools.search_declarations,
        tools.show_type,
        tools.list_environments,
        tools.read_docs,
    ):
        made.tool()(tool)
    return made


def run() -> None:
    """Serve the farm at FARM_URL, or this machine's, until stdin ends. Raises NoService."""
    client = AsyncClient(deadline=DEADLINE_SECONDS)
    server(lambda: client).run("stdio")


class Tools:
    """The tools of the server; `client` returns the client of the current call."""

    def __init__(self, client: Callable[[], AsyncClient]) -> None:
        self._client = client

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
        result = await _told(self._client().check(item))
        return {**_shown(result), "explanation": result.explain()}

    async def explain_verdict(self, id: str) -> str:  # noqa: A002 # the name that check_proof answers with
        """Explain a verdict: its meaning, how far to trust it, and all messages of Lean.

        id: the id that check_proof or the farm's HTTP service gave.
        """
        batch = await _told(self._client().batch(id.rpartition("-")[0] or id))
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
        session = await self._opened(
            environment,
            program=program,
            formal_statement=formal_statement,
            header=header,
            context=context,
        )
        return {"session": session.id, "states": [dataclasses.asdict(each) for each in session.roots]}

    async def try_tactics(
        self, session: str, state: str, tactics: list[str], seconds: float = 10.0
    ) -> list[dict[str, object]]:
        """Try tactics on a state, each by itself; returns the outcome of each, in order.

        session, state: ids from open_proof or from an earlier answer. tactics: 1 to 64 Lean tactics; several
        cost little more than one. seconds: the limit of each. An outcome `goals` or `no_goals` has the id of
        the new state. A state with no goals is no proof yet: call seal_proof with it.
        """
        opened = self._client().resumed(session)
        steps = await _told(opened.step(state, tactics, seconds=seconds))
        return [dataclasses.asdict(each) for each in steps]

    async def show_state(self, session: str, state: str) -> dict[str, object]:
        """Show a state again: its goals, and the tactics that lead to it."""
        return dataclasses.asdict(await _told(self._client().resumed(session).state(state)))

    async def seal_proof(self, session: str, states: list[str]) -> dict[str, object]:
        """Have the whole text of a state checked by Lean's kernel; only this says that something is proved.

        states: the id of a state with no goals; for a session on a program one for each of its sorries.
        """
        result = await _told(self._client().resumed(session).prove(*states))
        return {**_shown(result), "explanation": result.explain()}

    async def search_proof(
        self,
        formal_statement: str,
        tactics: list[str],
        header: str = "",
        context: str = "",
        environment: str | None = None,
        expansions: int = 64,
        seconds: float = 60.0,
        tactic_seconds: float = 5.0,
    ) -> dict[str, object]:
        """Search a proof best-first: try all tactics on the likeliest open state, again and again; seal.

        formal_statement, header, context: as for open_proof. tactics: 1 to 64 Lean tactics, the likeliest
        first. expansions: the most states on which they are tried, up to 512. seconds: the limit of the
        search, up to 600; tactic_seconds: that of each tactic. `verdict` is "proved" only if the sealed check
        of the whole text says so; then `proof` is the text after the statement's `:=`.
        """
        _require(0 < len(tactics) <= _MOST_TACTICS, f"give 1 to {_MOST_TACTICS} tactics, not {len(tactics)}")
        _require(0 < expansions <= _MOST_EXPANSIONS, f"expansions: give 1 to {_MOST_EXPANSIONS}")
        _require(0 < seconds <= _MOST_SECONDS, f"seconds: give a number up to {_MOST_SECONDS:g}")
        _require(0 < tactic_seconds <= seconds, "tactic_seconds: give a number up to that of seconds")
        session = await self._opened(
            environment, formal_statement=formal_statement, header=header, context=context
        )
        async with session:
            done = await _told(
                search(session, tactics, expansions=expansions, seconds=seconds, each=tactic_seconds)
            )
        found, result = done.found, done.result
        is_proved = result is not None and result.proved
        return {
            "verdict": None if result is None else result.verdict,
            "proof": proof_of(found.tactics) if is_proved else "",
            "tactics": found.tactics if is_proved else (),
            "ended": done.ended,
            "expansions": found.expansions,
            "outcomes": found.outcomes,
            "explanation": "No state without goals was found." if result is None else result.explain(),
        }

    async def search_declarations(
        self, contains: str, environment: str | None = None, header: str = "", most: int = 20
    ) -> dict[str, object]:
        """Search the declarations of an environment by parts of their names; returns their types as well.

        contains: one or more words that must all be in the name, in any case, such as `add comm`. header:
        the imports under which the types are shown; by default those of the environment. most: 1 to 30. Short
        names come first; `total` counts all. The type is null where the header does not import the module.
        """
        _require(0 < most <= _MOST_DECLARATIONS, f"most: give 1 to {_MOST_DECLARATIONS}")
        client = self._client()
        found = await _told(client.declarations(contains, environment=environment, most=most))
        imports = header or found.header
        names = [each.name for each in found.declarations if declared.is_name(each.name)]
        types = dict(zip(names, await self._types(names, imports, environment), strict=True))
        shown = [{**dataclasses.asdict(each), "type": types.get(each.name)} for each in found.declarations]
        return {"total": found.total, "header": imports, "declarations": shown}

    async def show_type(
        self, name: str, environment: str | None = None, header: str = ""
    ) -> dict[str, object]:
        """Show the type of a declaration and the axioms that it rests on, in the words of Lean.

        name: the full name, such as `Nat.add_comm`. header: imports, and `open` lines if need be; by default
        the imports of the environment. `type` is null where Lean does not know the name; `messages` say why.
        """
        _require(
            declared.is_name(name), f"{name[:80]!r} is no name of Lean's; give one, such as Nat.add_comm"
        )
        imports = (
            header or (await _told(self._client().declarations(name, environment=environment, most=1))).header
        )
        commands = [f"#check {name}", f"#print axioms {name}"]
        result = await self._printed(imports, commands, environment)
        known, axioms = declared.answers(imports, len(commands), result)
        return {
            "name": name,
            "type": known,
            "axioms": axioms,
            "header": imports,
            "messages": [f"{each.severity}: {each.text}" for each in result.messages],
        }

    async def list_environments(self) -> list[dict[str, object]]:
        """List the Lean environments that the farm checks in."""
        return [dataclasses.asdict(each) for each in await _told(self._client().environments())]

    async def read_docs(self, topic: str = "skill") -> str:
        """Read about these tools; topic: `skill` for how to prove with them, or a topic that it names."""
        known = pages.pages()
        _require(topic in known, f"there is no topic {topic[:80]!r}; there are: {', '.join(known)}")
        return known[topic]

    async def _opened(self, environment: str | None, **given: str) -> AsyncSession:
        item = {name: value for name, value in given.items() if value}
        return await _told(self._client().session(item, environment=environment))

    async def _types(self, names: Sequence[str], header: str, environment: str | None) -> list[str | None]:
        if not names:
            return []
        commands = [f"#check {name}" for name in names]
        return declared.answers(header, len(names), await self._printed(header, commands, environment))

    async def _printed(self, header: str, commands: Sequence[str], environment: str | None) -> Result:
        """Return the result of a program that prints. Raises ToolError where Lean did not read it."""
        item: dict[str, object] = {"program": declared.program(header, commands)}
        if environment is not None:
            item["environment"] = environment
        result = await _told(self._client().check(item))
        _require(result.verdict in ("proved", "rejected"), result.explain())
        fault = declared.header_fault(header, result)
        _require(not fault, f"the header does not compile: {fault}")
        return result


async def _told(asked: Awaitable[_T]) -> _T:
    """Return the answer of the farm; a refusal is told to the model."""
    try:
        return await asked
    except ClientError as error:
        raise ToolError(str(error)) from error


def _require(condition: bool, words: str) -> None:
    if not condition:
        raise ToolError(words)


def _shown(result: Result) -> dict[str, object]:
    kept = ("id", "status", "verdict", "reason", "detail", "error_kind", "reward", "weaker")
    shown = {name: getattr(result, name) for name in kept}
    return {
        **shown,
        "messages": [dataclasses.asdict(each) for each in result.messages],
        "warnings": [dataclasses.asdict(each) for each in result.warnings],
    }
