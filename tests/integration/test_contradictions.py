"""Proofs and disproofs of one statement on a real PostgreSQL: nobody reads one without the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from psycopg import Cursor
from psycopg.rows import DictRow
from sqlalchemy import Engine, text

from farm.assembly.challenge import ALLOWED_AXIOMS
from farm.judging.audit import ADMITTED, Sentence
from farm.store import contradictions
from farm.store.attempt import Claim, Decision
from farm.store.contradictions import Asked, Settled
from farm.store.transitions import Recorded, Store
from tests.farms import CORE, a_decision, claimed, load
from tests.processes import eventually
from tests.reports import SEALED

HEADER = "prelude\nimport Core\n"
Events = tuple[threading.Event, threading.Event]
CONTRADICTED = ("judge_error", "contradiction", False)
PROVED, DISPROVED = ("proved", "ok", False), ("disproved", "disproved", False)


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE])
    return store


def row(number: int, **fields: object) -> dict[str, object]:
    """Return a line with an answer of its own."""
    statement = {"header": HEADER, "formal_statement": "theorem t : True := by"}
    return {**statement, "name": f"t{number}", "generation": f"-- {number}\nskip", **fields}


def claims_of(store: Store, path: Path, *rows: Mapping[str, object], owner: str | None = None) -> list[Claim]:
    """Return claims of the lines of a run, which this key submitted; without one a manifest has them."""
    run = load(store, path, *rows)
    with store.engine.begin() as connection:
        connection.execute(
            text("UPDATE runs SET owner = :owner WHERE id = :run"), {"owner": owner, "run": run}
        )
        ask = text("SELECT check_id FROM jobs WHERE run_id = :run ORDER BY line")
        checks = connection.scalars(ask, {"run": run}).all()
    return [claimed(store, each) for each in checks]


def decision(*, disproof: bool, about: str = "True", **given: Any) -> Decision:
    """Return a verdict on a statement by an audit that says what the theorem states."""
    digest, facts = given.pop("digest", CORE.digest), given.pop("facts", {})
    sentence = {"key": about, "negated": disproof, "allows": ALLOWED_AXIOMS, **given}
    audit = replace(SEALED, sentence=Sentence(**sentence))
    return replace(a_decision(**{"negates": disproof, "audit": audit, **facts}), digest=digest)


def record(store: Store, claim: Claim, *, disproof: bool, **given: Any) -> Recorded:
    return store.record([(claim, decision(disproof=disproof, **given))])


def said(store: Store, claims: Sequence[Claim]) -> list[tuple[str, str, bool] | None]:
    """Return the verdicts and reasons of checks and whether they are contested, None for one without."""
    ask = text("SELECT check_id, verdict, reason, contested FROM verdicts WHERE check_id = ANY(:ids)")
    with store.engine.connect() as connection:
        found = {
            check: (verdict, reason, contested)
            for check, verdict, reason, contested in connection.execute(
                ask, {"ids": [each.check_id for each in claims]}
            )
        }
    return [found.get(each.check_id) for each in claims]


@contextmanager
def before_the_first_commit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Events]:
    """Have the first transaction wait before it commits; give the events that it sets and waits for."""
    arrived, goes_on, real = threading.Event(), threading.Event(), contradictions.settle

    def settle(cursor: Cursor[DictRow], recorded: Sequence[Asked]) -> Settled:
        found = real(cursor, recorded)
        if not arrived.is_set():
            arrived.set()
            assert goes_on.wait(60)
        return found

    monkeypatch.setattr(contradictions, "settle", settle)
    try:
        yield arrived, goes_on
    finally:
        goes_on.set()


def waits_for_a_statement(engine: Engine) -> bool:
    ask = text("SELECT true FROM pg_locks WHERE NOT granted AND locktype = 'advisory' LIMIT 1")
    with engine.connect() as connection:
        return bool(connection.scalar(ask))


@pytest.mark.parametrize("disproof_first", [False, True])
def test_the_second_of_two_contrary_verdicts_takes_both_back(
    store: Store, tmp_path: Path, *, disproof_first: bool
) -> None:
    first, second, other, third = claims_of(store, tmp_path / "a.jsonl", *map(row, range(4)))
    assert record(store, first, disproof=disproof_first).settled == Settled()
    assert record(store, other, disproof=True, about="False").settled == Settled()
    found = record(store, second, disproof=not disproof_first).settled
    assert [each.reason for each in found.disputed.values()] == ["contradiction"]
    assert (list(found.disputed), found.contested) == ([second.check_id], frozenset())
    assert found.alarming == {second.check_id}
    assert said(store, [first, second, other]) == [CONTRADICTED, CONTRADICTED, DISPROVED]
    assert list(record(store, third, disproof=disproof_first).settled.disputed) == [third.check_id]


@pytest.mark.parametrize("disproof_first", [False, True])
def test_a_contrary_verdict_of_another_key_takes_nothing_back_and_marks_both(
    store: Store, tmp_path: Path, *, disproof_first: bool
) -> None:
    (first,) = claims_of(store, tmp_path / "a.jsonl", row(1), owner="bob")
    second, own = claims_of(store, tmp_path / "b.jsonl", row(2), row(3), owner="alice")
    (manifests,) = claims_of(store, tmp_path / "c.jsonl", row(4))
    record(store, first, disproof=disproof_first)
    found = record(store, second, disproof=not disproof_first).settled
    assert (found.disputed, found.contested, found.alarming) == ({}, {second.check_id}, {second.check_id})
    verdicts = [DISPROVED, PROVED] if disproof_first else [PROVED, DISPROVED]
    assert said(store, [first, second]) == [(*each[:2], True) for each in verdicts]
    assert record(store, manifests, disproof=disproof_first).settled.contested == {manifests.check_id}
    # Her own two are taken back; his stays contested.
    assert list(record(store, own, disproof=disproof_first).settled.disputed) == [own.check_id]
    assert said(store, [second, own]) == [("judge_error", "contradiction", True), CONTRADICTED]
    assert said(store, [first]) == [(*verdicts[0][:2], True)]


def test_a_verdict_that_another_keys_line_shares_is_not_taken_back(store: Store, tmp_path: Path) -> None:
    (first,) = claims_of(store, tmp_path / "a.jsonl", row(1), owner="alice")
    record(store, first, disproof=False)
    shared = load(store, tmp_path / "b.jsonl", row(1, name="bobs"))
    with store.engine.begin() as connection:
        (check,) = connection.scalars(text("SELECT check_id FROM jobs WHERE run_id = :run"), {"run": shared})
    assert check == first.check_id
    (second,) = claims_of(store, tmp_path / "c.jsonl", row(2), owner="alice")
    assert record(store, second, disproof=True).settled.contested == {second.check_id}
    assert said(store, [first, second]) == [(*PROVED[:2], True), (*DISPROVED[:2], True)]


BAD = f"bad#{'a' * 64}"
#: What a second key's disproof says of itself that makes it no contradiction of a proof of "True".
NO_CONTRADICTIONS: dict[str, dict[str, Any]] = {
    "of another statement": {"about": "3 = 4"},
    "in another environment": {"digest": "another"},
    "by an axiom of its own": {"uses": (BAD,), "allows": (BAD,)},
    "by an axiom and Lean's own": {"uses": ("propext", BAD), "allows": (*ALLOWED_AXIOMS, BAD)},
    "by an axiom with the name of another's": {"uses": (f"bad#{'b' * 64}",), "allows": (f"bad#{'b' * 64}",)},
    "by an imported axiom": {"uses": ("Lib.bad",), "allows": ("Lib.bad",)},
    "by the compiler": {"uses": ("the compiler",), "allows": ("the compiler",)},
    "on the tier lean": {"facts": {"tier": "lean"}},
    "by a sorry of the dataset": {"facts": {"audit": "admitted"}},
    "without a sentence": {"facts": {"audit": SEALED}},
    "rejected": {"facts": {"exit_status": 1}},
    "of a malformed module": {"facts": {"audit": replace(SEALED, accepted=False)}},
    "that no audit has seen": {"facts": {"audit": None}},
    "out of time": {"facts": {"limit": "wall"}},
    "a proof too": {"disproof": False},
}


def test_what_is_no_contradiction_changes_nothing(store: Store, tmp_path: Path) -> None:
    (first,) = claims_of(store, tmp_path / "a.jsonl", row(0), owner="bob")
    record(store, first, disproof=False)
    tricks = claims_of(
        store, tmp_path / "b.jsonl", *map(row, range(1, 1 + len(NO_CONTRADICTIONS))), owner="alice"
    )
    for (name, given), claim in zip(NO_CONTRADICTIONS.items(), tricks, strict=True):
        facts = given.get("facts", {})
        if facts.get("audit") == "admitted":
            facts = {
                "audit": replace(SEALED, trusts=(ADMITTED,), sentence=Sentence(key="True", negated=True))
            }
        found = record(store, claim, **{"disproof": True, **given, "facts": facts})
        assert found.settled == Settled(), name
        assert said(store, [first]) == [PROVED], name


#: Disproofs that contradict a proof of "True" by an axiom of its context, and whether they ring the alarm.
CONTRADICTIONS: dict[str, tuple[dict[str, Any], bool]] = {
    "by no axiom": ({"allows": (BAD,)}, False),
    "by the same axiom": ({"uses": (BAD,), "allows": (BAD,)}, False),
    "by Lean's axioms, allowing none of them": ({"uses": ("propext",), "allows": (BAD,)}, False),
}


def test_an_axiom_of_the_dataset_rings_no_alarm(store: Store, tmp_path: Path) -> None:
    (plain, first) = claims_of(store, tmp_path / "a.jsonl", row(1), row(2), owner="bob")
    record(store, plain, disproof=False)
    record(store, first, disproof=False, uses=(BAD,), allows=(*ALLOWED_AXIOMS, BAD), about="by bad")
    rows = map(row, range(3, 3 + len(CONTRADICTIONS)))
    claims = claims_of(store, tmp_path / "b.jsonl", *rows, owner="alice")
    for (name, (given, alarms)), claim in zip(CONTRADICTIONS.items(), claims, strict=True):
        settled = record(store, claim, disproof=True, about="by bad", **given).settled
        assert (settled.contested, bool(settled.alarming)) == ({claim.check_id}, alarms), name
    assert said(store, [plain, first]) == [PROVED, (*PROVED[:2], True)]


@pytest.mark.parametrize("disproof_first", [False, True])
def test_of_two_recorded_at_once_the_later_waits_and_none_is_read_as_it_was(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, disproof_first: bool
) -> None:
    first, second = claims_of(store, tmp_path / "a.jsonl", row(1), row(2))
    with ThreadPoolExecutor(2) as pool, before_the_first_commit(monkeypatch) as (arrived, goes_on):
        one = pool.submit(record, store, first, disproof=disproof_first)
        assert arrived.wait(60)
        two = pool.submit(record, store, second, disproof=not disproof_first)
        eventually(lambda: waits_for_a_statement(store.engine))
        assert said(store, [first, second]) == [None, None]
        goes_on.set()
        assert one.result(60).settled == Settled()
        assert list(two.result(60).settled.disputed) == [second.check_id]
    assert said(store, [first, second]) == [CONTRADICTED, CONTRADICTED]


def test_proofs_of_one_statement_do_not_wait_for_each_other(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others, last = claims_of(store, tmp_path / "a.jsonl", *map(row, range(4)))
    with ThreadPoolExecutor(2) as pool, before_the_first_commit(monkeypatch) as (arrived, goes_on):
        one: Future[Recorded] = pool.submit(record, store, first, disproof=False)
        assert arrived.wait(60)
        for claim in others:
            assert pool.submit(record, store, claim, disproof=False).result(60).settled == Settled()
        assert pool.submit(record, store, last, disproof=True, about="False").result(60).settled == Settled()
        goes_on.set()
        assert one.result(60).settled == Settled()


def test_a_batch_with_both_is_taken_back_and_refused_attempts_change_nothing(
    store: Store, tmp_path: Path
) -> None:
    proof, disproof, late, kept = claims_of(store, tmp_path / "a.jsonl", *map(row, range(4)))
    assert record(store, kept, disproof=False, about="2 = 2").settled == Settled()
    gone = Claim(**{each: getattr(late, each) for each in late.__dataclass_fields__} | {"attempt": 9})
    decided = [
        (proof, decision(disproof=False)),
        (disproof, decision(disproof=True)),
        (gone, decision(disproof=True, about="2 = 2")),
    ]
    found = store.record(decided)
    assert set(found.settled.disputed) == {proof.check_id, disproof.check_id}
    assert said(store, [proof, disproof, kept, late]) == [CONTRADICTED, CONTRADICTED, PROVED, None]
