"""Sessions through a whole farm: over HTTP with both clients, from Python, at a terminal, and by search."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from farm import Farm
from farm.client import AsyncClient, Client, Forbidden, Invalid, NotFound
from farm.client.repl import Repl, Server, TacticFailure
from farm.client.sessions import Session
from farm.errors import UnknownRun, UsageError
from tests.commands import HEADER, Command
from tests.processes import CODE, PATIENCE
from tests.trainer_service import Served, service

STATEMENT = "theorem t (p q r : Prop) (hp : p) (hq : q) (hr : r) : (p ∧ q) ∧ r"
ITEM = {"header": HEADER, "formal_statement": f"{STATEMENT} := by\n"}
SKETCH = (
    f"{HEADER}theorem t (p q : Prop) (h : p ∧ q) : q ∧ p := by\n  constructor\n  · sorry\n  · exact sorry\n"
)


@pytest.fixture(scope="module")
def served(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with service(farm, tmp_path_factory.mktemp("serve")) as found:
        yield found


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(deadline=120 * PATIENCE, **served.options) as found:
        yield found


@pytest.fixture
def local(farm: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[Farm]:
    for name, value in farm.settings.items():
        monkeypatch.setenv(name, str(value))
    with Farm() as found:
        yield found


# Over HTTP


@pytest.mark.newcomer
def test_a_proof_is_found_over_http_and_sealed(client: Client) -> None:
    with client.session(ITEM) as session:
        first, wrong, done = session.step(session.root, ["constructor", "exact hr", "exact ⟨⟨hp, hq⟩, hr⟩"])
        assert [each.outcome for each in (first, wrong, done)] == ["goals", "error", "no_goals"]
        assert (wrong.state, bool(wrong.message), done.cpu_ms > 0) == (None, True, True)
        assert first.state is not None
        assert session.state(first.state).tactics == ("constructor",)
        several = session.steps([(session.root, ["skip"]), (first.state, ["exact ⟨hp, hq⟩", "exact hr"])])
        assert [[each.outcome for each in one] for one in several] == [["goals"], ["goals", "error"]]
        result = session.prove(done.state or "")
    assert (result.verdict, result.reward) == ("proved", 1.0)
    with pytest.raises(NotFound):
        session.step(session.root, ["skip"])


def test_the_asynchronous_client_has_the_same_sessions(served: Served) -> None:
    async def main() -> tuple[str | None, list[str]]:
        async with (
            AsyncClient(deadline=120 * PATIENCE, **served.options) as farm,
            await farm.session(ITEM) as session,
        ):
            steps = await session.step(session.root, ["skip", "exact ⟨⟨hp, hq⟩, hr⟩"])
            assert (await session.state(steps[0].state or "")).goals
            listed = await session.steps([(session.root, ["skip"])])
            result = await session.prove(steps[1].state or "")
            return result.verdict, [each.outcome for each in listed[0]]

    assert asyncio.run(main()) == ("proved", ["goals"])


def test_outcomes_are_streamed_list_by_list(client: Client, served: Served) -> None:
    with client.session(ITEM) as session:
        lists = [["skip", "nonsense"], ["constructor"], ["exact hr"]]
        steps = [{"state": session.root.id, "tactics": each} for each in lists]
        found = dict(streamed(served, session.id, {"steps": steps}))
        assert found.pop("end") == {}
        assert [[step["outcome"] for step in found[f"steps {number}"]["steps"]] for number in range(3)] == [
            ["goals", "error"],
            ["goals"],
            ["error"],
        ]
        reached = found["steps 1"]["steps"][0]["state"]
        assert session.state(reached).tactics == ("constructor",)
        refused = streamed(served, session.id, {"state": "x", "tactics": ["skip"]})
        assert "no state" in dict(refused)["404"]["detail"]


def streamed(served: Served, session: str, body: object) -> Iterator[tuple[str, Any]]:
    """Yield the kinds, with the numbers of lists, and the data of a call's events, or its status."""
    headers = {"Authorization": f"Bearer {served.options['token']}", "Accept": "text/event-stream"}
    url = f"{served.options['url']}/v1/sessions/{session}/steps"
    with httpx.stream("POST", url, json=body, headers=headers, timeout=60 * PATIENCE) as answer:
        if answer.status_code != 200:
            yield str(answer.status_code), json.loads(answer.read())
            return
        kind = ""
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                data = json.loads(value)
                yield f"{kind} {data['list']}" if "list" in data else kind, data


