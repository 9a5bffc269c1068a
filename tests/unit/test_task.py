"""Tasks as values: what lines and runs ask together, and impossible values."""

from __future__ import annotations

import pytest

from farm.judging.audit import Audit
from farm.task import Task, TaskFault


def test_what_a_line_and_its_run_forbid_holds_together_in_one_order() -> None:
    line, run = Task.of({"forbid": ["simp", "exact ", "simp"]}), Task.of({"forbid": ["rw", "exact"]})
    whole = line.within(run)
    assert whole.forbid == ("exact", "rw", "simp")
    assert Task.read(whole.stored) == whole
    assert line.within(Task()).forbid == ("exact", "simp")
    assert Task.of({"forbid": []}).within(Task()).stored is None


@pytest.mark.parametrize("value", ["simp", [1], [""], ["a,b"], ["a b"], ["a\0"], ["\ud800"], ["x" * 401]])
def test_an_impossible_name_is_refused(value: object) -> None:
    with pytest.raises(TaskFault, match="forbid"):
        Task.of({"forbid": value})


@pytest.mark.parametrize(
    ("axioms", "accepted", "lean", "uses"),
    [
        (["Classical.choice"], True, "4.35.0", True),
        (["propext"], True, "4.35.0", False),
        (["Classical.choice"], False, "4.35.0", None),
        (["Classical.choice"], True, "", None),
        ([f"a{number}" for number in range(500)], True, "4.35.0", None),
    ],
)
def test_choice_is_used_if_an_accepted_proof_rests_on_it(
    axioms: list[str], accepted: bool, lean: str, uses: bool | None
) -> None:
    assert Audit(accepted=accepted, axioms=tuple(axioms), lean_version=lean).uses_choice is uses
