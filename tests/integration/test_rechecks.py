"""Rechecks on a real PostgreSQL: the checks that a submit would ask for, every line in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from farm.assembly.program import AssemblyOptions
from farm.errors import QueueFull, UsageError
from farm.judging.assurance import Assurance
from farm.judging.submit_options import SubmitOptions
from farm.lean_text.policy.rules import Action
from farm.lean_text.policy.screen import Policy
from farm.manifest.entry import Entry
from farm.runs.batch import Items, store_batch
from farm.runs.pick import Pick
from farm.runs.recheck import Recheck, recheck
from farm.runs.revise import Stronger, cancel, retry
from farm.runs.submit import submit
from farm.store import rechecks
from farm.store.batches import ItemKey
from farm.store.queries import Queries
from farm.store.transitions import Store
from tests.binary_rows import SORTS, TASK
from tests.commands import PROVED, entry, write
from tests.farms import CORE, finished, load, submitted

NEXT = replace(CORE, name="next", digest="d2")


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE, NEXT])
    return store


@pytest.fixture
def queries(database: Engine) -> Queries:
    return Queries(database)


def again(
    store: Store, run: str, *, seen: Callable[[int], None] = lambda _lines: None, **asked: object
) -> str:
    """Recheck a run in the environment `next`, and return the run that this is."""
    queries = Queries(store.engine)
    limit = asked.pop("queue_limit", None)
    wanted = Recheck(**{"environment": "next", **asked})
    done = recheck(store, queries.run(run), wanted, known=queries.served(), queue_limit=limit, seen=seen)
    return done.run_id


def ask(store: Store, question: str, run: str) -> list[tuple[object, ...]]:
    with store.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(question), {"run": run})]


CHECKS = "SELECT line, check_id FROM jobs WHERE run_id = :run ORDER BY line"
WORDS = """
    SELECT line, name, group_name, segments::text, fallback_segments::text, warnings::text, reason
    FROM jobs LEFT JOIN verdicts USING (check_id) WHERE run_id = :run ORDER BY line
