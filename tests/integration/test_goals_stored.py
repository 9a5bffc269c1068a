"""Goals on a real PostgreSQL: asked for by a batch, carried by its check, told in places of the answer."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine

from farm.assembly.program import AssemblyOptions
from farm.documents import encoded
from farm.judging.report import Goal
from farm.judging.submit_options import SubmitOptions
from farm.runs.batch import Items, store_batch
from farm.service import requests
from farm.service.answers import result
from farm.store.queries import Queries
from farm.store.records import Item
from farm.store.transitions import Store
from tests.farms import CORE, finished

STATEMENT = "theorem t (p : Prop) : p := by"
PROOF = "  skip\n  sorry"


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE])
    return store


def brought(store: Store, *, goals: bool) -> Item:
    """Store a batch of one item and return that."""
    asked = requests.Item(header="prelude\nimport Core\n", formal_statement=STATEMENT, proof=PROOF)
    options = SubmitOptions(assembly=AssemblyOptions(), environment="core", goals=goals)
    items = Items([asked.entry(1)], options, Queries(store.engine).served())
    return store_batch(store, items).items[0]


def told(store: Store, item: Item) -> Any:
    _, (found,) = Queries(store.engine).told([item], "")
    return encoded(result(found, index=0, key=None, accept=(), waits_for=None))["goals"]


def judge(store: Store, goals: tuple[Goal, ...] | None = None) -> list[bool]:
    """Record a verdict for all that waits, and return which of it asked for goals."""
    taken = store.claim(["core"], worker="w", lease_seconds=60, most=10)
    for claim in taken:
        assert finished(store, claim, goals=goals if claim.check.goals else None)
    return [claim.check.goals for claim in taken]


def in_program(line: int, column: int) -> dict[str, Any]:
    """Return a place of the program, as a result has it."""
    ends = {"end_line": None, "end_column": None}
    return {"line": line, "column": column, "program": {"line": line, "column": column, **ends}}


def test_goals_are_told_in_places_of_the_answer(store: Store) -> None:
    item = brought(store, goals=True)
    _, (found,) = Queries(store.engine).told([item], "")
    line = found.program.splitlines().index("  sorry") + 1
    goals = (
        Goal(kind="sorry", goal="p : Prop\n⊢ p", line=line, column=2),
        Goal(kind="error", goal="⊢ False", line=1, column=0),
    )
    assert judge(store, goals) == [True]
    places = [
        {**in_program(line, 2), "origin": "answer", "line": 2},
        {**in_program(1, 0), "origin": "header"},
    ]
    assert told(store, item) == [
        {**places[0], "kind": "sorry", "goal": "p : Prop\n⊢ p"},
        {**places[1], "kind": "error", "goal": "⊢ False"},
    ]


def test_goals_that_were_asked_for_and_are_none_are_an_empty_list(store: Store) -> None:
    item = brought(store, goals=True)
    assert told(store, item) is None
    judge(store, ())
    assert told(store, item) == []


def test_checks_with_and_without_goals_are_not_shared(store: Store) -> None:
    plain = brought(store, goals=False)
    assert judge(store, ()) == [False]
    with_goals, again = (brought(store, goals=True) for _ in range(2))
    assert judge(store, ()) == [True]
    assert [told(store, item) for item in (plain, with_goals, again)] == [None, [], []]


def test_an_item_that_asks_for_no_goals_is_known_by_what_it_was_known_by_before(store: Store) -> None:
    item = requests.Item(program="theorem t : True := trivial")
    without = requests.Batch(items=[item])
    assert "goals" in without.model_dump()
    assert without.sha256(item) != requests.Batch(items=[item], goals=True).sha256(item)
    assert without.sha256(item) == requests.Batch(items=[item], goals=False).sha256(item)