@pytest.mark.parametrize("tactic", ["sorry", "exact sorry", "admit", "exact t p q r hp hq hr"])
def test_a_state_without_goals_is_no_proof(client: Client, tactic: str) -> None:
    with client.session(ITEM) as session:
        (step,) = session.step(session.root, tactic)
        assert step.outcome == "no_goals"
        assert session.prove(step.state or "").verdict == "rejected"


COMMENTS = ("-- a plan", "/- a plan -/", "/- a plan\n   on two lines -/", "  -- indented", "-- one\n-- two")


@pytest.mark.parametrize("comment", COMMENTS)
def test_a_comment_alone_is_a_step_that_changes_nothing(client: Client, comment: str) -> None:
    with client.session(ITEM) as session:
        (before,) = session.step(session.root, comment)
        assert (before.outcome, before.goals) == ("goals", session.root.goals)
        (done,) = session.step(before.state or "", "exact ⟨⟨hp, hq⟩, hr⟩")
        (after,) = session.step(done.state or "", comment)
        assert after.outcome == "no_goals"
        assert session.prove(after.state or "").verdict == "proved"


def test_a_text_that_is_no_tactic_is_none_behind_a_comment_either(client: Client) -> None:
    texts = ("", "<;> skip", "-- a plan\n<;> skip", "/- a -/ <;> skip -/", "/-- of nothing -/", "/- open")
    with client.session(ITEM) as session:
        assert {each.outcome for each in session.step(session.root, texts)} == {"error"}


def test_a_sorry_of_the_context_is_no_place_of_the_proof(client: Client) -> None:
    context = f"{HEADER}theorem above (p : Prop) : p := sorry\nexample : True := sorry\n"
    with client.session({"context": context, "formal_statement": ITEM["formal_statement"]}) as session:
        (root,) = session.roots
        assert root.goals[0].endswith("⊢ (p ∧ q) ∧ r")
        (step,) = session.step(root, "exact ⟨⟨hp, hq⟩, hr⟩")
        result = session.prove(step.state or "")
    assert (result.verdict, result.reward) == ("proved", 1.0)


def test_states_have_the_same_ids_in_every_session(client: Client) -> None:
    with client.session(ITEM) as one, client.session(ITEM) as other:
        assert one.id != other.id
        assert one.root == other.root
        assert one.step(one.root, "skip")[0].state == other.step(other.root, "skip")[0].state


def test_many_sessions_at_once_are_served(served: Served) -> None:
    async def one(farm: AsyncClient, number: int) -> str | None:
        async with await farm.session(ITEM) as session:
            steps = await session.step(session.root, [f"have k{number} : q := hq", "nonsense"])
            assert [each.outcome for each in steps] == ["goals", "error"]
            (done,) = await session.step(steps[0].state or "", f"exact ⟨⟨hp, k{number}⟩, hr⟩")
            return done.state

    async def main() -> list[str | None]:
        async with AsyncClient(deadline=240 * PATIENCE, **served.options) as farm:
            return await asyncio.gather(*(one(farm, number) for number in range(32)))

    states = asyncio.run(main())
    assert None not in states
    assert len(set(states)) == 32


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({}, "give a formal_statement"),
        ({**ITEM, "program": SKETCH}, "give a formal_statement"),
        ({**ITEM, "formal_statement": "theorem t : Wrong.Name := by"}, "at line 4, column 12: .*Wrong.Name"),
        ({"program": f"{HEADER}theorem t : True := True.intro\n"}, "no sorry"),
        ({**ITEM, "header": "import Nowhere\n"}, "no modules Init, Nowhere; .* begin it with `prelude`"),
        ({**ITEM, "answer": "rfl"}, "answer"),
    ],
)
def test_what_no_session_can_begin_on_is_refused_with_the_reason(
    client: Client, item: dict[str, str], words: str
) -> None:
    with pytest.raises(Invalid, match=words):
        client.session(item)


