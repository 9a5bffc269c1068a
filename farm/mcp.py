"""Offers the farm to language models: a server of the Model Context Protocol on stdin and stdout.

Protocol: https://modelcontextprotocol.io. The server reaches the farm over HTTP, with `farm.client` alone.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from farm.client import AsyncClient, ClientError, Result
from farm.version import VERSION

#: After this time the model gets the answer that there is no verdict yet.
_DEADLINE_SECONDS = 600.0

_MEANINGS = {
    "proved": "The answer is a proof.",
    "rejected": "The answer is no proof. Correct what the detail and the messages name.",
    "timeout": "Lean did not finish in time, so this is no proof. Make it cheaper, or give it more time.",
    "memory_limit": "Lean ran out of memory, so this is no proof. Make it smaller.",
    "judge_error": "The farm failed. This says nothing about the answer; ask again.",
    None: "The farm has no verdict. This says nothing about the answer; ask again.",
}
#: Explanations of reasons that replace those of the verdict: a repeated check would have the same end.
_REASONS = {
    "bad_challenge": "What you gave as formal_statement, header or context is at fault, so no answer can be "
    "judged. Correct that, or report it to the person who gave you the problem.",
    "kernels_disagree": "Two kernels disagree about the answer. Report it to the operator of the farm, and "
    "do not repeat the check.",
}
_LACKS = {
    "audit": "no kernel checked it again; only the compiled module was audited",
    "lean": "only Lean's own messages were read",
    "unchecked": "it was compared with no statement, so it may prove anything at all",
    "sorry": "it rests on something the dataset leaves unproved, such as an earlier part of the statement",
    "native": "it rests on compiled code besides the kernel",
    "forgeable": "nothing walled it in on the machine that judged it, so it could have forged its verdict",
}


def server(client: AsyncClient) -> MCPServer[Any]:
    """Return a server whose tools use this client."""
    tools = Tools(client)
    made = MCPServer[Any](
        "farm", version=VERSION, instructions="Checks Lean 4 proofs; its verdicts are final."
    )
    made.tool()(tools.check_proof)
    made.tool()(tools.explain_verdict)
    return made


def run() -> None:
    """Serve the farm at FARM_URL, or this machine's, until stdin ends. Raises NoService."""
    server(AsyncClient(deadline=_DEADLINE_SECONDS)).run("stdio")


class Tools:
    """The tools of the server."""

    def __init__(self, client: AsyncClient) -> None:
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
        try:
            result = await self._client.check(item)
        except ClientError as error:
            raise ToolError(str(error)) from error
        return {**_shown(result), "explanation": explanation(result)}

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
        return explanation(found)


def explanation(result: Result) -> str:
    """Return the meaning of a result, the trust in it and Lean's messages, for a model to read."""
    lines = [f"{result.verdict or result.status} ({result.reason or 'no reason'}): {_meaning(result)}"]
    lines += [text for text in (result.detail, result.waits_for) if text]
    lines += [f"It is weaker than a full proof: {_LACKS.get(word, word)}." for word in result.weaker]
    if (judge := result.provenance) is not None:
        lines.append(
            f"It was judged by {judge.toolchain} in the environment {judge.environment}, tier {judge.tier}."
        )
    for noted in result.warnings:
        lines.append(f"{noted.origin}:{noted.line}:{noted.column}: the farm noticed: {noted.code}")
    for each in result.messages:
        place = f"{each.origin or 'program'}:{each.line}:{each.column}"
        lines.append(f"{place}: {each.severity}: {each.text}")
    if result.messages_cut:
        lines.append("Lean said more than the farm keeps; errors and sorries are kept first.")
    return "\n".join(lines)


def _meaning(result: Result) -> str:
    return _REASONS.get(result.reason or "") or _MEANINGS[result.verdict]


def _shown(result: Result) -> dict[str, object]:
    kept = ("id", "status", "verdict", "reason", "detail", "reward", "weaker")
    shown = {name: getattr(result, name) for name in kept}
    return {
        **shown,
        "messages": [dataclasses.asdict(each) for each in result.messages],
        "warnings": [dataclasses.asdict(each) for each in result.warnings],
    }
