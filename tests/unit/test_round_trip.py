"""Round trip over public benchmarks: a statement repeated with a body gives header, statement and body.

The statements are those of `tests/published.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pytest

from farm.assembly.program import AssemblyOptions, assemble
from farm.manifest.entry import Entry
from tests.published import FILES, file

pytestmark = pytest.mark.whole

BODY = "  norm_num [h₀]\n  exact this"
SHAPES = {
    "in a fence": "Proof:\n```lean4\n{}\n```\nDone.",
    "in a fence that never closes": "```lean\n{}",
    "in a tilde fence": "~~~ Lean4\n{}\n~~~\n",
    "with a closing fence only": "{}\n```\n",
    "without a fence": "{}",
}


def entries(name: str) -> Iterator[Entry]:
    with file(name).open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            fields = json.loads(line)
            yield Entry(
                path=name,
                line=number,
                name=fields["name"],
                header=fields["header"],
                formal_statement=fields["formal_statement"],
                generation="",
                predicted_proof="",
            )


def program(entry: Entry, generation: str) -> str:
    return assemble(replace(entry, generation=generation), AssemblyOptions())[0].text


def programs(entry: Entry, generation: str) -> list[str]:
    return [each.text for each in assemble(replace(entry, generation=generation), AssemblyOptions())]


def body(entry: Entry) -> str:
    return BODY if entry.formal_statement.rstrip().endswith("by") else " by\n" + BODY


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("with_header", [False, True])
def test_a_repeated_statement_with_a_body_comes_out_whole(name: str, shape: str, with_header: bool) -> None:
    wrong, number = [], 0
    for number, entry in enumerate(entries(name), 1):  # noqa: B007 (the count is asserted below)
        expected = entry.header + entry.formal_statement + body(entry)
        answer = SHAPES[shape].format(expected if with_header else expected[len(entry.header) :])
        if program(entry, answer) != expected:
            wrong.append(entry.name)
    assert wrong == []
    assert number == sum(FILES[name][1].values())


@pytest.mark.parametrize("name", FILES)
def test_tactics_alone_are_joined_to_every_statement(name: str) -> None:
    for entry in entries(name):
        joint = "" if entry.formal_statement.rstrip().endswith("by") else " by\n"
        expected = entry.header + entry.formal_statement + joint + BODY
        assert program(entry, BODY.lstrip() + "\n```") == expected


@pytest.mark.parametrize("name", FILES)
def test_every_statement_is_known_with_its_whitespace_changed(name: str) -> None:
    for entry in entries(name):
        reflowed = "\n   ".join(entry.formal_statement.split())
        answer = f"```lean4\n{reflowed}{'' if reflowed.endswith('by') else ' by'}\n{BODY}\n```"
        expected = entry.header + entry.formal_statement + body(entry)
        assert program(entry, answer).split() == expected.split()


#: What statements may hold before their theorem; ``{n}`` is its name.
PARTS = {
    "an answer to fill in": "abbrev {n}_solution : ℕ → ℕ := sorry\n-- fun n => n\n/--\nFind\n{n}.\n-/\n",
    "an answer": "/-- The answer. -/\nnoncomputable abbrev {n}_solution : Set ℝ := {{x | x > 0}}\n\n",
    "a structure": "structure Game where\n  rows : ℕ\n  columns : ℕ\n  deriving Repr\n\n",
    "definitions": "def f : ℕ → ℕ\n  | 0 => 1\n  | n + 1 => f n\n\n@[simp]\ndef g (n : ℕ) : ℕ :=\n  f n\n\n",
    "a notation and an instance": 'local notation "π" => Real.pi\n\ninstance : Inhabited ℕ := ⟨0⟩\n\n',
    "what is opened": "open Nat Real\n\nopen scoped BigOperators in\n/-- Show it. -/\n",
    "variables": "universe u\n\nvariable {{α : Type u}} [Fintype α]\n  (n : ℕ)\n\n",
    "a namespace": "namespace Problem\n\ndef size := 3\n\n",
    "a section that ends": "section\nvariable (n : ℕ)\ndef twice := 2 * n\nend\n\n",
    "another theorem": "theorem first_of_all : 1 = 1 := by sorry\n\n",
    "a comment": "/- A theorem\nabbrev x := 1 -/\n",
    "a modifier": "@[simp] protected ",
}
OWN = "/-- Helps. -/\nlemma helper (x : ℝ) : x = x := by\n  open Real in\n  rfl\n\n"
#: How else answers hold header (h), the statement's other part (p) and its theorem (t).
ANSWERS = {
    "everything": "{h}{p}{t}",
    "other imports": "import Mathlib.Tactic\n{h}\n{p}{t}",
    "no header": "{p}{t}",
    "the theorem only": "{t}",
    "more blank lines": "{h}\n\n{p}\n\n{t}",
    "a namespace around": "{h}namespace Mine\n\n{p}{t}\n\nend Mine",
}


def theorems(name: str) -> Iterator[Entry]:
    """Yield every tenth, for what is tried in many ways."""
    found = (entry for entry in entries(name) if entry.formal_statement.startswith("theorem"))
    return islice(found, 0, None, 10)


def with_part(entry: Entry, part: str) -> tuple[str, Entry]:
    part = part.format(n=entry.name)
    return part, replace(entry, formal_statement=part + entry.formal_statement)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_what_a_statement_declares_is_not_declared_twice(name: str, part: str, answer: str) -> None:
    for plain in theorems(name):
        before, entry = with_part(plain, PARTS[part])
        theorem = plain.formal_statement + body(plain)
        whole = ANSWERS[answer].format(h=entry.header, p=before, t=theorem)
        assert entry.header + before + theorem in programs(entry, f"```lean4\n{whole}\n```")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("part", [part for part in PARTS if part != "a modifier"])
def test_a_helper_stands_where_the_model_has_it(name: str, part: str) -> None:
    for plain in theorems(name):
        before, entry = with_part(plain, PARTS[part])
        theorem = plain.formal_statement + body(plain)
        made = programs(entry, f"```lean4\n{entry.header}{OWN}{before}{theorem}\n```")
        assert made[0].split() == (entry.header + OWN + before + theorem).split()


SETTINGS = {
    "a limit": "set_option maxRecDepth 4000\n\n",
    "a limit for one": "set_option maxHeartbeats 800000 in\n",
    "a section": "noncomputable section\n\n",
    "a variable": "variable (mine : ℕ)\n\n",
    "what is opened": "open Mine\n\n",
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("setting", SETTINGS)
def test_what_the_model_sets_is_kept_and_is_left_out_of_the_last_program(name: str, setting: str) -> None:
    for entry in entries(name):
        if SETTINGS[setting].strip() in entry.header:
            continue
        theorem = entry.formal_statement + body(entry)
        generation = f"```lean4\n{entry.header}{SETTINGS[setting]}{theorem}\n```"
        first, *_, last = programs(entry, generation)
        assert first == entry.header + SETTINGS[setting] + theorem
        assert last == entry.header + theorem


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "ending", ["", "\n", " :=", " :=\n", " := sorry", " := by\n  sorry\n\nend Problem\n"]
)
def test_a_statement_may_end_anywhere_before_its_proof(name: str, ending: str) -> None:
    for plain in entries(name):
        bare = plain.formal_statement.rstrip().removesuffix("by").rstrip().removesuffix(":=").rstrip()
        entry = replace(plain, formal_statement=bare + ending)
        expected = f"{entry.header}{bare} := by\n{BODY}"
        assert program(entry, f"```lean4\n{bare} := by\n{BODY}\n```") == expected
        assert program(entry, f"by\n{BODY}\n```") == expected
        assert program(entry, f"{BODY}\n```") == expected
