"""What the policy finds in a text: what no proof needs, and what honest provers write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import UsageError
from farm.judging.assurance import Assurance
from farm.judging.tiers import Tier
from farm.lean_text.policy.rules import RULES, Action
from farm.lean_text.policy.screen import LONGEST_READ, MOST_HITS, Policy, Screen, refusing

#: As the tier carries it out that has no more than Lean's word.
POLICY = Assurance(tier=Tier.LEAN).rules


def hits(text: str) -> list[tuple[str, str]]:
    return [(hit.rule, hit.text) for hit in POLICY.hits(text)]


def rejected(text: str) -> list[tuple[str, str]]:
    return [(hit.rule, hit.text) for hit in POLICY.hits(text) if hit.action is Action.REJECT]


@pytest.mark.parametrize(
    ("text", "rule", "at"),
    [
        ("axiom wrong : False", "axiom", "axiom"),
        ("private axiom wrong : False", "axiom", "axiom"),
        ("@[simp] axiom wrong : False", "axiom", "axiom"),
        ("theorem a : True := trivial;axiom wrong : False", "axiom", "axiom"),
        ("opaque secret : Nat", "opaque", "opaque"),
        ("unsafe def f : Nat := 0", "unsafe", "unsafe"),
        ("example : Nat := unsafe f", "unsafe", "unsafe"),
        ('run_cmd logInfo m!"hi"', "run", "run_cmd"),
        ("example : True := by run_tac pure ()", "run", "run_tac"),
        ("run_elab x", "run", "run_elab"),
        ("run_meta x", "run", "run_meta"),
        ("#eval 1", "run", "eval"),
        ("#eval! 1", "run", "eval!"),
        ("def x := eval% 1", "run", "eval"),
        ("def x : Nat := by_elab pure", "run", "by_elab"),
        ("#exit", "stop", "exit"),
        ("#guard_msgs in theorem a : False := sorry", "messages", "guard_msgs"),
        ("initialize x : Nat ← pure 0", "initialize", "initialize"),
        ("builtin_initialize x : Nat ← pure 0", "initialize", "builtin_initialize"),
        ("register_simp_attr mine", "initialize", "register_simp_attr"),
        ("declare_config_elab f G", "initialize", "declare_config_elab"),
        ("@[init] def x := 0", "initialize", "init"),
        ('elab "t" : tactic => pure ()', "metaprogram", "elab"),
        ("elab_rules : tactic | _ => pure ()", "metaprogram", "elab_rules"),
        ('macro "t" : tactic => `(tactic| skip)', "metaprogram", "macro"),
        ("macro_rules | `(x) => `(y)", "metaprogram", "macro_rules"),
        ('syntax "t" : tactic', "metaprogram", "syntax"),
        ("declare_syntax_cat c", "metaprogram", "declare_syntax_cat"),
        ("simproc f (x) := fun _ => pure .continue", "metaprogram", "simproc"),
        ("meta def f := 0", "metaprogram", "meta"),
        ("meta partial def f := 0", "metaprogram", "meta"),
        ("open Lean", "metaprogram", "open"),
        ("open Nat Lean.Elab in", "metaprogram", "open"),
        ("open _root_.Lean", "metaprogram", "open"),
        ("open «Lean»", "metaprogram", "open"),
        ("open scoped Lean", "metaprogram", "open"),
        ("namespace Lean.Elab", "metaprogram", "namespace"),
        ("@[term_elab x] def f := 0", "metaprogram", "term_elab"),
        ("@[simp, app_unexpander Nat] def f := 0", "metaprogram", "app_unexpander"),
        ("@[local macro x] def f := 0", "metaprogram", "macro"),
        ("attribute [macro x] f", "metaprogram", "macro"),
        ("attribute [local tactic x] f", "metaprogram", "tactic"),
        ("@[implemented_by f] def g := 0", "replaced_code", "implemented_by"),
        ('@[simp,extern "f"] def g := 0', "replaced_code", "extern"),
        ("@[to_additive (attr := csimp)] theorem g : True := trivial", "replaced_code", "csimp"),
        ("@[export lean_f] def g := 0", "replaced_code", "export"),
        ('@[«extern» "f"] def g := 0', "replaced_code", "«extern»"),
        ("set_option debug.skipKernelTC true", "option", "set_option"),
        ("set_option debug.skipKernelTC true in", "option", "set_option"),
        ("set_option «debug».skipKernelTC true", "option", "set_option"),
        ("set_option /- -/ debug.byAsSorry true", "option", "set_option"),
        ("set_option warn.sorry false", "option", "set_option"),
        ("set_option weak.debug.skipKernelTC true", "option", "set_option"),
        ("set_option compiler.extract_closed false", "option", "set_option"),
        ("set_option interpreter.prefer_native true", "option", "set_option"),
        ("set_option trace.Meta true", "option", "set_option"),
        ("theorem a : True := trivial\nimport Evil", "imports", "import"),
        ("theorem a : True := trivial\nprelude", "imports", "prelude"),
        ("example : False := sorryAx _", "trusted_name", "sorryAx"),
        ("example : False := _root_.sorryAx _ false", "trusted_name", "_root_.sorryAx"),
        ("example : False := «sorryAx» _", "trusted_name", "«sorryAx»"),
        ("example := Lean.ofReduceBool f true rfl", "trusted_name", "Lean.ofReduceBool"),
        ("example := @Lean.trustCompiler", "trusted_name", "Lean.trustCompiler"),
        ("example : 1 = 1 := by native_decide", "native", "native_decide"),
        ("example : 1 = 1 := by decide +native", "native", "native"),
        ("example : 1 = 1 := by decide (config := {native := true})", "native", "native"),
        ("example : 1 = 1 := by bv_decide", "native", "bv_decide"),
        ('example := s!"{by native_decide}"', "native", "native_decide"),
        # Aesop's rules are called unsafe; that excuses nothing else.
        ("theorem a : True := by aesop\nunsafe def f := 0", "unsafe", "unsafe"),
        ("theorem a (add : Nat) : add = add := rfl\nunsafe def f := 0", "unsafe", "unsafe"),
        ("add_aesop_rules safe f\nunsafe def f := 0", "unsafe", "unsafe"),
        ("example := g (add unsafe def f := 0", "unsafe", "unsafe"),
        ("example := x@[aesop @[extern f] g", "replaced_code", "extern"),
        # Not every dot stands before a field: this one begins a tactic.
        ("example : 1 = 1 := by\n  .native_decide", "native", "native_decide"),
        ("example : 1 = 1 := by (.native_decide)", "native", "native_decide"),
        ("example : 1 = 1 := by skip;.run_tac x", "run", "run_tac"),
        ("example : 1 = 1 := by iterate 1.native_decide", "native", "native_decide"),
        # What looks like a list of attributes need not be one, nor end where it seems to.
        ('notation "a@[" x => x\nexample : 1 = 1 := a@[ rfl\naxiom wrong : False', "axiom", "axiom"),
        ('notation "a@[" x => x\nexample : 1 = 1 := a@[ rfl\n#eval 1', "run", "eval"),
        ("example := (s).attribute [by native_decide]", "native", "native_decide"),
        ("example := f x@[sorryAx _]", "trusted_name", "sorryAx"),
        ("example := f x@[(Lean).sorryAx _]", "trusted_name", "sorryAx"),
        ("example := f x@[set_option debug.x true in y]", "option", "set_option"),
        ("example := x⁻¹run_cmd pure ()", "run", "run_cmd"),
        ("theorem add : True := trivial\nunsafe def f : Nat := 0", "unsafe", "unsafe"),
        ("@[aesop safe, macro x] def f := 0", "metaprogram", "macro"),
        ("@[simp, builtin_tactic x] def f := 0", "metaprogram", "builtin_tactic"),
        ("def f : Lean.Elab.Tactic.Tactic := g", "metaprogram", "Lean.Elab.Tactic.Tactic"),
        ("def f := «IO».FS.writeFile a b", "metaprogram", "«IO».FS.writeFile"),
        ("def f : IO Unit := .FS.writeFile a b", "metaprogram", "IO"),
        ("example := Lean.reduceBool f", "trusted_name", "Lean.reduceBool"),
        ("set_option doc.verso true", "option", "set_option"),
        ("open IO in\ntheorem t : True := trivial", "metaprogram", "open"),
        ("example := x.skipKernelTC", "option", "x.skipKernelTC"),
        ("example : 1 = 1 := by decide (config := ⟨true⟩)", "native", "config"),
        ("example : 1 = 1 := by decide +kernel (config := {c with kernel := true})", "native", "config"),
    ],
)
def test_what_no_proof_needs_is_rejected_where_it_stands(text: str, rule: str, at: str) -> None:
    for whole in (text, f"theorem t : 1 = 1 := by\n  rfl\n{text}\n"):
        assert any(found == rule and where.startswith(at) for found, where in rejected(whole))


@pytest.mark.parametrize(
    "text",
    [
        "-- axiom, #eval, native_decide and set_option debug.skipKernelTC true",
        "/- axiom wrong : False\n/- nested #exit -/ macro -/",
        "/-- An axiom of choice; see `native_decide`. -/\ntheorem a : True := trivial",
        'def s := "axiom #eval import"',
        'def s := r#"axiom "elab" "#',
        "theorem axiom_of_choice (opaque' : Nat) : opaque' = opaque' := rfl",
        "theorem «axiom» : True := trivial",
        "example (x : Foo) : x.axiom = x.macro.syntax := rfl",
        "example : (f x).opaque = 0 := rfl",
        "example : x.1.axiom = (y |>.macro) ∧ f[0].elab = ⟨1, 2⟩.opaque := rfl",
        'notation "⟪" x ", " y ")" => f x y',
        "@[aesop unsafe 50% apply] theorem a : True := trivial",
        "@[simp, aesop safe (rule_sets := [A])] theorem a : True := trivial",
        "attribute [aesop unsafe 10% tactic] foo",
        "example : True := by aesop (add unsafe 20% foo, safe bar)",
        "example : True := by aesop (add 50% unsafe (by simp))",
        "add_aesop_rules unsafe 10% foo",
        "@[instance, simp] theorem a : True := trivial",
        "@[aesop [safe apply, unsafe 50% cases]] theorem a : True := trivial",
        "theorem a (S : Finset Nat) : #S = 0 := by simp",
        "theorem a (eval : Nat) : #eval_set = 0 := by simp",
        "theorem a : Polynomial.eval x p = eval x p := rfl",
        "theorem constant (stop hint module meta : Nat) : constant stop = hint := rfl",
        "set_option maxHeartbeats 0",
        "set_option maxRecDepth 100000 in\ntheorem a : True := trivial",
        "set_option linter.all false",
        "set_option autoImplicit true",
        "open Nat Real in\ntheorem a : True := trivial",
        "open LeanSearch Nat",
        "@[simp] lemma a : True := trivial",
        "@[norm_cast] theorem a : True := trivial",
        "theorem a : ∃ x, x = 1 := by\n  use 1 --done\n  decide",
        "  rw [foo]/- done -/\n  simp [h]--axioms used",
        "instance : Add Foo := ⟨f⟩",
        'notation "π" => Real.pi',
        'infixl:65 " ⊕ " => f',
        "import Mathlib\nimport Aesop\nset_option maxHeartbeats 400000\nopen BigOperators",
        "/- first -/ module\npublic import Init\ntheorem a : True := trivial",
        "partial def f (n : Nat) : Nat := f n",
        "decide +kernel",
        "theorem native (native' : Nat) : native' = 0 := by simp",
        "example : '\"' = '\"' := rfl",
        "theorem a : True := by\n  simp <;>--the tactic `simp` closes it, after we init and export\n  rfl",
        'def s := "{x}" -- formatter of the native tactic',
        "theorem a (h' : x'' = y') : f '' s ⊆ g ⁻¹' t := by simp",
        *("#print axioms a", "#check a", "variable (h : False)", "namespace A\nsection\nend A", "by exact?"),
        *("local instance : Add Nat := ⟨f⟩", "@[reducible, simp] def f := 0", "attribute [-simp] foo"),
        *("structure S where x : Nat", "deriving instance DecidableEq for A", "open Nat\ndef Lean := 0"),
    ],
)
def test_honest_texts_hit_no_rule(text: str) -> None:
    assert hits(text) == []


def test_a_hit_names_its_line_and_column() -> None:
    (hit,) = POLICY.hits("theorem ω : True := by\n  𝕏; native_decide\n")
    assert (hit.start, hit.end, hit.line, hit.column, hit.text) == (28, 41, 2, 5, "native_decide")
    assert (hit.rule, hit.action) == ("native", Action.REJECT)


def test_the_datasets_own_part_is_not_looked_at() -> None:
    header, answer = 'import A\nmacro "x" : term => `(1)\n', "theorem a : True := by\n  macro\n"
    text = header + answer
    assert [hit.line for hit in POLICY.hits(text, [(len(header), len(text))])] == [4]
    assert POLICY.hits(text, [(len(header), len(header) + 5)]) == ()


def test_a_word_that_the_submission_completes_is_its_own() -> None:
    text = "theorem a : True := by native_decide"
    assert [hit.rule for hit in POLICY.hits(text, [(text.index("_decide"), len(text))])] == ["native"]


@pytest.mark.parametrize("imports", ["import A\n", "import A.B\n\nimport C\n", "prelude\nimport A\n"])
@pytest.mark.parametrize(
    "rest",
    [
        "theorem a : True := trivial\n",
        "import D\naxiom a : False\n",
        "theorem a : True := trivial\nimport D\n",
        "//- import D -/\n",
        'example := f "{debug.skip}"\n',
        "example := »\n",
    ],
)
def test_what_a_text_plainly_imports_changes_nothing_about_the_rest(imports: str, rest: str) -> None:
    alone = [
        found for found in rejected(rest) if found != ("imports", "import") or not rest.startswith("import")
    ]
    assert rejected(imports + rest) == alone


@pytest.mark.parametrize("module", ["Lean.Elab", "IO", "Mine.sorryAx", "Mine.register_me"])
def test_what_a_text_imports_is_looked_at_when_it_says_something(module: str) -> None:
    assert rejected(f"import {module}\n") == rejected(f"import {module} -- and more\n")


def test_what_matters_is_found_behind_any_number_of_hits() -> None:
    found = POLICY.hits("#exit\n" * 1000 + "axiom wrong : False\n" * 1000)
    assert [hit.rule for hit in found] == ["stop"] * MOST_HITS + ["axiom"] * MOST_HITS
    assert found[-1].line == 1000 + MOST_HITS


def test_every_rule_reports_unless_somebody_says_otherwise() -> None:
    found = Policy().hits("axiom wrong : False\n#eval 1")
    assert {(hit.rule, hit.action) for hit in found} == {
        ("axiom", Action.REPORT),
        ("run", Action.REPORT),
    }


def test_a_text_too_long_to_be_read_is_a_hit_and_nothing_else_is_looked_for() -> None:
    longest = "axiom wrong : False\n".ljust(LONGEST_READ)
    assert {hit.rule for hit in POLICY.hits(longest)} == {"axiom"}
    (hit,) = POLICY.hits(f"{longest} ")
    assert (hit.rule, hit.action, hit.line, hit.column) == ("not_read", Action.REJECT, 1, 0)
    assert POLICY.hits(f"{longest} ", []) == ()
    assert Policy.parse(["not_read=off"]).hits(f"{longest} ") == ()


def test_an_action_can_be_set_for_each_rule() -> None:
    policy = Policy.parse(["axiom=reject", "run=off"])
    found = policy.hits("axiom a : False\n#eval x\nexample := by native_decide")
    assert [hit.rule for hit in found] == ["axiom", "native"]
    rejecting = refusing(found)
    assert rejecting is not None
    assert rejecting.rule == "axiom"
    assert refusing(found[1:]) is None


@pytest.mark.parametrize("setting", ["native", "native=", "native=maybe", "=reject", "nothing=reject"])
def test_a_setting_that_says_nothing_is_refused(setting: str) -> None:
    with pytest.raises(UsageError):
        Policy.parse([setting])


CORE = "prelude\nimport Core\n"


@pytest.mark.parametrize(
    ("program", "header", "refused"),
    [
        ("prelude\nimport Core\ntheorem a : p := q", CORE, False),
        ("prelude\nimport Core\nimport More\ntheorem a : p := q", CORE, False),
        ("prelude\ninductive False", CORE, True),
        ("/- x -/ prelude\nimport Other\ntheorem a : p := q", CORE, True),
        ("prelude\n-- import Core\ninductive False", CORE, True),
        ("import A\ntheorem a : p := q", CORE, False),
        ("prelude\nimport Mathlib\ntheorem a : p := q", "import Mathlib\n", True),
        ("import Mathlib.Data.Nat.Basic\ntheorem a : p := q", "import Mathlib\n", False),
        ("prelude", CORE, True),
    ],
)
def test_a_submission_declares_no_world_of_its_own(program: str, header: str, refused: bool) -> None:
    _, hit = Screen(policy=POLICY).look(program, header=header)
    assert (hit is not None and hit.rule == "imports") is refused
    submitted = ((len(program) - 1, len(program)),)
    assert Screen(policy=POLICY, submitted=submitted).look(program, header=header)[1] is None


PIECES = (
    *("axiom", "macro ", "sorryAx", "#", "eval", "@[", "extern", "]", "set_option ", "debug", ".", "open "),
    *(
        '"',
        "'",
        "--",
        "/-",
        "-/",
        "«",
        "»",
        "{",
        "}",
        "(",
        ")",
        "\n",
        "s!",
        'r#"',
        "x",
        "1",
        " ",
        "\ud800",
        "𝕏",
    ),
)


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_every_text_has_an_answer(text: str) -> None:
    for hit in POLICY.hits(text):
        assert hit.rule in RULES
        assert text[hit.start : hit.end].startswith(hit.text)
        assert text.split("\n")[hit.line - 1][hit.column :].startswith(hit.text.split("\n")[0])
