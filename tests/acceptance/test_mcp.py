"""`farm mcp` as a program with a language model uses it: the protocol's own client, over both transports."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from farm.agents import pages
from tests.commands import HEADER, Command
from tests.processes import eventually
from tests.trainer_service import FIELDS, RIGHT, WRONG, Served, service

Use = Callable[[Client], Awaitable[Any]]
STATED = {name: FIELDS[name] for name in ("header", "formal_statement")}
TOOLS = {
    *("check_proof", "explain_verdict", "list_environments", "read_docs"),
    *("open_proof", "try_tactics", "show_state", "seal_proof", "search_proof"),
    *("search_declarations", "show_type"),
}
PAGE = Path(__file__).parents[2] / "docs" / "use" / "agents.md"


@pytest.fixture(scope="module")
def served(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with service(farm, tmp_path_factory.mktemp("serve")) as served:
        yield served


@pytest.fixture(scope="module")
def url(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `farm mcp --http`, which has no key of its own."""
    farm = Command({"FARM_URL": served.options["url"]})
    with farm.started(tmp_path_factory.mktemp("mcp"), "mcp", "--http", "127.0.0.1:0") as running:
        eventually(lambda: "/mcp" in running.said or running.process.poll() is not None, seconds=60)
        yield re.findall(r"http://\S+/mcp", running.said)[0]


@pytest.fixture(scope="module")
def key(served: Served) -> str:
    return key_of(served, "one")


def key_of(served: Served, name: str) -> str:
    made = served.farm("keys", "add", f"mcp-{name}")
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def over_http(url: str, key: str, use: Use, **options: Any) -> Any:
    """Return the result of a use of a server that serves many, with a key."""

    async def main() -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60.0) as http,
            Client(streamable_http_client(url, http_client=http), **options) as client,
        ):
            return await use(client)

    return asyncio.run(main())


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
    assert set(tools) == TOOLS
    table = PAGE.read_text().partition("## The tools")[2].partition("## Connecting")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == TOOLS
    assert "formal_statement: the theorem up to its" in (tools["check_proof"].description or "")
    assert tools["check_proof"].input_schema["required"] == ["answer"]


def test_a_proof_is_checked_and_its_verdict_explained(url: str, key: str) -> None:
    async def use(client: Client) -> Any:
        right = await called(client, "check_proof", answer=RIGHT, **STATED)
        wrong = await called(client, "check_proof", answer=WRONG, **STATED)
        said = await called(client, "explain_verdict", id=wrong["id"])
        return right, wrong, said["result"]

    right, wrong, said = over_http(url, key, use)
    assert (right["verdict"], wrong["verdict"]) == ("proved", "rejected")
    assert wrong["reward"] == 0.0
    assert right["explanation"].startswith("proved (ok): The answer is a proof.\n")
    assert said == wrong["explanation"]
    assert said.startswith("rejected (error): The answer is no proof.")
    assert "answer:2:" in said
    assert "tier kernel" in said


def test_a_proof_is_found_step_by_step_and_sealed(url: str, key: str) -> None:
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

    tried, shown, (right, wrong), environments = over_http(url, key, use)
    assert [each["outcome"] for each in tried] == ["error", "no_goals", "no_goals"]
    assert (shown["tactics"], shown["goals"]) == (["exact ⟨h.2, h.1⟩"], [])
    assert (right["verdict"], wrong["verdict"], wrong["reason"]) == ("proved", "rejected", "has_sorry")
    assert [each["name"] for each in environments["result"]] == ["core"]


def test_declarations_are_found_with_their_types(url: str, key: str) -> None:
    async def use(client: Client) -> Any:
        found = await called(client, "search_declarations", contains="COMM and", most=2)
        elsewhere = await called(client, "search_declarations", contains="And.comm", header="prelude\n")
        nothing = await called(client, "search_declarations", contains="no.such.name")
        return found, elsewhere, nothing

    found, elsewhere, nothing = over_http(url, key, use)
    assert found["total"] == 3
    assert found["declarations"] == [
        {"name": name, "kind": "theorem", "module": "Core", "type": f"{name} {{a b : Prop}} : a ∧ b ↔ b ∧ a"}
        for name in ("And.comm", "and_comm")
    ]
    assert elsewhere["declarations"][0] == {**found["declarations"][0], "type": None}
    assert (nothing["total"], nothing["declarations"]) == (0, [])


def test_the_type_of_a_name_is_shown_with_its_axioms(url: str, key: str) -> None:
    async def use(client: Client) -> Any:
        return [await called(client, "show_type", name=name) for name in ("propext", "nowhere.«to be»")]

    known, unknown = over_http(url, key, use)
    assert known["type"] == "propext {a b : Prop} : (a ↔ b) → a = b"
    assert known["axioms"] == "'propext' depends on axioms: [propext]"
    assert (unknown["type"], unknown["axioms"]) == (None, None)
    assert unknown["messages"][0].startswith("error: Unknown identifier")