#: Statements and programs of which no proof can be accepted, whatever the tactics are, with the reason.
UNPROVABLE = [
    *(
        ({"header": HEADER, "formal_statement": text}, "no theorem with `sorry` as its proof")
        for text in (
            "example (p : Prop) (h : p) : p := by",
            "open Nat in\nexample : True :=",
            "def f : Nat := by",
            "abbrev f : Nat := by",
            "def f : True := by",
            "noncomputable def f : Nat := by",
            "unsafe def f : True := by",
            "instance : Inhabited Nat := by",
            "instance named : Inhabited Nat := by",
            "theorem above : True := True.intro\nexample : True := by",
        )
    ),
    (
        {"context": f"{HEADER}theorem u : True := sorry\n", "formal_statement": "example : True := by"},
        "no theorem",
    ),
    (
        {
            "context": f"{HEADER}theorem u : True := sorry\n",
            "formal_statement": "theorem t : True := by",
            "negates": True,
        },
        "negation of u cannot be stated",
    ),
    ({**ITEM, "formal_statement": "def f : True := by", "task": "disprove"}, "not above it"),
    ({**ITEM, "formal_statement": "example : True := by", "task": "disprove"}, "name the theorem"),
    ({"program": f"{HEADER}def f : Nat := by sorry\n"}, "no theorem. Write one"),
    ({"program": f"{HEADER}example : True := by sorry\ninstance : Inhabited Nat := sorry\n"}, "no theorem"),
]
#: Neighbours of those, of which a proof can be accepted, with a tactic that proves them.
PROVABLE = [
    ({"header": HEADER, "formal_statement": "private theorem t (p : Prop) (h : p) : p := by"}, "exact h"),
    (
        {"header": HEADER, "formal_statement": "class C : Prop where\n  x : True\ninstance i : C := by"},
        "exact ⟨trivial⟩",
    ),
    ({"header": HEADER, "formal_statement": "namespace A\nprotected theorem t : True := by"}, "trivial"),
    (
        {"header": HEADER, "formal_statement": "theorem u : True := trivial\ntheorem t : True ∧ True := by"},
        "exact ⟨u, u⟩",
    ),
    ({"program": f"{HEADER}theorem u : True := trivial\nexample : True := by sorry\n"}, "exact u"),
    ({"program": f"{HEADER}def f : Nat := by sorry\ntheorem t : True := trivial\n"}, "exact 3"),
]


def test_what_can_never_be_proved_is_refused_when_it_is_opened(client: Client) -> None:
    for item, words in UNPROVABLE:
        with pytest.raises(Invalid, match=words):
            client.session(item)


def test_what_looks_as_if_it_could_not_be_proved_is_opened_and_proved(client: Client) -> None:
    found = {}
    for item, tactic in PROVABLE:
        with client.session(item) as session:
            (step,) = session.step(session.root, tactic)
            found[str(item)] = session.prove(step.state or "").verdict
    assert found == {str(item): "proved" for item, _ in PROVABLE}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"state": "x"}, 422),
        ({"state": "x", "tactics": []}, 422),
        ({"state": "x", "tactics": ["skip"] * 65}, 422),
        ({"state": "x", "tactics": ["skip"], "seconds": 0}, 422),
        ({"state": "x", "tactics": ["skip"], "seconds": 1e9}, 422),
        ({"state": "x", "tactics": ["skip"], "steps": [{"state": "x", "tactics": ["skip"]}]}, 422),
        ({"state": "x", "tactics": [1]}, 422),
        ({"state": "x", "tactics": ["skip"]}, 404),
        ({"steps": [{"state": "x", "tactics": ["skip"]}] * 65}, 422),
    ],
)
def test_a_wrong_step_gets_one_clear_refusal(
    client: Client, served: Served, body: dict[str, object], status: int
) -> None:
    options = served.options
    with client.session(ITEM) as session:
        answer = httpx.post(
            f"{options['url']}/v1/sessions/{session.id}/steps",
            json=body,
            headers={"Authorization": f"Bearer {options['token']}"},
            timeout=60 * PATIENCE,
        )
        assert (answer.status_code, bool(answer.json()["detail"])) == (status, True)


def test_a_session_in_no_environment_and_one_that_is_unknown_are_not_found(client: Client) -> None:
    with pytest.raises(NotFound, match="no environment"):
        client.session(ITEM, environment="nowhere")
    with client.session(ITEM) as session:
        pass
    with pytest.raises(NotFound, match="no session"):
        session.step(session.root, "skip")


