"""Disproofs, proofs of either, and statements alone: with a checker, and tricks against them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import pytest
from farm_workers.checking.asked import check_of
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.assembly.negation import negation_of
from farm.assembly.tasked import NoTask
from farm.client import Client, Invalid, Result
from farm.judging.assurance import Assurance
from farm.judging.audit import Stated
from farm.judging.report import Report
from farm.judging.verdict import Outcome, Reason, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.task import Kind, Task
from tests.commands import HEADER, Command
from tests.processes import CODE, PATIENCE
from tests.trainer_service import Served, service

FALSE = "theorem t (p : Prop) : p := by"
TRUE = "theorem t (p : Prop) (h : p) : p := by"
DISPROOF = "intro h\nexact h False"


def asked(
    checker: Checker, core: LeanEnvironment, task: Kind, statement: str, answer: str = "", **more: str
) -> Report:
    given = {"header": "" if "context" in more else HEADER, "generation": f"```lean4\n{answer}\n```", **more}
    entry = Entry(
        path="",
        line=1,
        name="t",
        formal_statement=statement,
        predicted_proof=given.pop("predicted_proof", ""),
        task=Task(task=task),
        **given,
    )
    assurance = Assurance(axioms=("propext", "bad"))
    return checker.check(check_of(entry, Limits(wall_seconds=20.0), assurance), core)


def stated(checker: Checker, core: LeanEnvironment, statement: str, **more: str) -> Stated:
    report = asked(checker, core, Kind.STATEMENT, statement, **more)
    assert judge(report).outcome is Outcome.STATED, judge(report).detail
    assert report.audit
    assert report.audit.stated
    return report.audit.stated


@pytest.mark.parametrize("task", [Kind.DISPROVE, Kind.EITHER])
@pytest.mark.parametrize(
    ("statement", "answer", "more"),
    [
        (FALSE, DISPROOF, {}),
        (FALSE, "theorem wrong : ¬ ∀ p : Prop, p := by\n  intro h\n  exact h False", {}),
        (FALSE, "", {"predicted_proof": f"{HEADER}\ntheorem x : ¬ ∀ p : Prop, p := fun h => h False\n"}),
        (
            "theorem t (x : Nat) : All := by",
            "intro h\nexact h 0 False",
            {"context": f"{HEADER}\ndef All := ∀ p : Prop, p\n"},
        ),
        ("namespace A\nvariable (p : Prop)\ntheorem t : p := by", DISPROOF, {}),
        ("theorem t.{u} (α : Type u) (h : α → False) : False := by", "intro h\nexact h PEmpty nofun", {}),
    ],
)
def test_a_disproof_is_disproved_and_never_proved(
    checker: Checker, core: LeanEnvironment, task: Kind, statement: str, answer: str, more: dict[str, str]
) -> None:
    found = judge(asked(checker, core, task, statement, answer, **more))
    assert (found.outcome, found.reason) == (Outcome.DISPROVED, Reason.DISPROVED), found.detail


def test_either_takes_a_proof_too_and_disprove_does_not(checker: Checker, core: LeanEnvironment) -> None:
    either = judge(asked(checker, core, Kind.EITHER, TRUE, "exact h"))
    disprove = judge(asked(checker, core, Kind.DISPROVE, TRUE, "exact h"))
    assert (either.outcome, disprove.outcome) == (Outcome.PROVED, Outcome.REJECTED)
    assert "As a disproof" in judge(asked(checker, core, Kind.EITHER, TRUE, DISPROOF)).detail


#: Answers that prove no negation, and answers that seem to.
TRICKS = {
    "a true statement": (TRUE, DISPROOF),
    "sorry": (FALSE, "sorry"),
    "the admitted theorem": (FALSE, "intro h\nexact t False"),
    "the admitted theorem, without its hypothesis": (FALSE, "exact absurd t (fun h => h False)"),
    "the admitted theorem below a helper": (
        FALSE,
        "theorem helper : False := t False\ntheorem negation : ¬ type_of% @t := fun _ => helper",
    ),
    "another statement of that name": (
        FALSE,
        "theorem negation : ¬ (∀ p : Prop, p → p → False) := fun h => h True trivial trivial",
    ),
    "another theorem that is negated": (
        TRUE,
        "namespace B\ntheorem t (p : Prop) : p := sorry\n"
        "theorem negation : ¬ type_of% @t := fun h => h False\nend B",
    ),
    "type_of% of something else": (
        TRUE,
        "local macro_rules | `(type_of% $_) => `(False)\ntheorem negation : ¬ type_of% @t := fun h => h",
    ),
    "another negation": (
        TRUE,
        "def Not (p : Prop) : Prop := True\ntheorem negation : ¬ False := trivial",
    ),
    "a negation in a namespace": (
        TRUE,
        "namespace B\ndef Not (p : Prop) : Prop := True\n"
        "theorem negation : Not (∀ p : Prop, p → p) := trivial",
    ),
    "a notation for the negation": (
        TRUE,
        'local notation "¬" p => True\ntheorem negation : ¬ type_of% @t := trivial',
    ),
    "one universe of many": (
        "theorem t.{u} (α : Type u) (a b : α) : a = b := by",
        "theorem negation : ¬ ∀ (α : Type) (a b : α), a = b := fun h => Nat.noConfusion (h Nat 0 1)",
    ),
    "an axiom": (TRUE, "axiom ax : False\ntheorem negation : ¬ type_of% @t := fun _ => ax"),
    "unsafe": (TRUE, "unsafe def f : False := f\ntheorem negation : ¬ type_of% @t := fun _ => f"),
    "an early end": (TRUE, "#exit"),
}


@pytest.mark.parametrize(("statement", "answer"), TRICKS.values(), ids=TRICKS)
def test_no_trick_decides_a_statement(
    checker: Checker, core: LeanEnvironment, statement: str, answer: str
) -> None:
    for task in (Kind.DISPROVE, Kind.EITHER):
        assert judge(asked(checker, core, task, statement, answer)).outcome is Outcome.REJECTED


BAD = f"{HEADER}\naxiom bad : ∀ p : Prop, p\n"


def test_an_answer_that_proves_both_is_a_failure_of_the_farm(checker: Checker, core: LeanEnvironment) -> None:
    found = judge(asked(checker, core, Kind.EITHER, TRUE, "exact bad _", context=BAD))
    assert (found.outcome, found.reason) == (Outcome.JUDGE_ERROR, Reason.CONTRADICTION)
    assert not found.is_tried_again


PLAIN, NO = "theorem t : ∀ n : Nat, n = n := by", "class No : Prop where\n  no : False\n"
OF_W, W = (
    "exact fun _ => Bool.false_ne_true w.default.down",
    "variable [w : Inhabited (PLift (false = true))]\n",
)
FALSE_B = "namespace B\ntheorem t : False := sorry\nend B\n"

#: Contexts below which the text of a negation means something else, with statements and answers to it.
SCOPES = {
    "a closed instance": (W, PLAIN, OF_W),
    "an instance that the statement omits": (W, f"omit w in\n{PLAIN}", OF_W),
    "a variable that is included": ("variable (h : 0 = 1)\ninclude h\n", PLAIN, "cases h"),
    "one of the statement's own": ("", f"variable (h : 0 = 1)\ninclude h\n{PLAIN}", "cases h"),
    "an implicit one": ("variable {h : False}\ninclude h\n", PLAIN, "exact h.elim"),
    "two that contradict each other": (
        "variable (p : Prop) (h : p) (k : ¬ p)\ninclude k h\n",
        PLAIN,
        "exact (k h).elim",
    ),
    "one of a section": ("section A\nsection\nvariable (h : False)\ninclude h\n", PLAIN, "exact h.elim"),
    "one of a namespace": ("namespace A\nvariable (h : False)\ninclude h\n", PLAIN, "exact h.elim"),
    "a class without instances": (f"{NO}variable [No]\n", PLAIN, "exact No.no.elim"),
    "such a class with a name": (f"{NO}variable [e : No]\n", PLAIN, "exact e.no.elim"),
    "a variable with the statement's name": ("variable (t : False)\n", PLAIN, "exact t.elim"),
    "another type of": ("macro_rules | `(type_of% $_) => `(False)\n", PLAIN, "exact fun h => h"),
    "the statement denied twice": (
        "macro_rules | `(type_of% $_) => `(¬ ∀ n : Nat, n = n)\n",
        PLAIN,
        "exact fun h => h fun _ => rfl",
    ),
    "another negation": ("macro_rules | `(¬ $_) => `(True)\n", PLAIN, "exact trivial"),
    "an implication": ("macro_rules | `(¬ $p) => `($p → $p)\n", PLAIN, "exact fun h => h"),
    "a hypothesis of the negation": (
        "macro_rules | `(¬ $p) => `(∀ _ : False, Not $p)\n",
        PLAIN,
        "exact fun h => h.elim",
    ),
    "a negation of one's own": (
        "namespace A\ndef Not (_ : Prop) : Prop := True\nmacro_rules | `(¬ $p) => `(Not $p)\n",
        PLAIN,
        "exact trivial",
    ),
    "the same without a macro": ("namespace A\ndef Not (_ : Prop) : Prop := True\n", PLAIN, "exact trivial"),
    "another tactic": (
        "macro_rules | `(tactic| exact $_) => `(tactic| refine (sorry : False))\n",
        PLAIN,
        "refine fun h => h",
    ),
    "a theorem of an open namespace": (f"{FALSE_B}open B\n", PLAIN, "exact fun h => h"),
    "one under another name": (
        f"{FALSE_B.replace('t :', 'x :')}open B renaming x → t\n",
        PLAIN,
        "exact fun h => h",
    ),
    "one that is exported": (f"{FALSE_B}export B (t)\n", PLAIN, "exact fun h => h"),
    "one in a namespace around": (f"{FALSE_B.replace('B', 'A')}namespace A.C\n", PLAIN, "exact fun h => h"),
    "one universe of many": (
        "def P.{u} : Prop := ∀ (α : Type u) (a b : α), a = b\nmacro_rules | `(type_of% $_) => `(P.{0})\n",
        "theorem t.{u} : P.{u} := by",
        "intro h\nexact Nat.noConfusion (h Nat 0 1)",
    ),
    "two universes that are one": (
        "def P.{u, v} : Prop := ∀ (α : Type u) (β : Type v), α → β\nuniverse w\n"
        "macro_rules | `(type_of% $_) => `(P.{w, w})\n",
        "theorem t.{u, v} : P.{u, v} := by",
        "intro h\nexact nomatch h PUnit PEmpty PUnit.unit",
    ),
    "a theorem above": ("theorem t' : False := sorry\n", PLAIN, "exact fun h => h"),
}


@pytest.mark.parametrize(("above", "statement", "answer"), SCOPES.values(), ids=SCOPES)
def test_no_scope_gives_a_true_statement_a_disproof(
    checker: Checker, core: LeanEnvironment, above: str, statement: str, answer: str
) -> None:
    found = judge(asked(checker, core, Kind.DISPROVE, statement, answer, context=HEADER + "\n" + above))
    assert found.outcome in (Outcome.REJECTED, Outcome.JUDGE_ERROR), found.detail
    assert found.reason in (Reason.ERROR, Reason.BAD_CHALLENGE), found.detail


def test_a_scope_that_adds_to_a_negation_is_the_statements_fault(
    checker: Checker, core: LeanEnvironment
) -> None:
    context = f"{HEADER}\n{W}"
    for task in (Kind.DISPROVE, Kind.EITHER):
        found = judge(asked(checker, core, task, PLAIN, OF_W, context=context))
        assert (found.reason, "The negation of t cannot be stated" in found.detail) == ("bad_challenge", True)
    proof = judge(asked(checker, core, Kind.EITHER, PLAIN, "exact fun _ => rfl", context=context))
    assert proof.outcome is Outcome.PROVED, proof.detail
    facts = stated(checker, core, "theorem t : 8 + 1 = 9 := by", context=f"{context}include w\n")
    assert facts.negation_closed_by is None


def test_a_line_of_farm_negate_has_to_state_the_negation(checker: Checker, core: LeanEnvironment) -> None:
    for context, answer, outcome in ((W, OF_W, "judge_error"), ("variable (p : Prop)\n", DISPROOF, "proved")):
        line = negation_of("", PLAIN if answer is OF_W else "theorem t : p := by", f"{HEADER}\n{context}")
        assert line
        marked = Task.of({"negates": 1})
        entry = Entry(
            path="",
            line=1,
            name="t",
            header="",
            context=line.context,
            formal_statement=line.formal_statement,
            generation=f"```lean4\n{answer}\n```",
            predicted_proof="",
            task=marked,
        )
        check = check_of(entry, Limits(wall_seconds=20.0), Assurance())
        assert judge(checker.check(check, core)).outcome == outcome


#: False statements of which a disproof is found below ordinary scopes.
HONEST = {
    "an instance of a variable": (
        "variable {α : Type} [Inhabited α]\n",
        "theorem t : ∀ a b : α, a = b := by",
        "intro h\nexact Bool.noConfusion (h (α := Bool) true false)",
    ),
    "a name of an open namespace": (f"{FALSE_B}open B\n", FALSE, DISPROOF),
    "a part of a name": (
        "namespace B.A\ntheorem t : 1 = 1 := rfl\nend B.A\nopen B\n",
        "theorem A.t : 1 = 2 := by",
        "decide",
    ),
    "a name from the root": (
        "namespace A\ntheorem t : 1 = 1 := rfl\n",
        "theorem _root_.t : 1 = 2 := by",
        "decide",
    ),
    "the same name at the root": ("theorem t : 1 = 1 := rfl\nnamespace A\n", FALSE, DISPROOF),
    "a private theorem": ("", "private theorem t : 1 = 2 := by", "decide"),
    "the second of two parts": ("", "theorem a : 1 = 1 := by sorry\ntheorem t : 1 = 2 := by", "decide"),
    "a match": (
        "",
        "theorem t (n : Nat) : (match n with | 0 => True | _ => False) := by",
        "exact fun h => h 1",
    ),
    "the larger of two universes": (
        "universe u v\n",
        "theorem t (α : Type (max v u)) (a b : α) : a = b := by",
        "intro h\nexact Bool.noConfusion (congrArg ULift.down (h (ULift Bool) ⟨true⟩ ⟨false⟩))",
    ),
    "a sorry of the dataset": (
        "def s : Nat := sorry\n",
        "theorem t : s = 1 ∧ False := by",
        "exact fun h => h.2",
    ),
}


@pytest.mark.parametrize(("above", "statement", "answer"), HONEST.values(), ids=HONEST)
def test_an_honest_disproof_below_an_ordinary_scope_is_accepted(
    checker: Checker, core: LeanEnvironment, above: str, statement: str, answer: str
) -> None:
    found = judge(asked(checker, core, Kind.DISPROVE, statement, answer, context=HEADER + "\n" + above))
    assert found.outcome is Outcome.DISPROVED, found.detail


@pytest.mark.parametrize("statement", ["", "example : False := by"])
def test_what_names_no_theorem_cannot_be_disproved(
    checker: Checker, core: LeanEnvironment, statement: str
) -> None:
    with pytest.raises(NoTask):
        asked(checker, core, Kind.DISPROVE, statement, DISPROOF)


def test_a_statement_alone_is_stated_with_its_facts(checker: Checker, core: LeanEnvironment) -> None:
    context = f"{HEADER}\ndef All : Prop := ∀ p : Prop, p\naxiom c : Nat\ndef solution : Nat := sorry\n"
    found = stated(checker, core, "theorem t : c = solution → All := by", context=context)
    assert (found.axioms, found.sorries) == (("c",), ("solution",))
    assert found.constants == ("All", "c", "solution")
    assert (found.closed_by, found.negation_closed_by) == (None, None)
    assert {"rfl", "decide", "assumption"} <= {*found.tried}


def test_equal_statements_have_equal_digests_whatever_their_names(
    checker: Checker, core: LeanEnvironment
) -> None:
    def of(statement: str, **more: str) -> str:
        return stated(checker, core, statement, **more).type_sha256

    same = of("theorem t.{u} (α : Sort u) (a : α) : a = a := by")
    assert len(same) == 64
    assert same == of("theorem A.other.{v} {β : Sort v} (x : β) :\n  x = x :=")
    assert same == of("namespace B\ntheorem t.{w} : ∀ (α : Sort w) (a : α), a = a := by")
    assert same != of("theorem t (α : Type) (a : α) : a = a := by")
    one, two = (f"{HEADER}\ndef P : Prop := {value}\n" for value in ("True", "False"))
    assert of("theorem t : P := by", context=one) != of("theorem t : P := by", context=two)
    assert of("theorem t : P := by", context=one) == of("theorem t : P := by", context=f"{one}\ndef Q := P\n")


@pytest.mark.parametrize(
    ("statement", "closed", "refuted"),
    [
        (TRUE, "trivial", None),
        ("theorem t (a b : Nat) : a = b := by", None, None),
        (FALSE, None, None),
    ],
)
def test_a_statement_that_one_tactic_closes_says_so(
    checker: Checker, core: LeanEnvironment, statement: str, closed: str | None, refuted: str | None
) -> None:
    found = stated(checker, core, statement)
    assert (found.closed_by, found.negation_closed_by) == (closed, refuted)


#: Texts that are no statement, and those that seem to be one.
NO_STATEMENTS = {
    "it does not parse": ("theorem t : := by", Reason.ERROR),
    "it names nothing known": ("theorem t : Unknown := by", Reason.ERROR),
    "it ends early": ("#exit\ntheorem t : True := by", Reason.STOPPED_EARLY),
    "a definition": ("def t : Nat :=", Reason.AUDIT),
    "nothing": ("-- nothing", Reason.ERROR),
    "NUL": ("theorem t : \0 := by", Reason.INVALID_TEXT),
}


@pytest.mark.parametrize(("statement", "reason"), NO_STATEMENTS.values(), ids=NO_STATEMENTS)
def test_what_is_no_statement_is_rejected(
    checker: Checker, core: LeanEnvironment, statement: str, reason: Reason
) -> None:
    found = judge(asked(checker, core, Kind.STATEMENT, statement))
    assert (found.outcome, found.reason) == (Outcome.REJECTED, reason), found.detail


def test_no_statement_makes_a_tactic_close_more_than_the_kernel_accepts(
    checker: Checker, core: LeanEnvironment
) -> None:
    lies = "macro_rules | `(tactic| trivial) => `(tactic| sorry)\n"
    redefined = stated(checker, core, f"{lies}{FALSE}")
    several = stated(
        checker, core, "theorem a (p : Prop) : p := sorry\ntheorem t (p : Prop) (h : p) : p := by"
    )
    skipped = stated(checker, core, f"set_option debug.skipKernelTC true\n{FALSE}")
    assert (redefined.closed_by, skipped.closed_by) == (None, None)
    assert (several.closed_by, several.left_open) == ("trivial", ("a",))


@pytest.fixture(scope="module")
def served(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with service(farm, tmp_path_factory.mktemp("serve")) as found:
        yield found


Row = dict[str, object]
ROW: Row = {"header": HEADER, "formal_statement": FALSE}


def submitted(farm: Command, manifest: Path, rows: list[Row], *flags: str, status: int = 0) -> list[dict]:
    """Return the lines of a manifest after a submit."""
    manifest.write_text("".join(json.dumps(each) + "\n" for each in rows))
    said = farm("submit", manifest, "--wait", *flags)
    assert said.returncode == status, said.stderr
    return [json.loads(each) for each in manifest.read_text().splitlines()]


def verdicts(farm: Command, lines: list[dict]) -> Counter[str]:
    """Return how many lines of a run have each verdict now."""
    found = Counter[str]()
    for each in json.loads(farm("status", lines[0]["farm"]["run_id"], "--json").stdout)["verdicts"]:
        found[each["verdict"]] += each["lines"]
    return found


def test_lines_are_disproved_and_stated_and_a_report_lists_false_statements(
    farm: Command, tmp_path: Path
) -> None:
    rows: list[Row] = [
        {**ROW, "name": "false", "generation": DISPROOF},
        {**ROW, "name": "proof", "formal_statement": TRUE, "generation": "exact h", "task": "either"},
        {**ROW, "name": "either", "generation": DISPROOF, "task": "either"},
        {**ROW, "name": "plain", "generation": DISPROOF, "task": "prove"},
        {**ROW, "name": "alone", "formal_statement": TRUE, "task": "statement"},
        {**ROW, "name": "wrong", "formal_statement": "theorem t : Unknown := by", "task": "statement"},
    ]
    told = submitted(farm, tmp_path / "m.jsonl", rows, "--disprove")
    statuses = ["disproved", "completed", "disproved", "error", "stated", "error"]
    assert [each["proof_status"] for each in told] == statuses
    assert [each["farm"]["reason"] for each in told[:3]] == ["disproved", "ok", "disproved"]
    assert told[4]["farm"]["audit"]["stated"]["closed_by"] == "trivial"
    place = next(each["in"] for each in told[5]["farm"]["messages"] if each["severity"] == "error")
    assert (place["field"], place["line"]) == ("formal_statement", 1)
    assert verdicts(farm, told) == {"proved": 1, "disproved": 2, "stated": 1, "rejected": 2}
    report = farm.json("report")
    assert report["total"]["false_statements"] == ["false", "either"]
    assert "false, either" in farm("report").stdout
    assert farm("bundle", "--line", "1", "-o", tmp_path / "one").returncode == 2
    assert [
        each["proof_status"] for each in submitted(farm, tmp_path / "m.jsonl", told, "--disprove")
    ] == statuses


#: Rows with an impossible task, the flags of the run, and the field at fault.
IMPOSSIBLE: tuple[tuple[Row, tuple[str, ...], str], ...] = (
    ({**ROW, "generation": "", "task": "guess"}, (), "task"),
    (
        {**ROW, "generation": "", "formal_statement": "example : False := by"},
        ("--disprove",),
        "formal_statement",
    ),
    ({**ROW, "generation": "", "task": "either"}, ("--tier", "lean"), "task"),
    ({**ROW, "generation": "", "task": "disprove", "permit_sorry": True}, (), "permit_sorry"),
    ({**ROW, "task": "prove"}, ("--task", "statement"), "generation"),
)


def test_an_impossible_task_is_refused_with_its_line(farm: Command, tmp_path: Path) -> None:
    manifest = tmp_path / "m.jsonl"
    for row, flags, field in IMPOSSIBLE:
        manifest.write_text(json.dumps(row) + "\n")
        said = farm("submit", manifest, *flags)
        assert (said.returncode, f':1: field "{field}"' in said.stderr) == (2, True), said.stderr
    assert farm("submit", manifest, "--disprove", "--task", "either").returncode == 2


def test_what_is_proved_and_disproved_is_taken_back(farm: Command, tmp_path: Path) -> None:
    row: Row = {"context": BAD, "formal_statement": TRUE, "generation": "exact bad _"}
    plain = ("--axiom", "bad")
    first = submitted(farm, tmp_path / "a.jsonl", [{**row, "name": "a"}], *plain)
    alone = submitted(farm, tmp_path / "own.jsonl", [{**row, "generation": "exact h"}])
    other = submitted(farm, tmp_path / "b.jsonl", [{**row, "name": "b"}], *plain, "--disprove", status=3)
    third = submitted(farm, tmp_path / "c.jsonl", [{**row, "generation": "exact (bad _)"}], *plain, status=3)
    assert (first[0]["farm"]["reason"], alone[0]["farm"]["reason"]) == ("ok", "ok")
    assert [each[0]["farm"]["reason"] for each in (other, third)] == ["contradiction", "contradiction"]
    assert (verdicts(farm, first), verdicts(farm, alone)) == ({"judge_error": 1}, {"proved": 1})


U = "theorem u (n : Nat) : n + 0 = n := by"
NOT_U = "theorem x : ¬ ∀ n : Nat, n + 0 = n := by"
#: Lines that are proved and look like disproofs of U: their context, statement and answer.
LIKE_DISPROOFS: dict[str, tuple[str, str, str]] = {
    "the type of another term": (
        f"{U.removesuffix('by')}sorry\n",
        "theorem negation : ¬ type_of% @(sorry : 3 = 4) := by",
        "decide",
    ),
    "the negation of another statement": ("", "theorem negation : ¬ 3 = 4 := by", "decide"),
    "another right side": (
        "",
        "theorem u : ¬ ∀ n : Nat, n + 0 = 0 := by",
        "exact fun h => Nat.noConfusion (h 1)",
    ),
    "another left side": (
        "",
        "theorem u : ¬ ∀ n : Nat, n + 1 = n := by",
        "exact fun h => Nat.noConfusion (h 0)",
    ),
    "two negations": ("", "theorem x : ¬ ¬ ∀ n : Nat, n + 0 = n := by", "exact fun h => h fun _ => rfl"),
    "a hypothesis": ("", "theorem x (h : 0 = 1) : ¬ ∀ n : Nat, n + 0 = n := by", "cases h"),
    "a variable": ("variable (h : 0 = 1)\ninclude h\n", NOT_U, "cases h"),
    "a class": (f"{NO}variable [No]\n", NOT_U, "exact No.no.elim"),
    "an implication": ("", "theorem x : False → ¬ ∀ n : Nat, n + 0 = n := by", "exact fun h => h.elim"),
    "a part": ("", "theorem x : ¬ ∀ n : Nat, n + 0 = n ∧ n = 0 := by", "exact fun h => nomatch (h 1).2"),
    "a macro": (
        "macro_rules | `($a = $b) => `($a ≠ $b)\n",
        NOT_U,
        "exact fun h => h 0 rfl",
    ),
    "a notation": ("macro_rules | `(¬ $p) => `($p)\n", NOT_U, "exact fun _ => rfl"),
    "an instance": (
        "instance (priority := high) : HAdd Nat Nat Nat := ⟨fun _ _ => 1⟩\n",
        NOT_U,
        "exact fun h => Nat.noConfusion (h 0)",
    ),
    "an equality of its own": (
        "namespace A\ndef Eq {α : Sort u} (a b : α) : Prop := False\n"
        "macro_rules | `($a = $b) => `(Eq $a $b)\n",
        NOT_U,
        "exact fun h => h 0",
    ),
    "a negation of its own": (
        "namespace A\ndef Not (_ : Prop) : Prop := True\n",
        "theorem x : Not (∀ n : Nat, n + 0 = n) := by",
        "exact trivial",
    ),
    "numbers of its own": (
        "namespace A\ninductive Nat | zero | succ (n : Nat)\ndef plus (a _ : Nat) : Nat := .succ a\n"
        "instance : HAdd Nat Nat Nat := ⟨plus⟩\n",
        "theorem x : ¬ ∀ n : Nat, n + .zero = n := by",
        "exact fun h => nomatch h .zero",
    ),
    "a definition of the same name": ("def u : Prop := False\n", "theorem x : ¬ u := by", "exact fun h => h"),
    "an axiom": ("axiom bad : False\n", NOT_U, "exact bad.elim"),
    "an axiom with the name of Lean's": (
        "namespace A\naxiom propext : False\n",
        NOT_U,
        "exact A.propext.elim",
    ),
    "a sorry of the dataset": ("theorem s : False := sorry\n", NOT_U, "exact s.elim"),
}
ALLOWED = ("propext", "bad", "A.propext")


class Keyed(Client):
    """The client of a key of its own."""

    def __init__(self, served: Served, name: str) -> None:
        self._at = served.options["url"]
        self._bearer = served.farm("keys", "add", name).stdout.split()[-1]
        super().__init__(self._at, token=self._bearer, deadline=120 * PATIENCE)

    def item(self, found: Result) -> dict[str, Any]:
        """Return what the service says of an item now."""
        headers = {"Authorization": f"Bearer {self._bearer}"}
        told: dict[str, Any] = httpx.get(
            f"{self._at}/v1/items/{found.id}", headers=headers, timeout=60
        ).json()
        return told


def test_no_line_changes_the_verdict_of_another_keys_line(
    served: Served, farm: Command, tmp_path: Path
) -> None:
    """Try each way in: items, manifests, sessions, drop-ins and search."""
    rows: list[Row] = [
        {
            "context": f"{HEADER}\n{above}",
            "formal_statement": statement,
            "generation": f"```lean4\n{answer}\n```",
        }
        for above, statement, answer in LIKE_DISPROOFS.values()
    ]
    bogus = {name: rows[0][name] for name in ("context", "formal_statement")}
    with Keyed(served, "bob") as bob, Keyed(served, "alice") as alice:
        mine = bob.check({"header": HEADER, "formal_statement": U, "proof": "rfl"}, accept=("forgeable",))
        hers = alice.check_all(rows, axioms=ALLOWED, accept=("forgeable", "sorry"))
        submitted(
            farm,
            tmp_path / "m.jsonl",
            [dict(each) for each in rows],
            "--axiom",
            "bad",
            "--axiom",
            "A.propext",
        )
        with alice.session(bogus) as session:
            step = session.step(session.root, ["decide"])[0]
            by_steps = session.prove(step.state or "")
        program = f"{bogus['context']}{bogus['formal_statement']} decide\n"
        body = {"codes": [{"custom_id": "1", "code": program, **bogus}]}
        headers = {"Authorization": f"Bearer {served.options['token']}"}
        dropped = httpx.post(
            f"{served.options['url']}/verify", json=body, headers=headers, timeout=120 * PATIENCE
        )
        negations = tmp_path / "search.jsonl"
        negations.write_text(json.dumps({**bogus, "name": "t"}) + "\n")
        searched = farm("search", negations, "-o", tmp_path / "found.jsonl", "--expansions", 32)
        now = bob.item(mine)
    assert [name for name, each in zip(LIKE_DISPROOFS, hers, strict=True) if not each.proved] == []
    assert (by_steps.verdict, dropped.status_code, searched.returncode) == ("proved", 200, 0), searched.stderr
    assert "proved" in (tmp_path / "found.jsonl").read_text()
    assert (now["verdict"], now["reward"], now["contested"]) == ("proved", 1.0, False)
    assert not any(each.contested for each in hers)


OWN = "theorem t (p q : Prop) (h : p) (_ : q) : p := by"
#: Statements that contradict it below an inconsistent context, in other words and under other names.
CONTRARY = (
    "theorem x : ¬ ∀ p q : Prop, p → q → p := by",
    "theorem x (h : ∀ q p : Prop, q → p → q) : False := by",
    "theorem x : (∀ p q : Prop, p → q → p) → False := by",
    "theorem x : ¬ ¬ ¬ ∀ p q : Prop, p → q → p := by",
)


def test_a_contradiction_by_another_key_marks_both_and_tells_neither_of_the_other(served: Served) -> None:
    accept, own = ("forgeable",), {"axioms": ("bad",)}
    with Keyed(served, "carol") as carol, Keyed(served, "dave") as dave:
        proof = carol.check(
            {"context": BAD, "formal_statement": OWN, "proof": "exact bad _"}, accept=accept, **own
        )
        items = [{"context": BAD, "formal_statement": each, "proof": "exact bad _"} for each in CONTRARY]
        items += [{"context": BAD, "formal_statement": OWN, "proof": "exact bad _", "task": "disprove"}]
        found = dave.check_all(items, accept=accept, **own)
        now = carol.item(proof)
        again = dave.check(
            {"context": BAD, "formal_statement": OWN, "proof": "exact bad _"}, accept=accept, **own
        )
    assert (proof.verdict, proof.reward, proof.contested) == ("proved", 1.0, False)
    assert (now["verdict"], now["reward"], now["contested"]) == ("proved", 1.0, True)
    assert now["detail"] == proof.detail
    assert [(each.reward, each.contested) for each in found] == [(1.0, True)] * len(items)
    assert not any((proof.id or "?") in json.dumps(asdict(each)) for each in found)
    # The text is carol's too: its check is hers, and nothing says so.
    assert again.provenance
    assert (again.provenance.shared, again.provenance.trace_id, again.contested) == (False, None, True)


def test_items_are_disproved_and_stated_over_http(served: Served) -> None:
    item = {**ROW, "generation": DISPROOF, "name": "t"}
    accept = ("forgeable",)
    with Client(served.options["url"], token=served.options["token"], deadline=120 * PATIENCE) as client:
        disproof = client.check({**item, "task": "disprove"}, accept=accept)
        either = client.check({**item, "task": "either"}, accept=accept)
        accepted = client.check({**item, "task": "either"}, accept=(*accept, "disproof"))
        proof = client.check(item, accept=accept)
        trick = client.check(
            {**item, "task": "disprove", "generation": "intro h\nexact t False"}, accept=accept
        )
        alone = client.check({**ROW}, task="statement")
        with client.session({**ROW, "task": "disprove"}) as session:
            step = session.step(session.root, ["exact fun h => h False"])[0]
            by_steps = session.prove(step.state or "")
        with pytest.raises(Invalid, match="exactly one of program"):
            client.check({**ROW})
        with pytest.raises(Invalid, match="names no theorem"):
            client.check({**item, "formal_statement": "example : False := by", "task": "disprove"})
    assert (disproof.verdict, disproof.disproved, disproof.reward, disproof.weaker) == (
        "disproved",
        True,
        1.0,
        (),
    )
    assert (either.verdict, either.reward, either.weaker) == ("disproved", 0.0, ("disproof",))
    assert (accepted.reward, by_steps.verdict) == (1.0, "disproved")
    assert (proof.verdict, trick.verdict, trick.reason) == ("rejected", "rejected", "has_sorry")
    assert (alone.verdict, alone.reward) == ("stated", None)
    assert alone.stated
    assert len(alone.stated.type_sha256) == 64


def test_the_documented_disproof_prints_what_the_page_says(farm: Command, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "use" / "tasks.md").read_text()
    script = tmp_path / "example.py"
    script.write_text(page.partition("## Disproofs")[2].partition("```python\n")[2].partition("```")[0])
    environment = {**farm.environment, "PYTHONPATH": CODE}
    said = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert (said.stdout, said.returncode) == ("disproved\nrejected\nstated None\n", 0), said.stderr