def test_a_search_finds_a_proof_that_is_sealed(url: str, key: str) -> None:
    async def use(client: Client) -> Any:
        tactics = ["rfl", "exact h.1", "exact h.2", "constructor"]
        found = await called(client, "search_proof", tactics=tactics, **STATED)
        return found, await called(client, "check_proof", answer=found["proof"], **STATED)

    found, checked = over_http(url, key, use)
    assert (found["verdict"], found["ended"], checked["verdict"]) == ("proved", "sealed", "proved")
    assert found["tactics"] == ["constructor", "exact h.2", "exact h.1"]
    assert found["explanation"].startswith("proved (ok)")


@pytest.mark.parametrize(
    ("given", "verdict", "ended"),
    [
        ({"tactics": ["sorry"]}, "rejected", "no state left"),
        ({"tactics": ["rfl"]}, None, "no state left"),
        ({"tactics": ["have _ := h"], "expansions": 3}, None, "expansions"),
        ({"tactics": ["have _ := h"], "seconds": 1e-9, "tactic_seconds": 1e-9}, None, "seconds"),
    ],
)
def test_a_search_without_a_sealed_proof_says_why_it_ended(
    url: str, key: str, given: dict[str, Any], verdict: str | None, ended: str
) -> None:
    async def use(client: Client) -> Any:
        return await called(client, "search_proof", **STATED, **given)

    found = over_http(url, key, use)
    assert (found["verdict"], found["ended"], found["proof"]) == (verdict, ended, "")


@pytest.mark.parametrize(
    ("tool", "given", "words"),
    [
        ("search_declarations", {"contains": " "}, "contains is no part of a name; give one or more words"),
        (
            "search_declarations",
            {"contains": "a\0b"},
            "contains is no part of a name; give one or more words",
        ),
        ("search_declarations", {"contains": "add", "most": 31}, "most: give 1 to 30"),
        ("search_declarations", {"contains": "add", "environment": "x"}, "no environment is called 'x'"),
        ("show_type", {"name": "a\n#eval 1"}, "is no name of Lean's; give one, such as Nat.add_comm"),
        ("show_type", {"name": "propext", "header": "import Nowhere\n"}, "the header does not compile: "),
        ("show_type", {"name": "t -- "}, "is no name of Lean's; give one, such as Nat.add_comm"),
        ("search_proof", {**STATED, "tactics": []}, "give 1 to 64 tactics, not 0"),
        ("search_proof", {**STATED, "tactics": ["rfl"], "expansions": 513}, "expansions: give 1 to 512"),
        ("search_proof", {**STATED, "tactics": ["rfl"], "seconds": -1}, "seconds: give a number up to 600"),
        (
            "search_proof",
            {"formal_statement": "theorem t", "tactics": ["rfl"]},
            "the farm refused the request",
        ),
        ("read_docs", {"topic": "x"}, "there is no topic 'x'; there are: skill, outcomes, verdicts, limits"),
        ("try_tactics", {"session": "x", "state": "y", "tactics": ["rfl"]}, "no session has the id 'x'"),
    ],
)
def test_bad_input_is_one_clear_message(
    url: str, key: str, tool: str, given: dict[str, Any], words: str
) -> None:
    async def use(client: Client) -> Any:
        return await client.call_tool(tool, given)

    answer = over_http(url, key, use)
    assert answer.is_error
    (told,) = answer.content
    assert words in told.text


@pytest.mark.parametrize("topic", pages.pages())
def test_a_topic_of_the_docs_is_read(url: str, key: str, topic: str) -> None:
    async def use(client: Client) -> Any:
        return await called(client, "read_docs", topic=topic)

    assert over_http(url, key, use)["result"] == pages.pages()[topic]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_same_tools_are_served_over_http(url: str, key: str, mode: str) -> None:
    async def use(client: Client) -> Any:
        names = {tool.name for tool in (await client.list_tools()).tools}
        return names, await called(client, "check_proof", answer=RIGHT, **STATED)

    names, checked = over_http(url, key, use, mode=mode)
    assert (names, checked["verdict"]) == (TOOLS, "proved")


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", "Bearer farm_0123456789ab_" + "A" * 43)],
        [("Authorization", "Bearer {} {}")],
        [("Authorization", "Basic {}")],
        [("Authorization", "Bearer {}"), ("Authorization", "Bearer {}")],
    ],
)
def test_a_request_without_a_key_of_the_farm_is_refused(
    url: str, key: str, headers: list[tuple[str, str]]
) -> None:
    given = [(name, value.format(key, key)) for name, value in headers]
    answer = httpx2.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=given)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert "key" in answer.json()["detail"]