def test_a_key_sees_no_session_of_another_key(client: Client, served: Served, farm: Command) -> None:
    said = farm("keys", "add", "prover", "--scope", "submit", "--scope", "read")
    assert said.returncode == 0, said.stderr
    token = said.stdout.split()[-1]
    with client.session(ITEM) as session, Client(served.options["url"], token=token) as other:
        with other.session(ITEM) as own:
            assert own.step(own.root, "skip")[0].outcome == "goals"
        foreign = Session({"id": session.id, "environment": "core", "states": []}, other._once)
        for ask in (
            lambda: foreign.step(session.root, "skip"),
            lambda: foreign.state(session.root.id),
            lambda: foreign.prove(session.root),
            foreign.close,
        ):
            with pytest.raises(NotFound, match="no session"):
                ask()
        assert session.step(session.root, "skip")[0].outcome == "goals"


def test_a_key_without_the_scope_cannot_step(served: Served, farm: Command) -> None:
    said = farm("keys", "add", "reader", "--scope", "read")
    token = said.stdout.split()[-1]
    with Client(served.options["url"], token=token) as other, pytest.raises(Forbidden):
        other.session(ITEM)


# As other tools' searches call it


def test_a_search_for_the_public_repl_runs_on_the_farm(client: Client) -> None:
    repl = Repl(client, header=HEADER)
    first = repl.run({"cmd": "theorem one : True := True.intro\ntheorem s : True := by sorry"})
    assert [each["goal"] for each in first["sorries"]] == ["⊢ True"]
    begun = repl.run({"cmd": f"{STATEMENT} := by sorry", "env": first["env"]})
    root = begun["sorries"][-1]["proofState"]
    assert repl.run({"tactic": "exact hr", "proofState": root})["message"].startswith("Lean error:\n")
    goals = repl.run({"tactic": "constructor", "proofState": root})
    assert (len(goals["goals"]), goals["proofStatus"]) == (2, "Incomplete: open goals remain")
    done = repl.run({"tactic": "exact ⟨⟨hp, hq⟩, hr⟩", "proofState": root})
    assert (done["goals"], done["proofStatus"]) == ([], "Completed")
    trivial = repl.run({"tactic": "trivial", "proofState": begun["sorries"][0]["proofState"]})
    assert repl.prove(trivial["proofState"], done["proofState"]).verdict == "proved"
    assert repl.run({"tactic": "skip", "proofState": 99}) == {"message": "Unknown proof state 99"}
    assert repl.run({"cmd": "#eval 1", "env": 7}) == {"message": "Unknown environment."}
    assert repl.run({"cmd": "theorem w : Nowhere := by sorry"})["messages"][0]["severity"] == "error"
    repl.close()


def test_a_search_for_pypantograph_runs_on_the_farm(client: Client) -> None:
    server = Server(client, header=HEADER)
    state = server.goal_start("∀ (p q : Prop), p → q → p ∧ q")
    state = server.goal_tactic(state, "intro p q hp hq")
    with pytest.raises(TacticFailure, match="unknown"):
        server.goal_tactic(state, "nonsense")
    state = server.goal_tactic(state, "exact ⟨hp, hq⟩")
    assert state.is_solved
    assert server.prove(state).verdict == "proved"
    server.close()


# From Python


def test_the_documented_search_finds_its_proof(farm: Command, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "use" / "sessions.md").read_text()
    script = tmp_path / "example.py"
    script.write_text(page.partition("```python\n")[2].partition("```")[0])
    environment = {**farm.environment, "PYTHONPATH": CODE}
    said = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert (said.stdout, said.returncode) == ("True\n", 0), said.stderr


def test_a_sketch_is_filled_hole_by_hole(local: Farm) -> None:
    with local.session(SKETCH) as session:
        assert [(each.line, each.is_term, each.goals[0].rpartition("⊢ ")[2]) for each in session.roots] == [
            (6, False, "q"),
            (7, True, "p"),
        ]
        (first,), (second,) = (
            session.step(root, tactic)
            for root, tactic in zip(session.roots, ["exact h.2", "exact h.1"], strict=True)
        )
        with pytest.raises(UsageError, match="one state for each"):
            session.prove(first.state or "")
        verdict = session.prove(first.state or "", second.state or "")
    assert (verdict.verdict, verdict.reason) == ("proved", "ok")
    assert "sorry" not in verdict.program


