"""Claims of Lean files to a benchmark's problems: which theorem is paired with which, without Lean."""

from __future__ import annotations

import pytest

from farm.datasets.claims import MOST_CLAIMS, Asked, Claim, PairedBy, claims, left, pairs

FILE = """import Mathlib
-- theorem commented (p : Prop) : p := sorry
namespace Mine
/-- A doc comment. -/
@[simp] theorem helper (p : Prop) (h : p) : p := h

lemma amc_1 (a b : ℕ) /- odd -/
    (h : a = b) : b = a := by
  have x : "theorem no := " = "" := sorry
  exact h.symm
end Mine
theorem cases : ∀ n : ℕ, n = n
  | 0 => rfl
  | _ => rfl
theorem last : True := trivial
"""


def claim(file: str, name: str, statement: str = ": True", *, is_last: bool = True) -> Claim:
    (found,) = claims(file, f"import A\ntheorem {name} {statement} := by x\n")
    assert found.is_last
    return found if is_last else Claim(**{**_fields(found), "is_last": False})  # type: ignore[arg-type]


def _fields(found: Claim) -> dict[str, object]:
    return {name: getattr(found, name) for name in Claim.__slots__}


def asked(*statements: tuple[str, str]) -> list[Asked]:
    return [Asked.of(number, name, text) for number, (name, text) in enumerate(statements)]


def test_the_theorems_of_a_file_are_claims_with_the_text_up_to_their_ends() -> None:
    found = {each.name: each for each in claims("A/B.lean", FILE)}
    assert list(found) == ["Mine.helper", "Mine.amc_1", "cases", "last"]
    amc = found["Mine.amc_1"]
    assert (amc.place, amc.is_last) == ("A/B.lean:7", False)
    assert amc.text.endswith("exact h.symm\n")
    assert amc.stated.endswith("(h : a = b) : b = a := sorry\n")
    assert " ".join(amc.signature) == "( a b : ℕ ) ( h : a = b ) : b = a"
    assert found["cases"].stated == ""
    assert found["last"].is_last


@pytest.mark.parametrize(
    ("name", "statement", "file", "declared", "by"),
    [
        ("amc_1", "theorem amc_1 : 1 = 1", "A.lean", "amc_1 : 2 = 2", PairedBy.NAME),
        ("p-17", "theorem amc_1 : 1 = 1", "A.lean", "amc_1 : 2 = 2", PairedBy.NAME),
        ("amc_1", "theorem other : 1 = 1", "A.lean", "amc_1 : 2 = 2", PairedBy.NAME),
        ("amc_1", "theorem amc_1 : 1 = 1", "A.lean", "Mine.amc_1 : 2 = 2", PairedBy.LAST_NAME),
        ("Their.amc_1", "theorem Their.amc_1 : 1 = 1", "A.lean", "amc_1 : 2 = 2", PairedBy.LAST_NAME),
        ("amc_1", "theorem amc_1 : 1 = 1", "A.lean", "Mine.AMC1 : 2 = 2", PairedBy.SPELLING),
        ("amc_1", "theorem amc_1 : 1 = 1", "x/Amc1.lean", "main : 2 = 2", PairedBy.FILE),
        ("amc_1", "theorem amc_1 (p : Prop) : p", "A.lean", "main (p : Prop) : p", PairedBy.TEXT),
        ("amc_1", "theorem amc_1 (p : Prop) :\n  p", "A.lean", "main (p : /- x -/ Prop) : p", PairedBy.TEXT),
    ],
)
def test_what_a_claim_and_a_problem_have_in_common(
    name: str, statement: str, file: str, declared: str, by: PairedBy
) -> None:
    theorem, _, rest = declared.partition(" ")
    (pair,) = pairs(asked((name, statement + " := by")), [claim(file, theorem, rest)])
    assert (pair.number, pair.by) == (0, by)


@pytest.mark.parametrize(
    ("name", "statement", "file", "declared"),
    [
        ("amc_1", "theorem amc_1 : 1 = 1", "A.lean", "amc_12 : 1 = 2"),
        ("amc_1", "theorem amc_1 (p : Prop) : p", "A.lean", "main (q : Prop) : q"),
        ("", "theorem : 1 = 1", "A.lean", "main : 1 = 2"),
    ],
)
def test_what_has_nothing_in_common_is_no_pair(name: str, statement: str, file: str, declared: str) -> None:
    theorem, _, rest = declared.partition(" ")
    problems, found = asked((name, statement + " := by")), [claim(file, theorem, rest)]
    made = pairs(problems, found)
    assert made == []
    assert left(problems, found, made) == (problems, found)


def test_the_name_of_a_file_pairs_its_last_theorem_alone() -> None:
    problem = asked(("one", "theorem one : 1 = 1 := by"))
    assert pairs(problem, [claim("one.lean", "helper", ": 3 = 3", is_last=False)]) == []
    assert [pair.by for pair in pairs(problem, [claim("one.lean", "main", ": 3 = 3")])] == [PairedBy.FILE]


def test_a_theorem_that_claims_one_problem_by_its_name_claims_no_other_by_its_text() -> None:
    problems = asked(("one", "theorem one : 1 = 1 := by"), ("two", "theorem two : 1 = 1 := by"))
    made = pairs(problems, [claim("A.lean", "one", ": 1 = 1")])
    assert [(pair.number, pair.by) for pair in made] == [(0, PairedBy.NAME)]


def test_a_problem_has_all_claims_of_the_strongest_kind_up_to_a_number() -> None:
    problem = asked(("one", "theorem one : 1 = 1 := by"))
    named = [claim(f"{number}.lean", "one", f": {number} = 1") for number in range(MOST_CLAIMS + 3)]
    made = pairs(problem, [claim("B.lean", "other", ": 1 = 1"), *named])
    assert [pair.claim for pair in made] == named[:MOST_CLAIMS]


def test_a_large_file_is_held_once() -> None:
    text = "\n".join(f"theorem t{number} : {number} = {number} := rfl" for number in range(2000))
    found = claims("A.lean", text)
    assert len(found) == 2000
    assert all(each.source is text for each in found)
