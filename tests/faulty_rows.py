"""Faulty rows of a dataset, and answers of many shapes: what tests of blame share."""

from __future__ import annotations

from collections.abc import Mapping

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
