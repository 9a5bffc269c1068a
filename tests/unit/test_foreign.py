"""Statements of Isabelle and Lean 3 are recognized, and no statement of Lean 4 is taken for one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from farm.assembly.faults import StatementFault
from farm.assembly.foreign import foreign
from farm.kinds import Kind
from farm.systems.known import system
from tests.counted import assert_linear

ISABELLE = {
    "a theory": 'theory t\n  imports Complex_Main\nbegin\n\ntheorem t: shows "1 = 1"\n  sorry\n\nend\n',
    "a theory with a comment before": "theory t imports\n  HOL.Real begin end",
    "a comment before": "(*\n  Authors: theorem t := by\n*)\n\n(* more *) theory t imports Main begin end",
    "a theorem alone": 'theorem t:\n  fixes x::real\n  assumes h0: "x = 1"\n  shows "x = 1"\n  sorry',
    "a lemma in a locale": 'lemma (in group) inv: assumes "a \\<in> G" shows "a = a"',
    "what it shows has a name": 'theorem t: fixes x::nat shows goal: "x = x"',
    "no name at all": 'lemma fixes x::nat shows "x = x"',
    "a fence": '```isabelle\nlemma "x = x"\n```',
}
LEAN3 = {
    "an import of mathlib": "import data.real.basic\n",
    "several imports": "import tactic\nimport analysis.special_functions.log\n\nopen real\n",
    "the import of miniF2F": "import minif2f_import\n\nopen_locale big_operators\n",
    "a locale": "open_locale nat\ntheorem t : 1 = 1 := sorry",
    "a proof": "theorem t (x : ℝ) : x = x :=\nbegin\n  sorry\nend\n",
    "a fence": "```lean3\ntheorem t : true\n```",
}
LEAN4 = {
    "a comment": "-- open_locale\n/- theory t imports a begin end -/ theorem t : True := by",
    "a doc comment": "/--\nopen_locale nat\nimport data.real.basic\nbegin\nend\n-/\ntheorem t : True :=",
    "a string": 'theorem t : "fixes x shows \\"y\\"" = "theory t imports a begin" := by',
    "a type that is no type": 'theorem shows : "a" = "a" := by',
    "names": "theorem theory imports : imports = theory := by",
    "binders": "theorem fixes (assumes shows : ℕ) : shows = assumes := by",
    "a bare binder": "theorem t shows : shows = shows := by",
    "a name for a proof": "theorem t : True := begin",
    "a section that ends": "section\ndef begin := trivial\ntheorem t : True := begin\nend",
    "a namespace that ends": "namespace A\ntheorem t : True := begin\nend A",
    "modules of a project": "import Mathlib\nimport data.mine\n",
    "a module with a small letter": "import mine.data\n",
    "an argument": "theorem t (open_locale : ℕ)\n  (h : open_locale = 1) : open_locale = 1 := by",
    "nothing": "",
}


@pytest.mark.parametrize("case", ISABELLE)
def test_isabelle_is_recognized(case: str) -> None:
    found = foreign(ISABELLE[case])
    assert found is not None
    assert found.system == "Isabelle"
    assert "docs/develop/isabelle.md" in found.remedy


@pytest.mark.parametrize("case", LEAN3)
def test_lean_3_is_recognized(case: str) -> None:
    found = foreign(LEAN3[case])
    assert found is not None
    assert found.system == "Lean 3"
    assert "Lean 4 port" in found.remedy


@pytest.mark.parametrize("case", LEAN4)
def test_lean_4_is_not_taken_for_another_system(case: str) -> None:
    assert foreign(LEAN4[case]) is None


@pytest.mark.parametrize(
    ("header", "statement", "field"),
    [
        ("", ISABELLE["a theorem alone"], "formal_statement"),
        ("", LEAN3["a proof"], "formal_statement"),
        (LEAN3["several imports"], "theorem t : true :=", "header"),
    ],
)
def test_the_fault_names_the_field(header: str, statement: str, field: str) -> None:
    with pytest.raises(StatementFault) as caught:
        system(Kind.LEAN).challenge(header, "", statement)
    assert caught.value.field == field


def test_a_long_text_is_read_in_linear_time() -> None:
    text = "theorem t : " + 'shows open_locale begin "x" ' * 20_000 + " := by"
    assert foreign(text) is None


def test_comments_of_isabelle_take_work_that_grows_with_the_text() -> None:
    def reading(size: int) -> Callable[[], object]:
        return partial(foreign, "(**)" * (size // 4) + "begin")

    assert_linear(reading, 8000, timed=2_000_000)
