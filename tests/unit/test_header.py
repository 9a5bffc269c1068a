"""Where a program's header ends, what programs share, and which of them need a process of their own."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.header import brings_code, header_end, prefix_end


@pytest.mark.parametrize(
    ("header", "rest"),
    [
        ("", ""),
        ("", "theorem t : True := trivial"),
        ("import Mathlib", "\ntheorem t : True := trivial"),
        ("import Mathlib.Data.Nat.Basic", "\n\nopen Nat"),
        ("import A import B\nimport C.D", " theorem"),
        ("prelude\nimport Core", "\n"),
        ("prelude", "\naxiom a : Prop"),
        ("module", "\ndef x := 1"),
        (
            "module\n\nprelude\npublic import A\nmeta import B\npublic meta import C\nimport all D",
            "\n#check A",
        ),
        ("/- a /- nested -/ import X -/ -- import Y\nimport\n  Z", " -- behind\ntheorem t"),
        ("import A\r\nimport B", "\r\ntheorem t"),
        ("import «A-B».«import»", "\ntheorem t"),
        ("import A", "\n/-- import B -/ theorem t"),
        ("import A", "\n/-! text -/\nimport B"),
        ("import A", "; import B"),
        ("import A", "\npublic theorem t"),
        ("", "/-- doc -/ import A"),
        ("", "import"),
        ("", "public import"),
        ("", "theorem t : x := y\nimport A"),
        ("  \n\timport A", "\t\n"),
        ("import module", "\nprelude"),
    ],
)
def test_the_header_ends_after_the_last_import(header: str, rest: str) -> None:
    assert header_end(header + rest) == len(header)


@given(st.text("import Ab.«» prelude\n-/!\r all"))
def test_any_text_has_a_header_that_ends_inside_it(text: str) -> None:
    assert 0 <= header_end(text) <= prefix_end(text, header_end(text)) <= len(text)


@pytest.mark.parametrize(
    ("prefix", "rest"),
    [
        ("import A\n", "theorem t"),
        ("import A\nopen B C\nset_option maxHeartbeats 0\n", "theorem t"),
        ("import A\r\nopen B\r\n", "theorem t"),
        ("import A\n\n-- first\n\nopen B\n", "\n-- last\ntheorem t"),
        ("import A\n", "open B in\ntheorem t"),
        ("import A\n", "set_option x true in theorem t"),
        ("import A\nopen B\n", "variable (h : False)\nopen C\n"),
        ("import A\n", "open B -- and /- more\n"),
        ("import A", " open B\n"),
        ("import A", ""),
        ("\n", "theorem t"),
        ("\nopen B\n", "theorem t"),
    ],
)
def test_what_programs_share_ends_after_the_lines_that_set_the_scene(prefix: str, rest: str) -> None:
    program = prefix + rest
    assert prefix_end(program, header_end(program)) == len(prefix)


HARMLESS = [
    "theorem t : True := by simp",
    "@[simp] theorem t : True := trivial",
    "@[simp, local ext] lemma l : x = y := rfl",
    "attribute [local simp] foo in\ntheorem t : True := trivial",
    "attribute [-simp] foo",
    "@[simps! (config := {})] def d := 1",
    "@[to_additive (attr := simp, norm_cast) add_foo] theorem foo : p := q",
    "theorem elaborate (x : eval p) : init x = syntaxes := rfl",
    'notation a " ⊕\' " b => add a b',
    "example : 2 + 2 = 4 := by native_decide",
    "#print axioms t",
]
CODE = [
    "#eval IO.println 1",
    "# eval 1",
    "run_cmd logInfo",
    "theorem t : True := by run_tac pure ()",
    "run_meta pure ()",
    "run_elab pure ()",
    "example : True := by_elab x",
    'elab "x" : tactic => pure ()',
    "elab_rules : tactic | `(tactic| x) => pure ()",
    'macro "x" : tactic => `(tactic| trivial)',
    "macro_rules | `(x) => `(y)",
    'syntax "x" : tactic',
    "declare_syntax_cat x",
    "initialize IO.println 1",
    "builtin_initialize x",
    "unsafe def f := 1",
    "@[implemented_by f] def g := 1",
    '@[extern "f"] def g := 1',
    "@[simp, tactic x] def g := 1",
    "@[to_additive (attr := tactic x)] def g := 1",
    "@[to_additive (attr := simp, (attr := init))] def g := 1",
    "@[command_elab x] def f : CommandElab := g",
    "@[norm_num] def f := 1",
    "@[aesop unsafe 10% tactic] def f := 1",
    "attribute [tactic x] f",
    "attribute /- -/ [tactic x] f",
    "attribute\n[init] f",
    "simproc f (x) := g",
    'def s := include_str "/etc/passwd"',
    "@[simp, «tactic» x] def f := 1",
    "@[" + "simp, " * 1000 + "simp] def f := 1",
    "@[simp",
    "register_simp_attr x",
]


@pytest.mark.parametrize("program", HARMLESS)
def test_a_program_without_code_of_its_own_may_share_a_process(program: str) -> None:
    assert not brings_code("import A\n" + program)


@pytest.mark.parametrize("program", CODE)
def test_a_program_that_brings_code_may_not(program: str) -> None:
    assert brings_code("import A\n" + program)


@pytest.mark.parametrize(
    "piece", ["@[", "@[simp", "@[simp]", "attribute ", "attribute [", "import A ", "/-", "open A\n"]
)
def test_hostile_texts_take_linear_time(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        started = time.process_time()
        brings_code(text)
        prefix_end(text, header_end(text))
        return time.process_time() - started

    seconds(100_000)
    small = max(min(seconds(200_000) for _ in range(3)), 0.002)
    assert min(seconds(1_600_000) for _ in range(3)) < 24 * small
