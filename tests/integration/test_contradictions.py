"""Proofs and disproofs of one statement on a real PostgreSQL: nobody reads one without the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from psycopg import Cursor
from psycopg.rows import DictRow
from sqlalchemy import Engine, text

from farm.judging.verdict import Verdict
from farm.store import contradictions
from farm.store.attempt import Claim
from farm.store.contradictions import Asked
from farm.store.transitions import Recorded, Store
from tests.farms import CORE, a_decision, claimed, load
from tests.processes import eventually

HEADER = "prelude\nimport Core\n"
Events = tuple[threading.Event, threading.Event]
CONTRADICTED = ("judge_error", "contradiction")


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE])
    return store


def row(number: int, *, disproof: bool, about: str = "True") -> dict[str, object]:
    """Return a line about a statement, with an answer of its own."""
    task = {"task": "disprove"} if disproof else {}
    statement = {"header": HEADER, "formal_statement": f"theorem t : {about} := by"}
    return {**statement, "name": f"t{number}", "generation": f"-- {number}\nskip", **task}


def claims_of(store: Store, path: Path, *rows: Mapping[str, object]) -> list[Claim]:
    run = load(store, path, *rows)
    with store.engine.connect() as connection:
        ask = text("SELECT check_id FROM jobs WHERE run_id = :run ORDER BY line")
        checks = connection.scalars(ask, {"run": run}).all()
    return [claimed(store, each) for each in checks]


def record(store: Store, claim: Claim, *, disproof: bool) -> Recorded:
    return store.record([(claim, a_decision(negates=disproof))])


def said(store: Store, claims: Sequence[Claim]) -> list[tuple[str, str] | None]:
    """Return the verdicts and reasons of checks, None for one without."""
    ask = text("SELECT check_id, verdict, reason FROM verdicts WHERE check_id = ANY(:ids)")
    with store.engine.connect() as connection:
        found = {
            check: (verdict, reason)
            for check, verdict, reason in connection.execute(ask, {"ids": [each.check_id for each in claims]})
        }
    return [found.get(each.check_id) for each in claims]


@contextmanager
def before_the_first_commit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Events]:
    """Have the first transaction wait before it commits; give the events that it sets and waits for."""
    arrived, goes_on, real = threading.Event(), threading.Event(), contradictions.settle

    def settle(cursor: Cursor[DictRow], recorded: Sequence[Asked]) -> Mapping[int, Verdict]:
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
    first, second, other = claims_of(
        store,
        tmp_path / "a.jsonl",
        row(1, disproof=disproof_first),
        row(2, disproof=not disproof_first),
        row(3, disproof=True, about="False"),
    )
    assert record(store, first, disproof=disproof_first).disputed == {}
    assert record(store, other, disproof=True).disputed == {}
    found = record(store, second, disproof=not disproof_first)
    assert [each.reason for each in found.disputed.values()] == ["contradiction"]
    assert list(found.disputed) == [second.check_id]
    assert said(store, [first, second]) == [CONTRADICTED, CONTRADICTED]
    assert said(store, [other]) == [("disproved", "disproved")]


@pytest.mark.parametrize("disproof_first", [False, True])
def test_of_two_recorded_at_once_the_later_waits_and_none_is_read_as_it_was(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, disproof_first: bool
) -> None:
    first, second = claims_of(
        store, tmp_path / "a.jsonl", row(1, disproof=disproof_first), row(2, disproof=not disproof_first)
    )
    with ThreadPoolExecutor(2) as pool, before_the_first_commit(monkeypatch) as (arrived, goes_on):
        one = pool.submit(record, store, first, disproof=disproof_first)
        assert arrived.wait(60)
        two = pool.submit(record, store, second, disproof=not disproof_first)
        eventually(lambda: waits_for_a_statement(store.engine))
        assert said(store, [first, second]) == [None, None]
        goes_on.set()
        assert (one.result(60).disputed, list(two.result(60).disputed)) == ({}, [second.check_id])
    assert said(store, [first, second]) == [CONTRADICTED, CONTRADICTED]


def test_proofs_of_one_statement_do_not_wait_for_each_other(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(number, disproof=False) for number in range(3)]
    first, *others = claims_of(store, tmp_path / "a.jsonl", *rows, row(9, disproof=True, about="False"))
    with ThreadPoolExecutor(2) as pool, before_the_first_commit(monkeypatch) as (arrived, goes_on):
        one: Future[Recorded] = pool.submit(record, store, first, disproof=False)
        assert arrived.wait(60)
        for claim, disproof in zip(others, (False, False, True), strict=True):
            assert pool.submit(record, store, claim, disproof=disproof).result(60).disputed == {}
        goes_on.set()
        assert one.result(60).disputed == {}


def test_a_batch_with_both_is_taken_back_and_refused_attempts_change_nothing(
    store: Store, tmp_path: Path
) -> None:
    proof, disproof, late = claims_of(
        store,
        tmp_path / "a.jsonl",
        row(1, disproof=False),
        row(2, disproof=True),
        row(3, disproof=True, about="2 = 2"),
    )
    kept = claims_of(store, tmp_path / "b.jsonl", row(4, disproof=False, about="2 = 2"))[0]
    assert record(store, kept, disproof=False).disputed == {}
    gone = Claim(**{each: getattr(late, each) for each in late.__dataclass_fields__} | {"attempt": 9})
    decided = [(proof, a_decision()), (disproof, a_decision(negates=True)), (gone, a_decision(negates=True))]
    found = store.record(decided)
    assert set(found.disputed) == {proof.check_id, disproof.check_id}
    assert said(store, [proof, disproof, kept, late]) == [CONTRADICTED, CONTRADICTED, ("proved", "ok"), None]
