"""Holes as lines: a draft's sorries are answered one by one, put together, and sealed once."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from farm_workers.checking.asked import check_of
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.assembly.hole import drafts
from farm.client import Client
from farm.judging.assurance import Assurance
from farm.judging.holes import cut, holes_of
from farm.judging.job import Check
from farm.judging.verdict import Outcome, Reason, Verdict, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.manifest.hole import Hole
from tests.commands import HEADER, Command
from tests.processes import CODE, PATIENCE
from tests.trainer_service import Served, service

BINDERS = "(p q : Prop) (h : p) (k : p → q)"
STATEMENT = f"theorem t {BINDERS} : q ∧ p := by"
DRAFT = "  constructor\n  · have x : p := by sorry\n    exact k x\n  · exact sorry"
LIMITS = Limits(wall_seconds=20 * PATIENCE)
LEMMA = f"theorem a {BINDERS} : q := by\n  sorry\n"


def holes(checker: Checker, core: LeanEnvironment, program: str) -> list[Hole]:
    """Return the holes of a program, as a judged line tells them."""
    report = checker.check(Check.of(program=program, limits=LIMITS, goals=True), core)
    assert report.answer.first_error is None
    return [Hole.of(each) for each in holes_of(program, report.goals or (), ())]


def answered(
    checker: Checker, core: LeanEnvironment, hole: Hole, answer: str, statement: str = STATEMENT
) -> Verdict:
    entry = Entry(
        path="",
        line=1,
        name="",
        header=HEADER,
        formal_statement=statement,
        generation=answer,
        predicted_proof="",
        hole=hole,
    )
    return judge(checker.check(check_of(entry, LIMITS, Assurance()), core))


#: Proofs with holes, and an answer to each.
HONEST = {
    "bullets and a term": (DRAFT, ["exact h", "exact h"]),
    "the same goal twice": ("  exact ⟨k sorry, sorry⟩", ["exact h", "by\n  exact h"]),
    "a case in the middle of a line": (
        "  constructor\n  case left => sorry\n  case right => admit",
        ["apply k\nexact h", "assumption"],
    ),
    "all goals at once": ("  constructor\n  all_goals sorry", ["first\n| exact k h\n| exact h"]),
    "a hole for two goals": ("  constructor\n  sorry\n  sorry", ["exact k h", "exact h"]),
    "several lines at a column": (
        "  have x : q := by\n    sorry\n  have y : p := sorry\n  exact ⟨x, y⟩",
        ["have z : p := by\n  exact h\nexact k z", "  have z := h\n  exact z"],
    ),
    "a first line that has lost its column": (
        "  constructor\n  · sorry\n  · sorry",
        ["apply k\n    exact h", "have z := h\n    exact z"],
    ),
    "a fenced answer with thoughts": (
        "  exact ⟨sorry, h⟩",
        ["<think>sorry</think>It holds.\n```lean4\nexact k h\n```"],
    ),
    "comments at the end": ("  exact ⟨sorry, sorry⟩", ["exact k h -- done)", "exact h /- so -/"]),
    "signs of several bytes": (
        "  have ωωω : p := h; have 𝕏 : q := sorry; exact ⟨𝕏, sorry⟩",
        ["exact k ωωω", "exact ωωω"],
    ),
    "a term as a lambda": (
        "  exact ⟨sorry, sorry⟩",
        ["exact (fun x => k x) h", "exact (fun (x : p) => x) h"],
    ),
}


@pytest.mark.parametrize(("draft", "answers"), HONEST.values(), ids=HONEST)
def test_each_hole_is_filled_alone_and_the_last_one_proves_the_whole(
    checker: Checker, core: LeanEnvironment, draft: str, answers: list[str]
) -> None:
    program = f"{HEADER}{STATEMENT}\n{draft}\n"
    for number, answer in enumerate(answers):
        left = holes(checker, core, program)
        assert [each.of_holes for each in left] == [len(answers) - number] * (len(answers) - number)
        found = answered(checker, core, left[0], answer)
        expected = Outcome.PROVED if len(left) == 1 else Outcome.PARTIAL
        assert found.outcome is expected, found.detail
        program = checked_program(left[0], answer)


#: Proofs with an error, and the holes of the draft that each becomes.
WRONG = {
    "a tactic that fails in a bullet": (
        "  constructor\n  · apply k\n    exact k\n    exact h\n  · exact h",
        1,
    ),
    "a tactic that fails before two goals": ("  constructor\n  exact k", 2),
    "a block that leaves two goals open": ("  constructor", 2),
    "a bullet that leaves a goal open": ("  constructor\n  · exact k h\n  · skip", 1),
    "a block in a term": ("  exact ⟨by apply k, h⟩", 1),
    "tactics on one line": (" constructor; exact k; exact h", 2),
    "a case that leaves a goal open": (
        "  constructor\n  case right => exact h\n  case left =>\n    apply k",
        1,
    ),
}


@pytest.mark.parametrize(("proof", "count"), WRONG.values(), ids=WRONG)
def test_a_program_is_cut_at_its_error(
    checker: Checker, core: LeanEnvironment, proof: str, count: int
) -> None:
    program = f"{HEADER}{STATEMENT}\n{proof}\n" if proof[:2] == "  " else f"{HEADER}{STATEMENT}{proof}\n"
    report = checker.check(Check.of(program=program, limits=LIMITS, goals=True), core)
    found = cut(program, report.goals or ())
    assert found
    assert len(holes(checker, core, found.program)) == count


def checked_program(hole: Hole, answer: str) -> str:
    draft, _ = next(drafts(hole, answer, "", last=True))
    return draft.text


OTHER = f"theorem u {BINDERS} : q ∧ p := by\n  constructor\n  · have x : p := by (exact h"
TRUE = "theorem b : True := by\n  (exact True.intro"
#: The beginning of the label of the sorry on line 9 of LEMMA and DRAFT.
LABEL = 'Lean.Name.num (Lean.Name.num (Lean.Name.str Lean.Name.anonymous "_stdin") 9) 10'
#: What fills no hole of LEMMA and DRAFT: the number of the hole, and the answer.
TRICKS = {
    "a sorry": (1, "sorry"),
    "a sorry in a term": (1, "exact absurd h sorry"),
    "the axiom behind it": (1, "exact sorryAx _ true"),
    "a sorry with the label of another": (1, f"exact sorryAx (Lean.Name → p) false ({LABEL})"),
    "admit": (1, "admit"),
    "nothing": (1, ""),
    "nothing but a comment": (1, "-- exact h"),
    "a sorry by a macro": (
        0,
        "exact k h)\nmacro_rules | `(True.intro) => `(sorry)\ntheorem b : False := by\n  (exact True.intro",
    ),
    "the open theorem itself": (1, "exact (t p q h k).2"),
    "the rest is another theorem": (1, f"exact h)\n    exact k x\n  · exact h\n{OTHER}"),
    "the rest is a theorem of another namespace": (
        0,
        f"exact k h)\ntheorem t {BINDERS} : q ∧ p := ⟨k h, h⟩\nnamespace B\n{TRUE}",
    ),
    "the theorem gets another statement": (
        0,
        f"exact k h)\ntheorem t : True := True.intro\nnamespace B\n{TRUE}",
    ),
    "a theorem of its own stays open": (0, "exact k h)\ntheorem c (p : Prop) : p := by\n  (sorry"),
    "an open comment": (1, "exact h)\n/-"),
    "an open string": (1, 'exact h)\n    exact "'),
    "the end of the text": (1, "exact h)\n#exit\n("),
    "the end of a namespace that is not open": (1, "exact h)\nend A\ntheorem b : p := by (exact h"),
}


@pytest.fixture(scope="module")
def three(checker: Checker, core: LeanEnvironment) -> list[Hole]:
    """The holes of a lemma and of a theorem below it."""
    return holes(checker, core, f"{HEADER}{LEMMA}{STATEMENT}\n{DRAFT}\n")


@pytest.mark.parametrize(("number", "answer"), TRICKS.values(), ids=TRICKS)
def test_no_trick_fills_a_hole(
    checker: Checker, core: LeanEnvironment, three: list[Hole], number: int, answer: str
) -> None:
    hole = three[number]
    found = answered(checker, core, hole, answer)
    assert found.outcome is Outcome.REJECTED, found.detail
    alone = answered(checker, core, replace(hole, of_holes=1, number=1), answer)
    assert alone.outcome is Outcome.REJECTED, alone.detail


#: Answers to a hole for tactics, and to one for a term, that are not all that stands in its place.
BREAK_OUT = {
    "a tactic more": "exact h)\n      skip; (skip",
    "a tactic behind": "exact h) <;> (skip",
    "a tactic behind a semicolon": "exact h) ; (skip",
    "another fact": "exact h) ; have y : True := (trivial",
    "another place": "exact h\n  )\n    exact k x\n  · (exact h",
    "a parenthesis more": "exact h)",
    "a name opened for less": "open Nat in exact h) ; (skip",
    "a line end of Windows": "exact h)\r\n    skip; (skip",
    "a parenthesis below a comment": "exact h -- )\n) ; (skip",
    "a type": "exact h : p",
    "a pair": "exact h, trivial",
    "an argument": "exact h) (by exact h",
    "a part": "exact ⟨h, h⟩).1 ; (skip",
    "a part below": "exact h) |> id ; (skip",
    "an arrow": "exact h) → (p",
    "another lemma": "exact h)\n    exact k x\n  · exact h\ntheorem more : True := by\n  (trivial",
    "an instance": f"exact h)\n    exact k x\n  · exact h\ninstance : OfNat Nat 3 := ⟨0⟩\n{OTHER}",
    "a notation": f'exact h)\n    exact k x\n  · exact h\nlocal notation "x" => (0 : Nat)\n{OTHER}',
    "an attribute": f"exact h)\n    exact k x\n  · exact h\nattribute [reducible] And in\n{OTHER}",
    "an option": f"exact h)\n    exact k x\n  · exact h\nset_option maxRecDepth 9 in\n{OTHER}",
    "a namespace": f"exact h)\n    exact k x\n  · exact h\nnamespace N\n{OTHER}",
    "the end of the text": "exact h)\n#exit\n(",
    "an open comment": "exact h)\n    exact k x\n  · exact h\n/-",
}
#: Answers that Lean's parser does not read to their end.
UNREADABLE = {
    "an open parenthesis": "(exact h",
    "an open comment": "exact h /-",
    "an open string": 'exact h "',
    "an open function": "exact (fun _ =>",
    "an open match": "match h with | _ => (",
    "the other bracket": "exact (h]",
}


@pytest.fixture(scope="module")
def both(checker: Checker, core: LeanEnvironment) -> list[Hole]:
    """A hole for tactics and one for a term."""
    return holes(checker, core, f"{HEADER}{STATEMENT}\n{DRAFT}\n")


@pytest.mark.parametrize("answer", BREAK_OUT.values(), ids=BREAK_OUT)
def test_an_answer_is_all_that_stands_in_its_place(
    checker: Checker, core: LeanEnvironment, both: list[Hole], answer: str
) -> None:
    found = [answered(checker, core, hole, answer) for hole in both]
    assert {each.outcome for each in found} == {Outcome.REJECTED}, found
    assert any("is not one sequence of tactics" in each.detail for each in found), found


@pytest.mark.parametrize("answer", UNREADABLE.values(), ids=UNREADABLE)
def test_an_answer_that_leaves_something_open_is_refused_in_leans_words(
    checker: Checker, core: LeanEnvironment, both: list[Hole], answer: str
) -> None:
    found = [answered(checker, core, hole, answer) for hole in both]
    assert {(each.outcome, each.reason) for each in found} == {(Outcome.REJECTED, Reason.ERROR)}, found


#: One proof in many shapes.
SHAPES = (
    *("exact h", "exact h  \n\n", "exact h;", "  exact h", "(exact h)", "(exact h);", "{ exact h }"),
    *("· exact h", "exact h <;> skip", "exact (h : p)", "exact by exact h", "by exact h", ":= by exact h"),
    *("by\n  exact h", "exact h -- done)", "exact h /- so (-/", "/- ( -/ exact h", "-- so\nexact h"),
    *("have a := h\nexact a", "  have a := h\n  exact a", "    have a := h\n    exact a", "next => exact h"),
    *("let a := h; exact a", "have ωω : p := by\n  exact h\nexact ωω", "first\n| skip\n  exact h\n| done"),
    *(
        "show p\nexact h",
        "refine ?_\nexact h",
        "match h with\n| _ => exact h",
        "suffices x : p from x\nexact h",
    ),
    *("```lean4\nexact h\n```", "It holds:\n```lean\n  exact h\n```\nThat is all.", "exact (fun x => x) h"),
    "<think>\nexact h) /-\n</think>\nexact h",
)


@pytest.mark.parametrize("answer", SHAPES)
def test_an_answer_may_have_any_shape(
    checker: Checker, core: LeanEnvironment, both: list[Hole], answer: str
) -> None:
    for hole in both:
        found = answered(checker, core, hole, answer)
        assert found.outcome is Outcome.PARTIAL, found.detail


#: What stands around a draft's holes in examples, and the statement of the line.
IN_EXAMPLES = {
    "beside a theorem": ("", "theorem t : 3 = 3 := rfl\n", ""),
    "below others": (
        "example : 1 = 1 := rfl\nexample : 2 = 2 := by sorry\n",
        "theorem t : 3 = 3 := rfl\n",
        "",
    ),
    "above others": (
        "",
        "example : 1 = 1 := rfl\nexample : 2 = 2 := by sorry\ntheorem t : 3 = 3 := rfl\n",
        "",
    ),
    "with a statement": ("", "theorem t : 3 = 3 := by\n  sorry\n", "theorem t : 3 = 3 := by"),
}


@pytest.mark.parametrize(("above", "below", "statement"), IN_EXAMPLES.values(), ids=IN_EXAMPLES)
def test_a_hole_in_an_example_is_filled(
    checker: Checker, core: LeanEnvironment, above: str, below: str, statement: str
) -> None:
    example = f"example {BINDERS} : q ∧ p := by\n  constructor\n  sorry\n  sorry\n"
    found = holes(checker, core, f"{HEADER}{above}{example}{below}")
    (hole,) = [each for each in found if each.program[each.start :].startswith("sorry\n  sorry\n")]
    for answer, outcome in {
        "have a := k h\nexact a": Outcome.PARTIAL,
        "exact absurd h sorry": Outcome.REJECTED,
    }.items():
        assert answered(checker, core, hole, answer, statement).outcome is outcome


def test_a_hole_that_stands_somewhere_else_is_not_filled(checker: Checker, core: LeanEnvironment) -> None:
    program = f"{HEADER}{STATEMENT}\n{DRAFT}\n"
    first = holes(checker, core, program)[0]
    start = program.index("exact k x")
    moved = replace(first, start=start, end=start + len("exact k x"))
    assert answered(checker, core, moved, "exact k h").outcome is Outcome.REJECTED
    refused = replace(first, program=program.replace("exact k x", "exact k"))
    assert answered(checker, core, refused, "exact h").outcome is not Outcome.PARTIAL
    more = replace(holes(checker, core, checked_program(first, "exact h"))[0], of_holes=7)
    assert answered(checker, core, more, "exact h").outcome is Outcome.PROVED


def test_holes_below_a_context_and_without_a_statement_are_filled(
    checker: Checker, core: LeanEnvironment
) -> None:
    context = f"{HEADER}def Both (p q : Prop) : Prop := q ∧ p\ntheorem open_ : True := sorry\n"
    statement = f"theorem t {BINDERS} : Both p q := by"
    program = f"{context}{statement}\n{DRAFT}\n"
    first, *_ = [each for each in holes(checker, core, program) if each.start > len(context)]
    entry = Entry(
        path="",
        line=1,
        name="",
        header="",
        context=context,
        formal_statement=statement,
        generation="exact h",
        predicted_proof="",
        hole=first,
    )
    for _ in range(3):  # the first ones are compiled with their context, the others below an image of it
        assert judge(checker.check(check_of(entry, LIMITS, Assurance()), core)).outcome is Outcome.PARTIAL
        wrong = replace(entry, generation="exact absurd h sorry")
        assert judge(checker.check(check_of(wrong, LIMITS, Assurance()), core)).outcome is Outcome.REJECTED
    unforked = replace(core, digest="unforked", lean=(*core.lean, "-M4096"))
    assert judge(checker.check(check_of(entry, LIMITS, Assurance()), unforked)).outcome is Outcome.PARTIAL
    bare = holes(checker, core, f"{HEADER}{STATEMENT}\n{DRAFT}\n")[0]
    assert answered(checker, core, bare, "exact h", statement="").outcome is Outcome.PARTIAL
    assert answered(checker, core, bare, "exact absurd h sorry", statement="").outcome is Outcome.REJECTED


def test_holes_are_judged_where_lean_cannot_be_forked(
    checker: Checker, core: LeanEnvironment, three: list[Hole]
) -> None:
    unforked = replace(core, digest="unforked", lean=(*core.lean, "-M4096"))
    hole = three[1]
    assert answered(checker, unforked, hole, "exact h").outcome is Outcome.PARTIAL
    for trick, words in (
        ("exact absurd h sorry", "besides those of the other holes"),
        (TRICKS["the rest is another theorem"][1], "The answer changes t, which stands around the hole"),
    ):
        found = answered(checker, unforked, hole, trick)
        assert (found.outcome, words in found.detail) == (Outcome.REJECTED, True), found.detail


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(each) for each in path.read_text().splitlines()]


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


@pytest.fixture(scope="module")
def served(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with service(farm, tmp_path_factory.mktemp("serve")) as found:
        yield found


def documented(section: str) -> list[list[str]]:
    """Return the commands of a section of the page about tasks."""
    page = (Path(__file__).parents[2] / "docs" / "use" / "tasks.md").read_text()
    lines = page.partition(f"## {section}\n")[2].partition("\n## ")[0].splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("    farm ")]


def test_the_documented_loop_proves_a_draft_hole_by_hole(farm: Command, tmp_path: Path) -> None:
    names = ("drafts", "subgoals", "whole")
    drafts, subgoals, whole = (tmp_path / f"{each}.jsonl" for each in names)
    draft = {"header": HEADER, "formal_statement": STATEMENT, "generation": DRAFT, "source": "mine"}
    wrong = {**draft, "name": "wrong", "generation": "  constructor\n  · exact k\n  · sorry"}
    write(drafts, [{**draft, "name": "t", "group": "g"}, wrong, {**draft, "generation": "  exact ⟨k h, h⟩"}])

    run, said = "", list[Any]()
    for words in documented("Holes"):
        if words == ["submit", "subgoals.jsonl"]:
            found = rows(subgoals)
            write(
                subgoals,
                [{**each, "generation": answer} for each in found for answer in ("admit", "exact h")],
            )
        words = [word.replace("RUN", run) for word in words]
        words = [str(tmp_path / word) if word.endswith(".jsonl") else word for word in words]
        said.append(farm.json(*words))
        run = run or said[-1]["run"]

    assert [(each["name"], each["source"], each["hole"]["goal"]) for each in found] == [
        (f"t.hole{number}", "mine", "p q : Prop\nh : p\nk : p → q\n⊢ p") for number in (1, 2)
    ]
    assert [each["hole"]["is_term"] for each in found] == [False, True]
    assert [said[1][each] for each in ("lines", "programs", "errors")] == [2, 1, 1]
    assert [each["proof_status"] for each in rows(subgoals)] == ["has_sorry", "partial"] * 2
    assert [said[3][each] for each in ("lines", "programs", "open")] == [1, 1, 0]
    (line,) = rows(whole)
    assert (line["name"], line["group"], line["source"], line["proof_status"]) == (
        "t",
        "g",
        "mine",
        "completed",
    )
    assert line["of"]["run"] == run


def test_a_program_with_an_error_becomes_a_draft(farm: Command, tmp_path: Path) -> None:
    wrong, drafts, subgoals = (tmp_path / f"{each}.jsonl" for each in ("wrong", "drafts", "subgoals"))
    proof = "  constructor\n  · exact k\n  · sorry"
    line = {"name": "w", "header": HEADER, "formal_statement": STATEMENT, "generation": proof}
    run = farm.json("submit", write(wrong, [line]), "--goals")["run"]
    assert farm.json("holes", run, "-o", subgoals)["lines"] == 0
    assert farm.json("holes", run, "--cut", "-o", drafts)["lines"] == 1
    again = farm.json("submit", drafts, "--goals")["run"]
    assert farm.json("holes", again, "-o", subgoals)["lines"] == 2
    places = [(each["name"], each["hole"]["line"], each["hole"]["column"]) for each in rows(subgoals)]
    assert places == [("w.hole1", 6, 4), ("w.hole2", 7, 4)]


def test_an_open_program_is_left_out_or_written_with_its_sorry(farm: Command, tmp_path: Path) -> None:
    drafts, subgoals, whole = (tmp_path / f"{each}.jsonl" for each in ("drafts", "subgoals", "whole"))
    write(drafts, [{"name": "t", "header": HEADER, "formal_statement": STATEMENT, "generation": DRAFT}])
    run = farm.json("submit", drafts)["run"]
    refused = farm("holes", run, "-o", subgoals)
    assert (refused.returncode, "farm submit MANIFEST --goals" in refused.stderr) == (2, True), refused.stderr
    assert not subgoals.exists()
    run = farm.json("submit", drafts, "--goals")["run"]
    assert farm.json("holes", run, "-o", subgoals)["lines"] == 2
    first, second = rows(subgoals)
    write(subgoals, [{**first, "generation": "exact h"}, {**second, "generation": "exact k"}])
    kept = subgoals.read_bytes()
    refused = farm("holes", run, "-o", subgoals)
    assert (refused.returncode, "is there already; add --force" in refused.stderr) == (2, True)
    assert subgoals.read_bytes() == kept
    farm.json("submit", subgoals)
    assert farm.json("holes", "--fill", subgoals, "-o", whole)["lines"] == 0
    assert farm.json("holes", "--fill", subgoals, "-o", whole, "--open")["lines"] == 1
    refused = farm("holes", "--fill", subgoals, "-o", whole)
    assert (refused.returncode, "is there already; add --force" in refused.stderr) == (2, True)
    (line,) = rows(whole)
    assert (line["open"], line["predicted_proof"].count("sorry")) == ([2], 1)
    write(drafts, [{"header": HEADER, "formal_statement": STATEMENT, "generation": DRAFT}])
    changed = farm("holes", run, "-o", subgoals, "--force")
    assert (changed.returncode, "has changed since it was submitted" in changed.stderr) == (2, True)


def test_holes_are_filled_over_http(served: Served) -> None:
    stated = {"header": HEADER, "formal_statement": STATEMENT}
    with Client(served.options["url"], token=served.options["token"], deadline=120 * PATIENCE) as client:
        accept = ("forgeable",)
        draft = client.check({**stated, "proof": DRAFT}, accept=accept, goals=True)
        assert draft.holes
        assert [(each.number, each.of_holes, each.is_term, each.line) for each in draft.holes] == [
            (1, 2, False, 6),
            (2, 2, True, 8),
        ]
        fine, wrong = client.check_all(
            [{**stated, **draft.holes[0].answered(each)} for each in ("exact h", "sorry")], accept=accept
        )
        whole = client.check({**stated, "program": draft.filled({1: "exact h", 2: "exact h"})}, accept=accept)
        half = client.check({**stated, "program": draft.filled({2: "exact h"})}, accept=accept)
        proved = client.check({**stated, "proof": "exact ⟨k h, h⟩"}, goals=True)
        refused = client.check({**stated, "proof": "exact k"}, goals=True)
    assert [(each.verdict, each.reward) for each in (fine, wrong, whole, half)] == [
        ("partial", 0.0),
        ("rejected", 0.0),
        ("proved", 1.0),
        ("rejected", 0.0),
    ]
    assert (proved.holes, refused.holes, fine.holes) == ((), (), None)
    headers = {"Authorization": f"Bearer {served.options['token']}"}
    hole = {"program": "x sorry", "start": 2, "end": 7}
    for item, words in (
        ({**stated, "program": "x", "hole": hole}, "an item with a hole has a proof or generation"),
        (
            {**stated, "proof": "x", "hole": hole, "task": "disprove"},
            "hole",
        ),
        ({**stated, "proof": "x", "hole": {**hole, "end": 8}}, "hole.end: 8 is not between 0 and 7"),
        ({**stated, "proof": "x", "hole": {**hole, "starts": 8}}, "starts"),
    ):
        answer = httpx.post(f"{served.options['url']}/v1/batches", json={"items": [item]}, headers=headers)
        assert (answer.status_code, words in answer.text) == (422, True), answer.text


def test_the_documented_holes_print_what_the_page_says(farm: Command, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "use" / "tasks.md").read_text().partition("## Holes\n")[2]
    script = tmp_path / "example.py"
    script.write_text(page.partition("```python\n")[2].partition("```")[0])
    environment = {**farm.environment, "PYTHONPATH": CODE}
    said = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert (said.stdout, said.returncode) == ("partial\npartial\nproved\n", 0), said.stderr
