"""A model's own text, whole, with real Lean: it counts where it proves the statement, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.assembly.challenge import challenge_to
from farm.assembly.program import AssemblyOptions, assemble
from farm.judging.assurance import Assurance
from farm.judging.job import Check, candidates_of
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, judge
from farm.manifest.entry import Entry

HEADER = "prelude\nimport Core\n\n"
STATEMENT = "theorem swap (p q : Prop) (h : p ∧ q) : q ∧ p := by\n"
TERM = STATEMENT.replace(" by\n", "")
PROOF = STATEMENT + "  exact ⟨h.right, h.left⟩"
OTHER = PROOF.replace("swap", "other")
TURN = "theorem turn {p q : Prop} (h : p ∧ q) : q ∧ p := ⟨h.right, h.left⟩\n"
LET = (
    "theorem off : let f : Bool → Bool\n      | true => false\n      | false => true; f true = false := by\n"
)

#: Answers, and the name of the theorem that was found.
OWN = {
    "a namespace and a comment behind it": (f"namespace Mine\n{TURN}{PROOF}\nend Mine\n-- done", "Mine.swap"),
    "a namespace whose helper is named in full": (
        f"namespace Mine\n{TURN}{STATEMENT}  exact Mine.turn h\nend Mine",
        "Mine.swap",
    ),
    "a namespace within a section": (f"section\nnamespace Mine\n{PROOF}\nend Mine\nend", "Mine.swap"),
    "dot notation": (f"namespace And\n{TURN}{STATEMENT}  exact h.turn\nend And", "And.swap"),
    "a root name and a corollary": (
        PROOF.replace("swap", "_root_.swap") + "\ntheorem back : True := trivial",
        "swap",
    ),
    "another name": (OTHER, "other"),
    "another name behind attributes": (f"@[simp] {OTHER}", "other"),
    "another name, private": (f"private {OTHER}", "_private"),
    "another name behind a macro": (
        'macro "flip_it" t:term : tactic => `(tactic| exact ⟨And.right $t, And.left $t⟩)\n'
        "theorem other (p q : Prop) (h : p ∧ q) : q ∧ p := by\n  flip_it h",
        "other",
    ),
    "a notation in the statement": (
        'local notation "PQ" => And\ntheorem other (p q : Prop) (h : PQ p q) : PQ q p := ⟨h.right, h.left⟩',
        "other",
    ),
    "variables in place of binders": (
        "variable (p q : Prop)\ntheorem other (h : p ∧ q) : q ∧ p := ⟨h.right, h.left⟩",
        "other",
    ),
    "a header of the module system": (f"module\n\npublic import Core\n\n{OTHER}", "other"),
    "an option for what follows": (f"set_option maxRecDepth 900 in\n{OTHER}", "other"),
    "goals that are closed last": (
        "theorem swap (p q : Prop) (h : p ∧ q) : q ∧ p := ?_\nwhere finally\n  exact ⟨h.right, h.left⟩",
        "swap",
    ),
}


def check_of(
    answer: str, *, statement: str = STATEMENT, header: str = HEADER, tier: Tier = Tier.KERNEL
) -> Check:
    line = Entry(
        path="",
        line=1,
        name="swap",
        header=header,
        formal_statement=statement,
        generation=f"```lean4\n{answer}\n```",
        predicted_proof="",
    )
    return asked(line, tier)


def asked(line: Entry, tier: Tier) -> Check:
    made = assemble(line, AssemblyOptions())
    return Check(
        candidates=candidates_of(made, challenge_to(line.header, line.formal_statement)),
        assurance=Assurance(tier=tier),
    )


def target(report: Report) -> str:
    assert report.audit is not None
    return str(report.audit.target)


@pytest.mark.parametrize(("answer", "name"), OWN.values(), ids=OWN)
def test_a_text_that_proves_the_statement_counts_whole(
    checker: Checker, core: LeanEnvironment, answer: str, name: str
) -> None:
    report = checker.check(check_of(answer), core)
    assert judge(report).outcome is Outcome.PROVED, report
    assert report.candidate == 0
    assert target(report).startswith(name)


RESTATED = {
    "a statement that differs": PROOF.replace("p q : Prop", "q p : Prop").replace("q ∧ p :=", "_ :="),
    "an assumption more": PROOF.replace("(h :", "(_ : True) (h :"),
    "what the statement brings as well": f"def extra := 1\n{PROOF}",
}


@pytest.mark.parametrize("answer", RESTATED.values(), ids=RESTATED)
def test_the_statement_is_put_in_where_the_text_does_not_state_it(
    checker: Checker, core: LeanEnvironment, answer: str
) -> None:
    statement = f"def extra := 1\n\n{STATEMENT}" if "extra" in answer else STATEMENT
    report = checker.check(check_of(answer, statement=statement), core)
    assert judge(report).outcome is Outcome.PROVED, report
    assert target(report) == "swap"


@pytest.mark.parametrize(
    "proof",
    [
        "and_intros\n· exact h.right\n· exact h.left",
        "try exact h\nexact ⟨h.right, h.left⟩",
        "set_option maxRecDepth 900 in\nexact ⟨h.right, h.left⟩",
        "-- turned\nby\n  exact ⟨h.right, h.left⟩",
        "exact ⟨h.right, h.left⟩",
        "And.intro h.right h.left",
        "⟨h.right, h.left⟩",
        "have back := h.right\n⟨back, h.left⟩",
        "let here := h\nAnd.intro here.right here.left",
        "show q ∧ p from ⟨h.right, h.left⟩",
        "let here := h\n  ⟨here.right, here.left⟩",
        "-- turned\nlet here := h\n  ⟨here.right, here.left⟩",
        "/- turned -/ let here := h\n  ⟨here.right, here.left⟩",
        "let here := h\n  let back := here.right\n  ⟨back, here.left⟩",
        "have back := h.right\n  ⟨back, h.left⟩",
        "have back := h.right\n  And.intro back h.left",
        "have ⟨one, other⟩ := h\n  ⟨other, one⟩",
        "suffices back : q from ⟨back, h.left⟩\n  h.right",
        "suffices back : q by exact ⟨back, h.left⟩\nh.right",
        "show q ∧ p from\n  ⟨h.right, h.left⟩",
        "have back : q := by\n  exact h.right\n⟨back, h.left⟩",
        "And.intro (by\n  exact h.right) h.left",
        "fun_of h\nwhere fun_of (h : p ∧ q) : q ∧ p := ⟨h.right, h.left⟩",
        "match h with\n| ⟨one, other⟩ => ⟨other, one⟩",
        "match h with\n| ⟨one, other⟩ => by\n  exact ⟨other, one⟩",
        "if _ : True then\n  ⟨h.right, h.left⟩\nelse\n  ⟨h.right, h.left⟩",
        "have _ : ¬False := fun no => nomatch no\n  ⟨h.right, h.left⟩",
        "let same := calc q ∧ p\n    _ = (q ∧ p) := rfl\n  same ▸ ⟨h.right, h.left⟩",
        "have back : q := by\n    exact h.right\n  ⟨back, h.left⟩",
        "let both := And.intro\n    h.right\n    h.left\n  both",
        "And.intro\n  h.right\n  h.left",
        "(⟨h.right, h.left⟩ : q ∧ p)",
        "open And in\nAnd.intro h.right h.left",
        "@And.intro q p h.right h.left",
        "by\n  have back := h.right\n  exact ⟨back, h.left⟩",
    ],
)
def test_lean_tells_whether_a_bare_proof_is_a_term_or_tactics(
    checker: Checker, core: LeanEnvironment, proof: str
) -> None:
    report = checker.check(check_of(proof, statement=TERM), core)
    assert judge(report).outcome is Outcome.PROVED, report


@pytest.mark.parametrize(
    "proof",
    [
        "constructor\n  exact h.right\n  exact h.left",
        "have back := h.right\n  first | done | exact ⟨back, h.left⟩",
        "have back := h.right\n    exact ⟨back, h.left⟩",
        "exact And.intro\n  h.right\n  h.left",
        "apply And.intro\n  (h.right)\n  (h.left)",
        "refine ⟨?_, ?_⟩\n  · exact h.right\n  · exact h.left",
    ],
)
def test_lean_tells_whether_the_first_line_of_tactics_lost_its_indentation(
    checker: Checker, core: LeanEnvironment, proof: str
) -> None:
    report = checker.check(check_of(proof), core)
    assert judge(report).outcome is Outcome.PROVED, report


def test_a_let_by_equations_does_not_hide_where_a_statement_ends(
    checker: Checker, core: LeanEnvironment
) -> None:
    report = checker.check(check_of(f"{LET}  rfl", statement=LET), core)
    assert judge(report).outcome is Outcome.PROVED, report


FALSE = "theorem swap (p q : Prop) (h : p ∧ q) : p = q := by\n"
HELPED = f"theorem help (p q : Prop) (h : p ∧ q) : p = q := by sorry\n{FALSE}"
NOT_PROVED = {
    "another statement": (FALSE, OTHER),
    "the name with another statement in a namespace": (FALSE, f"namespace Mine\n{PROOF}\nend Mine"),
    "a sorry": (FALSE, "theorem other (p q : Prop) (h : p ∧ q) : p = q := sorry"),
    "a sorry of a helper": (
        FALSE,
        "theorem help (p q : Prop) : p = q := sorry\n"
        "theorem other (p q : Prop) (h : p ∧ q) : p = q := help p q",
    ),
    "an axiom": (
        FALSE,
        "axiom help (p q : Prop) : p = q\ntheorem other (p q : Prop) (h : p ∧ q) : p = q := help p q",
    ),
    "an axiom with the statement": (FALSE, "axiom other (p q : Prop) (h : p ∧ q) : p = q"),
    "an opaque constant": (
        FALSE,
        "axiom cheat (p : Prop) : p\nopaque other (p q : Prop) (h : p ∧ q) : p = q := cheat _",
    ),
    "no kernel": (
        FALSE,
        "set_option debug.skipKernelTC true in\n"
        "theorem other (p q : Prop) (h : p ∧ q) : p = q := (rfl : p = p)",
    ),
    "a word that means something else": (
        FALSE,
        'local notation:50 a " = " b => a ∧ b\ntheorem other (p q : Prop) (h : p ∧ q) : p = q := h',
    ),
    "what the statement leaves open itself": (HELPED, "theorem other : True := trivial"),
    "a comment that holds the statement": (FALSE, f"/- {FALSE} -/\ntheorem other : True := trivial"),
    "nothing but an example": (FALSE, "example : True := trivial"),
}


@pytest.mark.parametrize(("statement", "answer"), NOT_PROVED.values(), ids=NOT_PROVED)
@pytest.mark.parametrize("tier", [Tier.KERNEL, Tier.AUDIT])
def test_a_text_that_does_not_prove_the_statement_counts_nowhere(
    checker: Checker, core: LeanEnvironment, statement: str, answer: str, tier: Tier
) -> None:
    report = checker.check(check_of(answer, statement=statement, tier=tier), core)
    assert judge(report).outcome is Outcome.REJECTED, report


def test_without_an_audit_the_program_that_counts_has_the_statement(
    checker: Checker, core: LeanEnvironment
) -> None:
    check = check_of("theorem other : True := trivial", statement=FALSE, tier=Tier.LEAN)
    assert FALSE not in check.program
    report = checker.check(check, core)
    assert (judge(report).outcome, report.candidate) == (Outcome.REJECTED, 1)


def test_a_header_that_does_not_compile_is_the_datasets_fault(
    checker: Checker, core: LeanEnvironment
) -> None:
    report = checker.check(check_of(OTHER, header=f"{HEADER}open Nowhere\n\n"), core)
    assert judge(report).reason is Reason.BAD_CHALLENGE


def test_an_error_of_the_proof_is_not_looked_for_again(checker: Checker, core: LeanEnvironment) -> None:
    wrong = OTHER.replace("h.left", "h.right")
    check = check_of(wrong)
    assert len(check.candidates) > 1
    report = checker.check(check, core)
    assert (judge(report).reason, report.candidate) == (Reason.ERROR, 0)
    alone = checker.check(replace(check, candidates=check.candidates[:1]), core)
    assert report.answer == alone.answer


#: What Lean refuses and the farm's own preamble does not have.
REFUSED = (
    "#eval fun (n : Nat) => n",
    "unseal Nat.gcd in",
    "@[nowhere (rule := [One])]\ntheorem z : True := trivial",
)


@pytest.mark.parametrize("line", REFUSED)
def test_a_line_that_lean_refuses_costs_a_right_proof_nothing(
    checker: Checker, core: LeanEnvironment, line: str
) -> None:
    report = checker.check(check_of(f"{line}\n{PROOF}"), core)
    assert (judge(report).outcome, report.candidate) == (Outcome.PROVED, 1), report


@pytest.mark.parametrize("line", REFUSED)
def test_a_wrong_proof_behind_a_line_that_lean_refuses_is_not_looked_at_again(
    checker: Checker, core: LeanEnvironment, line: str
) -> None:
    report = checker.check(check_of(f"{line}\n{PROOF.replace('h.left', 'h.right')}"), core)
    assert (judge(report).reason, report.candidate) == (Reason.ERROR, 0)


FIELDS = "theorem other (p q : Prop) (h : p ∧ q) : q ∧ p where\n  left := h.right"


@pytest.mark.parametrize("proof", [f"{FIELDS}\n  right := h.right\n\n#check other", FIELDS])
def test_an_error_in_the_fields_of_a_proof_is_one_of_the_proof(
    checker: Checker, core: LeanEnvironment, proof: str
) -> None:
    report = checker.check(check_of(proof), core)
    assert (judge(report).reason, report.candidate) == (Reason.ERROR, 0)


def test_goals_that_are_left_are_an_error_of_the_proof(checker: Checker, core: LeanEnvironment) -> None:
    check = check_of("theorem other (p q : Prop) (h : p ∧ q) : q ∧ p := by\n  constructor")
    report = checker.check(check, core)
    assert (judge(report).reason, report.candidate) == (Reason.ERROR, 0)


#: What the kept cases say in terms of a library, in those of the embedded one; and their proofs made wrong.
IN_CORE = {
    "import Mathlib\nimport Aesop\n\nopen Real\n": "prelude\nimport Core\n",
    "import Mathlib": "import Core",
    "ℕ": "Nat",
    "ℝ": "Nat",
    "lemma ": "theorem ",
    "open Real": "",
    ".symm": ".wrong",
}
CASES = Path(__file__).parents[1] / "cases" / "assembly"


def failing() -> Iterator[Check]:
    """Yield what the kept cases of assembly ask for, with wrong proofs: these are strange answers all."""
    for path in sorted(CASES.glob("*.jsonl")):
        for case in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            fields = case["line"]
            for word, other in IN_CORE.items():
                fields = {name: text.replace(word, other) for name, text in fields.items()}
            if not case["options"]:
                line = Entry(path="", line=1, name="t", predicted_proof="", **fields)
                yield asked(line, Tier.KERNEL)


def test_few_failing_lines_are_checked_twice(checker: Checker, core: LeanEnvironment) -> None:
    reports = [checker.check(check, core) for check in failing()]
    rejected = [report for report in reports if judge(report).outcome is Outcome.REJECTED]
    twice = [report for report in rejected if report.candidate > 0]
    assert len(rejected) > 100
    assert len(twice) < 0.10 * len(rejected), f"{len(twice)} of {len(rejected)}"


@pytest.mark.parametrize(
    "answer",
    [
        f"/- {FALSE} -/\ntheorem swap : True := trivial",
        f'theorem swap : True := trivial\ndef text := "{FALSE}"',
        f"namespace Mine\naxiom no : False\n{FALSE}  exact no.elim\nend Mine\ntheorem swap : True := trivial",
    ],
)
def test_without_an_audit_a_text_that_mentions_the_statement_does_not_count_whole(
    checker: Checker, core: LeanEnvironment, answer: str
) -> None:
    report = checker.check(check_of(answer, statement=FALSE, tier=Tier.LEAN), core)
    assert report.candidate > 0
