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
from farm.task import Task
from tests.commands import HEADER
from tests.faulty_rows import FAULTY, SOUND, answers

#: The answers of the run of everything; the others are those of the nightly run.
FEW = (
    *("right", "wrong", "unknown tactic", "syntax error", "sorry", "faulty lemma above", "definition above"),
    *("another theorem", "text that Lean cannot read", "empty", "nothing"),
)
ALL = tuple(answers(""))
HALVES = [FEW, pytest.param(ALL, marks=pytest.mark.long)]
SHAPES = pytest.mark.parametrize("shapes", HALVES, ids=["few", "all"])
#: Each faulty row with a third of the few answers, another one than the row above it, or with all.
ROWS = [
    *(pytest.param(row, FEW[n % 3 :: 3], id=f"{row}-few") for n, row in enumerate(FAULTY)),
    *(pytest.param(row, ALL, id=f"{row}-all", marks=pytest.mark.long) for row in FAULTY),
]


def check(fields: Mapping[str, object], generation: str) -> Check:
    row = {"formal_statement": SOUND, "header": HEADER, **fields}
    entry = Entry(path="", line=1, name="t", generation=generation, predicted_proof="", **row)  # type: ignore[arg-type]
    return check_of(entry, Limits(wall_seconds=20.0), Assurance(tier=Tier.KERNEL))


def both(checker: Checker, core: LeanEnvironment, asked: Check) -> tuple[Verdict, Verdict]:
    """Return the verdict on a check to its end, and on one that is stopped at an error."""
    stopped = replace(asked, stop_at_error=True)
    return judge(checker.check(asked, core)), judge(checker.check(stopped, core))


@pytest.mark.parametrize(("row", "shapes"), ROWS)
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