"""


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"goals": True, "wall_seconds": 7.3, "memory_mib": 700},
        {"assurance": Assurance(tier="audit", native=True, axioms=("propext", "mine"))},
        {"assurance": Assurance(tier="lean", policy=Policy(actions={"axiom": Action.REJECT}))},
    ],
)
def test_it_asks_for_the_checks_that_a_submit_to_the_new_environment_asks_for(
    store: Store, tmp_path: Path, options: dict[str, object]
) -> None:
    made = [{**TASK, **sort} for sort in SORTS if "environment" not in sort]
    run = load(store, tmp_path / "a.jsonl", *made, **options)
    rechecked = again(store, run)
    compared = submitted(store, tmp_path / "a.jsonl", **{**options, "environment": "next"}).run_id
    assert ask(store, WORDS, rechecked) == ask(store, WORDS, run) == ask(store, WORDS, compared)
    known = {line for line, *_, reason in ask(store, WORDS, run) if reason is not None}
    both = zip(ask(store, CHECKS, rechecked), ask(store, CHECKS, compared), strict=True)
    assert [one == other for one, other in both] == [line + 1 not in known for line in range(len(made))]
    assert known


def test_without_sharing_it_shares_nothing_either(store: Store, tmp_path: Path) -> None:
    run = load(store, tmp_path / "a.jsonl", entry(PROVED, 1), entry(PROVED, 1), share=False)
    assert len(dict(ask(store, CHECKS, again(store, run)))) == 2
    assert len(set(dict(ask(store, CHECKS, again(store, run))).values())) == 2


def test_a_run_of_many_pages_keeps_every_line_in_its_place(store: Store, tmp_path: Path) -> None:
    lines = 2 * rechecks.PAGE + 1
    run = load(store, tmp_path / "a.jsonl", *(entry(PROVED, number) for number in range(lines)))
    blocks: list[int] = []
    rechecked = again(store, run, seen=blocks.append)
    assert blocks == [rechecks.PAGE, rechecks.PAGE, 1]
    assert ask(store, WORDS, rechecked) == ask(store, WORDS, run)


def test_several_manifests_stay_apart(store: Store, queries: Queries, tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{name}.jsonl", entry(PROVED, 1)) for name in ("a", "b")]
    options = SubmitOptions(assembly=AssemblyOptions(), environment="core")
    run = submit(store, paths, options, known=queries.served()).run_id
    rechecked = again(store, run)
    assert [each.path for each in queries.manifests(rechecked)] == paths
    assert queries.manifests(rechecked) == queries.manifests(run)
    lines = [(each.manifest, each.line) for each in rechecks.turned(store.engine, run, rechecked)]
    assert lines == [(0, 1), (1, 1)]


def test_lines_that_were_judged_on_a_stronger_tier_meanwhile_are_not_judged_on_a_weaker_one(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    run = load(
        store,
        tmp_path / "a.jsonl",
        entry(PROVED, 1),
        entry(PROVED, 2),
        assurance=Assurance(tier="lean", policy=Policy(actions={"axiom": Action.REJECT})),
    )
    for claim in store.claim(["core"], worker="w", lease_seconds=60, most=2):
        finished(store, claim, **({"exit_status": 1} if claim.check.program.count("t1") else {}))
    stronger = Stronger(assurance=Assurance(tier="kernel"), known=queries.served())
    assert retry(store, run, Pick(verdict=("proved",)), tier=stronger) == 1
    asked = "SELECT tier, policy FROM jobs JOIN checks ON checks.id = check_id WHERE run_id = :run"
    assert ask(store, asked, again(store, run)) == [("kernel", {})] * 2


def test_items_that_were_asked_for_in_another_batch_are_found_there(store: Store, queries: Queries) -> None:
    def batch(*names: str) -> str:
        entries = [
            Entry(
                path="items",
                line=number,
                name=name,
                header="",
                formal_statement="",
                generation="",
                predicted_proof=f"theorem {name} : True := trivial",
            )
            for number, name in enumerate(names, 1)
        ]
        options = SubmitOptions(assembly=AssemblyOptions(), environment="core")
        keys = [ItemKey(key=each.name, sha256=each.name.encode(), line=each.line) for each in entries]
        return store_batch(store, Items(entries, options, queries.served()), keys=keys).id

    batch("a", "b")
    mixed = batch("c", "b", "d", "a")
    for claim in store.claim(["core"], worker="w", lease_seconds=60, most=4):
        wrong = "theorem b" in claim.check.program
        assert finished(store, claim, **({"exit_status": 1} if wrong else {}))
    rechecked = again(store, mixed)
    found = list(rechecks.turned(store.engine, mixed, rechecked))
    assert [(each.line, each.name) for each in found] == [(1, "c"), (2, "b"), (3, "d"), (4, "a")]
    assert [each.before.is_proved for each in found] == [True, False, True, True]
    assert queries.run(rechecked[:4]).rechecks == mixed


def test_nobody_deletes_the_run_while_its_programs_are_asked_for(store: Store, tmp_path: Path) -> None:
    run = load(store, tmp_path / "a.jsonl", entry(PROVED, 1))
    refused: list[str] = []

    def delete(_lines: int) -> None:
        with pytest.raises(OperationalError) as error, store.engine.begin() as connection:
            connection.execute(text("SET LOCAL lock_timeout = '100ms'"))
            connection.execute(text("DELETE FROM runs WHERE id = :run"), {"run": run})
        refused.append(str(error.value))

    again(store, run, seen=delete)
    assert "lock timeout" in refused[0]


def test_an_environment_of_another_proof_system_is_refused(store: Store, tmp_path: Path) -> None:
    run = load(store, tmp_path / "a.jsonl", entry(PROVED, 1))
    store.register([replace(CORE, name="set", kind="metamath")])
    with pytest.raises(UsageError, match="of the kind lean, but 'set' is of the kind metamath"):
        again(store, run, environment="set")


def test_a_full_queue_stores_nothing(store: Store, queries: Queries, tmp_path: Path) -> None:
    run = load(store, tmp_path / "a.jsonl", entry(PROVED, 1), entry(PROVED, 2))
    with pytest.raises(QueueFull):
        again(store, run, queue_limit=3)
    assert [each.id for each in queries.runs()] == [run]


def test_a_run_that_was_cancelled_whole_leaves_nothing_to_recheck(store: Store, tmp_path: Path) -> None:
    run = load(store, tmp_path / "a.jsonl", entry(PROVED, 1))
    cancel(store, run)
    with pytest.raises(UsageError, match="were cancelled, so there is nothing to judge again"):
        again(store, run)