def test_a_key_does_not_see_the_session_of_another(served: Served, url: str, key: str) -> None:
    async def opens(client: Client) -> Any:
        return await called(client, "open_proof", **STATED)

    async def uses(client: Client) -> Any:
        session, state = opened["session"], opened["states"][0]["id"]
        asked = {"session": session, "state": state}
        return [
            await client.call_tool("show_state", asked),
            await client.call_tool("try_tactics", {**asked, "tactics": ["assumption"]}),
            await client.call_tool("seal_proof", {"session": session, "states": [state]}),
        ]

    opened = over_http(url, key, opens)
    assert not any(each.is_error for each in over_http(url, key, uses))
    for each in over_http(url, key_of(served, "other"), uses):
        assert each.is_error
        assert "no session has the id" in each.content[0].text


def test_a_key_has_its_own_scopes(served: Served, url: str) -> None:
    async def use(client: Client) -> Any:
        checked = await client.call_tool("check_proof", {"answer": RIGHT, **STATED})
        return checked, await called(client, "list_environments")

    made = served.farm("keys", "add", "mcp-reader", "--scope", "read")
    checked, environments = over_http(url, made.stdout.strip(), use)
    assert checked.is_error
    assert "lacks the scope submit" in checked.content[0].text
    assert [each["name"] for each in environments["result"]] == ["core"]


def test_a_farm_that_asks_for_no_key_is_not_offered_over_http(served: Served, tmp_path: Path) -> None:
    place = tmp_path / "s"
    with (
        served.farm.forked(tmp_path / "serve", "serve", "--uds", place) as serving,
        Command({"FARM_URL": f"unix:{place}"}).started(tmp_path / "mcp", "mcp", "--http", ":0") as running,
    ):
        for each in (serving, running):
            eventually(lambda each=each: "Listening" in each.said, seconds=60)  # type: ignore[misc]
        url = re.findall(r"http://127.0.0.1:\S+/mcp", running.said)[0]
        answer = httpx2.post(url, json={}, headers={"Authorization": "Bearer any"}, timeout=60.0)
    assert answer.status_code == 503
    assert "asks for no key" in answer.json()["detail"]


def test_the_skill_is_printed_and_names_only_tools_and_topics_that_exist() -> None:
    said = Command()("mcp", "--skill")
    assert (said.returncode, said.stdout) == (0, pages.skill())
    assert len(said.stdout.splitlines()) < 80
    assert "An outcome `no_goals` is not a proof" in said.stdout
    named = set(re.findall(r"`(\w+_\w+)`", said.stdout))
    assert TOOLS - {"explain_verdict"} <= named
    others = {"formal_statement", "no_goals", "has_sorry", "judge_error"}
    assert named - TOOLS == others
    topics = re.findall(r"the topics (.*)\.", said.stdout)[0]
    assert set(re.findall(r"`(\w+)`", topics)) == set(pages.pages()) - {"skill"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--http", "localhost"], "--http localhost: give an address with a port, such as 127.0.0.1:8701"),
        (["--http", "localhost:65536"], "give an address with a port"),
        (["--http", "127.0.0.1:{taken}"], "Address already in use"),
        (["--http", ":0", "--skill"], "--skill prints a file and serves nothing; leave --http out"),
    ],
)
def test_a_wrong_flag_is_one_clear_message(words: list[str], told: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = Command()("mcp", *(word.format(taken=taken.getsockname()[1]) for word in words))
    assert (said.returncode, said.stdout) == (2, "")
    (line,) = said.stderr.splitlines()
    assert told in line


def test_a_program_without_a_statement_is_told_to_be_weaker(url: str, key: str) -> None:
    async def use(client: Client) -> Any:
        return await called(client, "check_proof", answer="theorem t : True := True.intro", header=HEADER)

    found = over_http(url, key, use)
    assert (found["verdict"], found["reward"]) == ("proved", 0.0)
    assert "it was compared with no statement" in found["explanation"]


@pytest.mark.parametrize("name", ["nobody-1", "nobody", ""])
def test_an_id_that_nobody_knows_is_an_error_that_says_so(url: str, key: str, name: str) -> None:
    async def use(client: Client) -> Any:
        return await client.call_tool("explain_verdict", {"id": name})

    answer = over_http(url, key, use)
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
    url: str, key: str, stated: dict[str, Any]
) -> None:
    async def use(client: Client) -> Any:
        return await called(client, "check_proof", answer=RIGHT, **stated)

    found = over_http(url, key, use)
    assert (found["reason"], found["reward"]) == ("bad_challenge", None)
    assert "formal_statement, header or context is at fault" in found["explanation"]
    assert "ask again" not in found["explanation"]
    assert "farm failed" not in found["explanation"]
