"""`farm mcp` as a program with a language model uses it: the protocol's own client, over stdin and stdout."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import HEADER, Command
from mcp import Client, StdioServerParameters
from trainer_service import FIELDS, RIGHT, WRONG, Served, service

Use = Callable[[Client], Awaitable[Any]]
STATED = {name: FIELDS[name] for name in ("header", "formal_statement")}


@pytest.fixture(scope="module")
def served(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with service(farm, tmp_path_factory.mktemp("serve")) as served:
        yield served


def used(served: Served, use: Use) -> Any:
    """Return what a client makes of a server that is started for it."""
    where = {"FARM_URL": served.options["url"], "FARM_TOKEN": served.options["token"]}
    command = StdioServerParameters(
        command=sys.executable, args=["-P", "-m", "farm", "mcp"], env={**Command(where).environment}
    )

    async def main() -> Any:
        async with Client(command) as client:
            return await use(client)

    return asyncio.run(main())


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content


def test_the_tools_say_what_they_take(served: Served) -> None:
    async def use(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in used(served, use)}
    assert set(tools) == {
        *("check_proof", "explain_verdict", "list_environments"),
        *("open_proof", "try_tactics", "show_state", "seal_proof"),
    }
    assert "formal_statement: the theorem up to its" in (tools["check_proof"].description or "")
    assert tools["check_proof"].input_schema["required"] == ["answer"]


def test_a_proof_is_checked_and_its_verdict_explained(served: Served) -> None:
    async def use(client: Client) -> Any:
        right = await called(client, "check_proof", answer=RIGHT, **STATED)
        wrong = await called(client, "check_proof", answer=WRONG, **STATED)
        said = await called(client, "explain_verdict", id=wrong["id"])
        return right, wrong, said["result"]

    right, wrong, said = used(served, use)
    assert (right["verdict"], wrong["verdict"]) == ("proved", "rejected")
    assert wrong["reward"] == 0.0
    assert right["explanation"].startswith("proved (ok): The answer is a proof.\n")
    assert said == wrong["explanation"]
    assert said.startswith("rejected (error): The answer is no proof.")
    assert "answer:2:" in said
    assert "tier kernel" in said


def test_a_proof_is_found_step_by_step_and_sealed(served: Served) -> None:
    async def use(client: Client) -> Any:
        opened = await called(client, "open_proof", **STATED)
        (root,) = opened["states"]
        tried = await called(
            client,
            "try_tactics",
            session=opened["session"],
            state=root["id"],
            tactics=["exact h", "exact ⟨h.2, h.1⟩", "sorry"],
        )
        shown = await called(
            client, "show_state", session=opened["session"], state=tried["result"][1]["state"]
        )
        sealed = [
            await called(client, "seal_proof", session=opened["session"], states=[each["state"]])
            for each in tried["result"][1:]
        ]
        return tried["result"], shown, sealed, await called(client, "list_environments")

    tried, shown, (right, wrong), environments = used(served, use)
    assert [each["outcome"] for each in tried] == ["error", "no_goals", "no_goals"]
    assert (shown["tactics"], shown["goals"]) == (["exact ⟨h.2, h.1⟩"], [])
    assert (right["verdict"], wrong["verdict"], wrong["reason"]) == ("proved", "rejected", "has_sorry")
    assert [each["name"] for each in environments["result"]] == ["core"]


def test_a_program_without_a_statement_is_told_to_be_weaker(served: Served) -> None:
    async def use(client: Client) -> Any:
        return await called(client, "check_proof", answer="theorem t : True := True.intro", header=HEADER)

    found = used(served, use)
    assert (found["verdict"], found["reward"]) == ("proved", 0.0)
    assert "it was compared with no statement" in found["explanation"]


@pytest.mark.parametrize("name", ["nobody-1", "nobody", ""])
def test_an_id_that_nobody_knows_is_an_error_that_says_so(served: Served, name: str) -> None:
    async def use(client: Client) -> Any:
        return await client.call_tool("explain_verdict", {"id": name})

    answer = used(served, use)
    assert answer.is_error
    assert "the farm" in answer.content[0].text


def test_a_farm_that_is_killed_is_an_error_and_no_verdict(farm: Command, tmp_path: Path) -> None:
    async def use(client: Client) -> Any:
        own.kill()
        return await client.call_tool("explain_verdict", {"id": "a-1"})

    with service(farm, tmp_path) as own:
        answer = used(own, use)
    assert answer.is_error


def test_without_the_package_the_command_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['mcp'] = None; sys.argv[1:] = ['mcp']\n"
        "from farm.__main__ import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, env=Command().environment
    )
    assert ended.returncode == 2
    assert ended.stderr == (
        "farm: the Python package mcp is not installed. Run: pip install 'lean-proof-farm[mcp]'\n"
    )


def test_without_a_served_farm_the_command_says_how_to_serve_one(tmp_path: Path) -> None:
    said = Command({"FARM_HOME": str(tmp_path)})("mcp")
    assert (said.returncode, said.stdout) == (2, "")
    assert "Start it with `farm serve`" in said.stderr


@pytest.mark.parametrize(
    "stated",
    [
        {**STATED, "formal_statement": "theorem bad (n : Nat : n = n := by"},
        {**STATED, "header": "prelude\nimport Cor\n"},
    ],
)
def test_a_statement_that_does_not_compile_is_told_as_the_asker_s_own_fault(
    served: Served, stated: dict[str, Any]
) -> None:
    async def use(client: Client) -> Any:
        return await called(client, "check_proof", answer=RIGHT, **stated)

    found = used(served, use)
    assert (found["reason"], found["reward"]) == ("bad_challenge", None)
    assert "formal_statement, header or context is at fault" in found["explanation"]
    assert "ask again" not in found["explanation"]
    assert "farm failed" not in found["explanation"]