def test_a_session_goes_on_after_its_worker_was_killed(
    own_farm: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in own_farm.settings.items():
        monkeypatch.setenv(name, str(value))
    with Farm() as farm, farm.session(**ITEM) as session:
        (first,) = session.step(session.root, "constructor")
        for worker in workers(own_farm):
            os.kill(worker, signal.SIGKILL)
        (second,) = session.step(first.state or "", "exact ⟨hp, hq⟩")
        assert second.outcome == "goals"
        (third,) = session.step(second.state or "", "exact hr")
        assert session.prove(third.state or "").verdict == "proved"


def workers(farm: Command) -> list[int]:
    """Return the processes of a farm's own worker."""
    home = str(farm.settings["FARM_HOME"]).encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes()
            if b"worker" in words.split(b"\0") and home in words + (folder / "environ").read_bytes():
                found.append(int(folder.name))
    assert found
    return found


def test_python_is_told_at_once_that_nothing_can_be_proved(local: Farm) -> None:
    with pytest.raises(UsageError, match=r"no theorem with `sorry` .* `theorem NAME : \.\.\. := by`"):
        local.session(**{**ITEM, "formal_statement": "instance : Inhabited Nat := by"})


def test_a_state_of_nobody_is_unknown(local: Farm) -> None:
    with local.session(**ITEM) as session, pytest.raises(UnknownRun, match="no state"):
        session.step("0" * 24, "skip")


# Commands


def test_a_person_proves_at_a_terminal(farm: Command, tmp_path: Path) -> None:
    file = tmp_path / "sketch.lean"
    file.write_text(SKETCH)
    typed = "help\nexact h.1\nundo\ngoals\nexact h || exact h.2\nroot 2\nexact h.1\nscript\ndone\n"
    said = farm("prove", file, stdin=typed.encode())
    assert said.returncode == 0, said.stderr
    assert "proved: ok" in said.stdout
    assert farm("prove", file, stdin=b"quit\n").returncode == 3


def test_a_search_proves_what_it_can_and_goes_on_where_it_was(farm: Command, tmp_path: Path) -> None:
    manifest, output = tmp_path / "problems.jsonl", tmp_path / "answers.jsonl"
    statements = {
        "both": f"{STATEMENT} := by\n",
        "either": "theorem u (p q : Prop) (h : p ∨ q) : q ∨ p := by\n",
        "false": "theorem v (p : Prop) : p := by\n",
        "bad": "theorem w : Nowhere := by\n",
        "nameless": "example : True := by\n",
    }
    rows = [{"name": name, "header": HEADER, "formal_statement": text} for name, text in statements.items()]
    manifest.write_text("".join(json.dumps(each) + "\n" for each in rows))
    said = farm("search", manifest, "-o", output, "--expansions", 32, "--json")
    assert said.returncode == 0, said.stderr
    told = json.loads(said.stdout)
    assert (told["lines"], told["proved"], told["refused"]) == (5, 2, 2)
    assert f"{manifest}, line 5: not searched: no proof of it can be accepted" in said.stderr
    written = [json.loads(line) for line in output.read_text().splitlines()]
    assert [each["name"] for each in written] == list(statements)
    assert [each.get("proof_status") for each in written] == ["completed", "completed", None, None, None]
    assert "has errors" in written[3]["search"]["reason"]
    assert "theorem NAME" in written[4]["search"]["reason"]
    output.write_text("".join(json.dumps(each) + "\n" for each in written[:1]) + '{"name": "eit')
    again = farm("search", manifest, "-o", output, "--expansions", 32, "--strategy", "mcts", "--json")
    assert again.returncode == 0, again.stderr
    assert [json.loads(line)["name"] for line in output.read_text().splitlines()] == list(statements)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--prover", "nowhere.txt"], "cannot be read"),
        (["--strategy", "worst-first"], "none of best-first"),
    ],
)
def test_a_search_that_cannot_be_made_so_is_bad_usage(
    farm: Command, tmp_path: Path, arguments: list[str], words: str
) -> None:
    manifest = tmp_path / "problems.jsonl"
    manifest.write_text(json.dumps({"name": "a", **ITEM}) + "\n")
    said = farm("search", manifest, *arguments)
    assert (said.returncode, said.stdout) == (2, "")
    assert words in said.stderr
