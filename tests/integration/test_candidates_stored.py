"""Candidates in a real store: a worker is given those that a line has, and the one that counted is found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from farm_workers.checking.asked import check_of
from sqlalchemy import Engine

from farm.judging.assurance import Assurance
from farm.judging.job import Candidate, Disproof
from farm.limits import Limits
from farm.manifest.entries import read
from farm.store.attempt import Claim
from farm.store.queries import Queries
from farm.store.transitions import Store
from farm.task import Kind
from tests.commands import write
from tests.farms import CORE, finished, load


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE])
    return store


HEADER = "open A\n\n"
STATEMENT = "theorem t : 1 = 1 := by\n"
#: Answers of which one, two and three programs are made.
ANSWERS = (
    "rfl",
    f"```lean\nopen B\n\n{STATEMENT}  rfl\n```",
    f"```lean\nnamespace X\nvariable (n : ℕ)\n{STATEMENT}  rfl\nend X\n```",
)
#: Text of a line that reads like the farm's own, and is none of it.
LOOKALIKE = "theorem negation : ¬ type_of% @t := by\n"
LINES: dict[str, Mapping[str, object]] = {
    "a statement": {"header": HEADER, "formal_statement": STATEMENT},
    "a context": {"context": f"{HEADER}def a := 1\n\n/-- Doc. -/\n", "formal_statement": STATEMENT},
    "a context with a negation": {"context": f"{HEADER}{LOOKALIKE}  sorry\n", "formal_statement": STATEMENT},
    "a statement that is a negation": {"header": HEADER, "formal_statement": LOOKALIKE},
    "a negation that was written before": {
        "context": f"{HEADER}{STATEMENT}  sorry\n",
        "formal_statement": LOOKALIKE,
        "negates": True,
    },
}
TASKS = {
    "nothing more": {},
    **{kind: {"task": kind} for kind in Kind},
    "an answer": {"answers": True},
}


def asked(line: Mapping[str, object], task: Mapping[str, object], answer: str) -> dict[str, object]:
    return {"name": "t", **line, **task, "generation": answer}


#: Every line with every task, but for tasks that exclude each other.
EVERY = {
    f"{line}, {task}, {number} programs": asked(LINES[line], TASKS[task], answer)
    for line in LINES
    for task in TASKS
    for number, answer in enumerate(ANSWERS, 1)
    if "negates" not in LINES[line] or "task" not in TASKS[task] or task == Kind.PROVE
}


def test_a_worker_is_given_the_candidates_that_the_line_has_on_this_machine(
    store: Store, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", *EVERY.values())
    wanted = {
        name: check_of(entry, Limits(), Assurance()).candidates
        for name, entry in zip(EVERY, read(path), strict=True)
    }
    load(store, path, *EVERY.values(), share=False)
    claims = list[Claim]()
    while more := store.claim(["core"], worker="w", lease_seconds=600, most=len(EVERY)):
        claims += more  # those of one image at a time
    claims.sort(key=lambda claim: claim.check_id)
    found = {name: claim.check.candidates for name, claim in zip(EVERY, claims, strict=True)}
    for name in EVERY:
        assert found[name] == wanted[name], name
    assert {len(each) for each in found.values()} == {1, 2, 3}


@pytest.mark.parametrize(
    ("task", "kinds"),
    [
        (Kind.PROVE, [Candidate] * 3),
        (Kind.DISPROVE, [Disproof] * 3),
        (Kind.EITHER, [Candidate, Candidate, Disproof]),
        (Kind.STATEMENT, [Candidate]),
    ],
)
def test_the_program_of_the_candidate_that_counted_is_found(
    store: Store, tmp_path: Path, task: Kind, kinds: list[type[Candidate]]
) -> None:
    line = asked(LINES["a statement"], {"task": task}, ANSWERS[2])
    lines = [{**line, "group": str(place)} for place in range(len(kinds))]
    run = load(store, tmp_path / "a.jsonl", *lines, share=False)
    claims = store.claim(["core"], worker="w", lease_seconds=60, most=len(kinds))
    for place, claim in enumerate(claims):
        assert list(map(type, claim.check.candidates)) == kinds
        assert finished(store, claim, candidate=place, exit_status=1)
        judged = Queries(store.engine).line(run, 0, place + 1)
        program = claim.check.candidates[place].program
        assert judged.program == program
        for start, length, *_ in judged.segments:
            assert program[start : start + length].strip()
        assert (judged.verdict.preamble is None) == (len(kinds) == 1)  # type: ignore[union-attr]
