"""Shorter contexts of lines: what each setting shows, that it compiles, and what is cut."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.outlined import Outline
from farm_workers.machine.abridging import Abridging, Outlined, Part, Setting, Shown, Wanted, latest

from farm.limits import Limits
from tests.acceptance.test_extract import project
from tests.acceptance.test_hostile_sessions import cheating
from tests.commands import Command
from tests.processes import PATIENCE

LIMITS = Limits(wall_seconds=30 * PATIENCE, cpu_seconds=60 * PATIENCE)
CONTEXT = """-- the header's own
prelude
import Core

/-! # Shop -/

namespace Shop
variable (p q : Prop)

/-- A pair. -/
def Both (p q : Prop) : Prop := p ∧ q

-- about pairs
/-- Naïve “text”. -/
theorem both (hp : p) (hq : q) : Both p q := by
  constructor
  · exact hp -- first
  · exact hq

def made (hp : p) (hq : q) : { n : Nat // Both p q } := ⟨0, both p q hp hq⟩

attribute [simp] both

theorem same : ∀ n : Nat, n = n
  | _ => rfl

open Nat in
"""
STATEMENT = "theorem last (hp : p) (hq : q) : made p q hp hq = made p q hp hq := by"
HEAD = "-- the header's own\nprelude\nimport Core\n\n"
SCOPES = "namespace Shop\n\nvariable (p q : Prop)\n\n"
BOTH = "def Both (p q : Prop) : Prop := p ∧ q\n\n"
STATED = """theorem both (hp : p) (hq : q) : Both p q := sorry

def made (hp : p) (hq : q) : { n : Nat // Both p q } := ⟨0, both p q hp hq⟩

attribute [simp] both

theorem same : ∀ n : Nat, n = n
  := sorry

"""
#: The context of each setting, and whether it declares all that the statement speaks of.
SETTINGS = {
    Setting.NONE: (HEAD + SCOPES + "open Nat in\n", False),
    Setting.DEFINITIONS: (HEAD + SCOPES + BOTH + STATED.partition("theorem same")[0] + "open Nat in\n", True),
    Setting.STATEMENTS: (HEAD + SCOPES + BOTH + STATED + "open Nat in\n", True),
    Setting.NO_PROOFS: (
        CONTEXT.replace(":= by\n  constructor\n  · exact hp -- first\n  · exact hq", ":= sorry").replace(
            "| _ => rfl", ":= sorry"
        ),
        True,
    ),
    Setting.FULL: (CONTEXT, True),
}


@pytest.fixture
def outline(checker: Checker, core: LeanEnvironment) -> Outlined:
    return partial(checker.outline, environment=core, limits=LIMITS)


def shown(
    outline: Outlined, setting: Setting, *lines: tuple[str, str], most: int | None = None
) -> list[Shown]:
    return Abridging(outline, Wanted(setting=setting, most_tokens=most)).shown(lines)


@pytest.mark.parametrize("setting", Setting)
def test_each_setting_shows_a_part_of_the_context_that_compiles(outline: Outlined, setting: Setting) -> None:
    (found,) = shown(outline, setting, (CONTEXT, STATEMENT))
    text, states = SETTINGS[setting]
    assert found.text == text
    assert found.states is states
    again = outline(f"{found.text}theorem other : True := trivial\n")
    assert not any(each.failed for each in again.commands)


def test_lines_of_one_file_share_its_outline_and_others_have_their_own(outline: Outlined) -> None:
    early = CONTEXT[: CONTEXT.index("def made")]
    other = CONTEXT.replace("Shop", "Other")
    asked = list[str]()

    def counted(text: str, *, needs: bool = False) -> Outline:
        asked.append(text)
        return outline(text, needs=needs)

    lines = [(early, "theorem one : Both p p"), (CONTEXT, STATEMENT), (other, STATEMENT)]
    found = shown(counted, Setting.STATEMENTS, *lines)
    assert [each.states for each in found] == [True] * 3
    assert found[0].text == HEAD + SCOPES + BOTH + STATED[: STATED.index("def made")]
    assert "namespace Other" in (found[2].text or "")
    assert sum("exact hq" in each for each in asked) == 2  # the whole text of each file, once


def test_a_theorem_is_shown_with_definitions_from_the_first_one_that_needs_it(outline: Outlined) -> None:
    above = CONTEXT[: CONTEXT.index("def made")]
    lines = [
        (above, "theorem one : Both p p"),
        (above, "theorem two : both p q = both p q"),
        (CONTEXT, STATEMENT),
    ]
    found = shown(outline, Setting.DEFINITIONS, *lines)
    assert ["theorem both" in (each.text or "") for each in found] == [False, False, True]
    assert [each.states for each in found] == [True, False, True]


def test_a_statement_is_not_taken_for_the_one_that_stands_there_in_another_line(outline: Outlined) -> None:
    above = CONTEXT[: CONTEXT.index("theorem same")]
    for setting in (Setting.DEFINITIONS, Setting.STATEMENTS):
        lines = [
            (above, "theorem same : Nope"),
            (above, "theorem same : ∀ n : Nat, n = n"),
            (CONTEXT, STATEMENT),
        ]
        assert [each.states for each in shown(outline, setting, *lines)] == [False, True, True]


def test_a_statement_compiles_also_where_the_proof_of_another_line_fails(outline: Outlined) -> None:
    above = CONTEXT[: CONTEXT.index("theorem same")]
    wrong = CONTEXT.replace("| _ => rfl", "| _ => nope")
    found = shown(outline, Setting.FULL, (above, "theorem same : ∀ n : Nat, n = n"), (wrong, STATEMENT))
    assert [each.states for each in found] == [True, True]
    assert "nope" not in (found[1].text or "")


def test_the_first_declarations_are_cut_and_what_rests_on_them(outline: Outlined) -> None:
    (whole,) = shown(outline, Setting.STATEMENTS, (CONTEXT, STATEMENT))
    for most in range(0, whole.tokens + 1, 8):
        (found,) = shown(outline, Setting.STATEMENTS, (CONTEXT, STATEMENT), most=most)
        assert found.text is not None
        assert found.tokens <= max(most, 9)  # the scopes have nine
        assert SCOPES in found.text
        assert not any(each.failed for each in outline(found.text).commands)
    assert found.states == (most >= whole.tokens)


def test_the_latest_declarations_stay_up_to_the_first_that_is_too_long() -> None:
    given = [
        Part(start=number, since=number, text=str(number), tokens=tokens, declares=declares)
        for number, (tokens, declares) in enumerate([(1, True), (2, False), (9, True), (3, True), (4, True)])
    ]
    kept = {most: [each.since for each in latest(given, most)] for most in (0, 6, 9, 10, 17, 18, 19)}
    assert kept == {
        0: [1],
        6: [1, 4],
        9: [1, 3, 4],
        10: [1, 3, 4],
        17: [1, 3, 4],
        18: [1, 2, 3, 4],
        19: [0, 1, 2, 3, 4],
    }
    assert latest(given, None) == given


@pytest.mark.parametrize(
    ("context", "statement"),
    [("", "theorem t : True"), ("prelude\nimport Core\n", ""), ("  \n", "theorem t : True")],
)
def test_a_line_without_context_or_statement_has_none(
    outline: Outlined, context: str, statement: str
) -> None:
    (found,) = shown(outline, Setting.FULL, (context, statement))
    assert (found.text, bool(found.why)) == (None, True)


def test_a_context_whose_header_is_unknown_has_none_and_the_others_have_theirs(outline: Outlined) -> None:
    bad = ("import No.Such\n\ndef a := 1\n", "theorem t : a = a")
    found = shown(outline, Setting.FULL, bad, (CONTEXT, STATEMENT))
    assert found[0].text is None
    assert "cannot be imported" in found[0].why
    assert found[1].text == CONTEXT


@pytest.mark.parametrize("act", ["true", """printf '{"commands": [], "proofs": []}' > outline.json"""])
def test_code_of_the_file_that_lies_about_its_commands_shows_nothing_else(
    outline: Outlined, act: str
) -> None:
    context = cheating(act, wait_ms=100).partition("theorem")[0]
    context += "theorem t (p : Prop) (h : p) : p := by\n  cheat!!\n  exact h\n"
    found = shown(outline, Setting.FULL, (context, "theorem u : Nope := by"), (CONTEXT, STATEMENT))
    assert found[0].text is not None or act != "true"
    assert context.startswith(found[0].text or "")
    assert found[1].text == CONTEXT


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_extracted_lines_and_lines_of_minictx_get_the_same_contexts(farm: Command, tmp_path: Path) -> None:
    folder, ours, theirs = project(tmp_path / "project", 2), tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    mini = tmp_path / "mini.jsonl"
    options = "--context", "statements", "--context-tokens", "40"
    told = farm.json("extract", folder, "-o", ours, *options)
    assert (told["states"], told["not_shown"]) == (12, [])
    assert farm("extract", folder, "-o", mini, "--format", "minictx").returncode == 0
    ended = farm("dataset", "minictx", mini, "-o", theirs, *options)
    assert "12 of 12 statements compile below their shorter contexts" in ended.stderr
    fields = "context", "context_setting", "shown_context", "shown_tokens", "statement_compiles"
    told_by = [{tuple(each[name] for name in fields) for each in lines(file)} for file in (ours, theirs)]
    assert told_by[0] == told_by[1]
    assert {each["context_setting"] for each in lines(ours)} == {"statements, 40 tokens"}
    again = farm("submit", ours)
    assert again.returncode == 0, again.stderr
    assert {each["proof_status"] for each in lines(ours)} == {"completed"}


BAD = {
    "no such setting": (
        ["--context", "some"],
        "choose one of none, definitions, statements, no-proofs, full",
    ),
    "tokens alone": (["--context-tokens", "10"], "belongs to --context"),
    "fewer than none": (["--context", "full", "--context-tokens", "-1"], "greater than or equal to 0"),
}


@pytest.mark.parametrize(("words", "said"), BAD.values(), ids=BAD)
def test_bad_settings_are_said_and_nothing_is_written(
    farm: Command, tmp_path: Path, words: list[str], said: str
) -> None:
    (tmp_path / "A.lean").write_text("theorem t : True := trivial\n")
    for command in (["extract", tmp_path], ["dataset", "minictx", tmp_path / "A.lean"]):
        ended = farm(*command, "-o", tmp_path / "out.jsonl", *words)
        assert ended.returncode == 2
        assert said in ended.stderr
    assert not list(tmp_path.glob("out*"))


def test_a_benchmark_without_contexts_is_refused(farm: Command, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"name": "t", "statement": "theorem t : True := by"}) + "\n")
    words = "--statement", "statement", "--context", "full"
    ended = farm("dataset", "lines", rows, "-o", tmp_path / "out.jsonl", *words)
    assert ended.returncode == 2
    assert "no line has a `context`" in ended.stderr
    assert not (tmp_path / "out.jsonl").exists()
