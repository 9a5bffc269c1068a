"""Faulty rows of a dataset: no answer to them is rejected, with and without an option that stops Lean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from farm_workers.checking.asked import check_of
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, Verdict, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.task import AnswerForm, Task
from tests.commands import HEADER

SOUND = "theorem t (p q : Prop) (h : p ∧ q) : q ∧ p := by"
OPEN = "abbrev solution : Nat := sorry\ntheorem t : 4 ≤ solution := by"
#: The fields of rows that no answer can prove, and of one that answers can prove.
FAULTY: Mapping[str, Mapping[str, object]] = {
    "unknown identifier": {"formal_statement": "theorem t : nonsense := by"},
    "unknown identifier in a binder": {"formal_statement": "theorem t (h : nonsense 1) : True := by"},
    "not a proposition": {"formal_statement": "theorem t : Nat := by"},
    "not a proposition, for a term": {"formal_statement": "theorem t : Nat :="},
    "no type": {"formal_statement": "theorem t := by"},
    "wrong type": {"formal_statement": "theorem t (a : Type) : a = Type := by"},
    "no instance": {"formal_statement": "theorem t (α : Type) (a b : α) : a + b = b + a := by"},
    "undetermined type": {"formal_statement": "theorem t : ∃ x, x = x := by"},
    "undeclared universe": {"formal_statement": "theorem t.{u} (α : Type w) (a : α) : a = a := by"},
    "syntax error": {"formal_statement": "theorem t (p : Prop) p → p := by"},
    "missing operand": {"formal_statement": "theorem t : 1 = := by"},
    "open bracket": {"formal_statement": "theorem t (p : Prop) : (p → p := by"},
    "open comment": {"formal_statement": "theorem t : True /- := by"},
    "open string": {"formal_statement": 'theorem t : "a = "a" := by'},
    "failing default": {"formal_statement": "theorem t (n : Nat := Nowhere.zero) : True := by"},
    "unknown tactic of a binder": {"formal_statement": "theorem t (h : True := by nonsense) : True := by"},
    "unknown attribute": {"formal_statement": f"@[nonsense]\n{SOUND}"},
    "name of the library": {"formal_statement": "theorem And.intro (p : Prop) (h : p) : p := by"},
    "name of its own part": {"formal_statement": f"theorem t : True := True.intro\n{SOUND}"},
    "faulty part above": {"formal_statement": f"theorem a : nonsense := sorry\n{SOUND}"},
    "faulty definition above": {"formal_statement": f"def a : Nat := nonsense\n{SOUND}"},
    "no declaration": {"formal_statement": "nonsense"},
    "definition": {"formal_statement": "def t : Nat :="},
    "unknown option": {"header": f"{HEADER}set_option nonsense true\n"},
    "unknown namespace": {"header": f"{HEADER}open Nonsense\n"},
    "syntax error of the header": {"header": f"{HEADER}variable (p :\n"},
    "missing module": {"header": f"{HEADER.rstrip()}\nimport Nowhere\n"},
    "faulty context": {"header": "", "context": f"{HEADER}theorem a : 1 = 2 := rfl\n\n"},
    "open comment of the context": {"header": "", "context": f"{HEADER}section\n/- \n"},
    "faulty expected answer": {"formal_statement": OPEN, "task": Task(expected_answer={"": "nonsense"})},
    "expected answer with a sorry": {"formal_statement": OPEN, "task": Task(expected_answer={"": "sorry"})},
    "expected answer that nothing asks for": {"task": Task(expected_answer={"": "5"})},
    "expected answer by another name": {
        "formal_statement": OPEN,
        "task": Task(expected_answer={"other": "5"}, answer_must=AnswerForm(form="numeral")),
    },
    "no negation": {
        "formal_statement": 'notation "¬" p => Not (Not p)\ntheorem t (p : Prop) : p := by',
        "task": Task(task="disprove"),
    },
}
SLOW = "Nat.rec (motive := fun _ => Nat) 0 (fun _ x => Nat.add x 1) (400 + {n}) = 400 + {n} := by decide"


def answers(statement: str) -> dict[str, str]:
    """Return answers of many shapes, most of them wrong."""
    whole = f"{statement}\n  exact ⟨h.2, h.1⟩"
    code = {
        "right": "exact ⟨h.2, h.1⟩",
        "wrong": "exact h",
        "unknown tactic": "nlinarith [foo]",
        "syntax error": "exact ⟨h.2, h.1\n",
        "sorry": "sorry",
        "faulty lemma above": f"theorem no : False := nothing\n{whole}",
        "definition above": f"def nonsense : Prop := True\n{statement}\n  exact True.intro",
        "another theorem": "theorem u : True := True.intro",
        "text that Lean cannot read": "exact h\0",
    }
    more = {
        "wrong step first": "have e : q := by exact h.1\n"
        + "\n".join(f"have k{n} : {SLOW.format(n=n)}" for n in range(3)),
        "empty": "",
        "term": "⟨h.2, h.1⟩",
        "term of another theorem": "True.intro",
        "brackets that close too much": ") := by\n  exact\n",
        "whole theorem": whole,
        "whole program": f"{HEADER}{whole}",
        "wrong whole theorem": f"{statement}\n  exact h",
        "the sound theorem": f"{SOUND}\n  exact ⟨h.2, h.1⟩",
        "import": f"import Nowhere\n{whole}",
        "whole theorem with a sorry": f"{statement}\n  sorry",
        "axiom": f"axiom c : False\n{statement}\n  exact c.elim",
        "exit": "#exit",
        "Lean 3": "begin\n  exact h,\nend",
        "heartbeats": "set_option maxHeartbeats 1 in\nsimp",
    }
    fenced = {name: f"So:\n```lean4\n{text}\n```" for name, text in {**code, **more}.items()}
    return {**fenced, "prose": "I cannot prove it.", "bare": "exact h", "nothing": ""}


#: The answers of the run of everything; the others are those of the nightly run.
FEW = ("right", "wrong", "unknown tactic", "syntax error", "sorry", "faulty lemma above", "definition above")
FEW_OTHERS = ("another theorem", "text that Lean cannot read", "empty", "nothing")
ALL = tuple(answers(""))
HALVES = [(*FEW, *FEW_OTHERS), pytest.param(ALL, marks=pytest.mark.long)]
SHAPES = pytest.mark.parametrize("shapes", HALVES, ids=["few", "all"])


def check(fields: Mapping[str, object], generation: str) -> Check:
    row = {"formal_statement": SOUND, "header": HEADER, **fields}
    entry = Entry(path="", line=1, name="t", generation=generation, predicted_proof="", **row)  # type: ignore[arg-type]
    return check_of(entry, Limits(wall_seconds=20.0), Assurance(tier=Tier.KERNEL))


def both(checker: Checker, core: LeanEnvironment, asked: Check) -> tuple[Verdict, Verdict]:
    """Return the verdict on a check to its end, and on one that is stopped at an error."""
    stopped = replace(asked, stop_at_error=True)
    return judge(checker.check(asked, core)), judge(checker.check(stopped, core))


@SHAPES
@pytest.mark.parametrize("row", FAULTY)
def test_every_answer_to_a_faulty_row_is_the_row_s_fault(
    checker: Checker, core: LeanEnvironment, row: str, shapes: tuple[str, ...]
) -> None:
    fields = FAULTY[row]
    texts = answers(str(fields.get("formal_statement", SOUND)))
    found = {name: both(checker, core, check(fields, texts[name])) for name in shapes}
    others = {
        name: [(each.reason, each.detail) for each in pair]
        for name, pair in found.items()
        if {each.reason for each in pair} != {Reason.BAD_CHALLENGE}
    }
    assert others == {}


@SHAPES
@pytest.mark.parametrize("task", [Task(), Task(task="either"), Task(task="disprove")], ids=str)
def test_no_answer_to_a_sound_row_has_another_outcome_when_it_is_stopped(
    checker: Checker, core: LeanEnvironment, task: Task, shapes: tuple[str, ...]
) -> None:
    texts = answers(SOUND)
    for name in shapes:
        whole, stopped = both(checker, core, check({"task": task}, texts[name]))
        assert whole.outcome is not Outcome.JUDGE_ERROR, (name, whole)
        assert (name, stopped.outcome) == (name, whole.outcome)


def test_every_answer_to_a_row_that_forbids_nothing_known_is_the_row_s_fault(
    checker: Checker, core: LeanEnvironment
) -> None:
    texts = answers(SOUND)
    for name in ("right", "wrong", "syntax error", "sorry", "nothing"):
        found = both(checker, core, check({"task": Task(forbid=("nonsense",))}, texts[name]))
        assert [(name, each.reason) for each in found] == [(name, Reason.BAD_CHALLENGE)] * 2


PARTS = "theorem a : 1 = 1 := by sorry\ntheorem b : 2 = 2 := by"
LAST = "theorem b : 2 = 2 := by\n  exact rfl"


@pytest.mark.parametrize("permitted", ["a", "*"])
@pytest.mark.parametrize(
    ("first", "outcome"),
    [
        ("theorem a : 1 = 1 := by exact nonsense", Outcome.REJECTED),
        ("theorem a : 1 = nonsense := by exact rfl", Outcome.REJECTED),
        ("theorem a : 1 = 1 := by exact (rfl", Outcome.REJECTED),
        ("theorem l : 1 = 1 := by exact nonsense", Outcome.REJECTED),
        ("theorem a : 1 = 1 := by sorry", Outcome.PARTIAL),
        ("import Nowhere\ntheorem a : 1 = 1 := by sorry", Outcome.PARTIAL),
        ("", Outcome.PARTIAL),
        ("theorem a : 1 = 1 := by exact rfl", Outcome.PROVED),
    ],
)
def test_a_part_whose_proof_fails_is_no_permitted_sorry(
    checker: Checker, core: LeanEnvironment, permitted: str, first: str, outcome: Outcome
) -> None:
    fields = {"formal_statement": PARTS, "task": Task(permit_sorry=(permitted,))}
    asked = check(fields, f"```lean4\n{first}\n{LAST}\n```")
    assert [each.outcome for each in both(checker, core, asked)] == [outcome] * 2
