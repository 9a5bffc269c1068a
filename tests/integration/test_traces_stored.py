"""Traces on a real PostgreSQL: kept with a run, told to whoever claims its checks, part of nothing else."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from sqlalchemy import Engine, text

from farm.assembly.program import AssemblyOptions
from farm.judging.submit_options import SubmitOptions
from farm.runs.batch import Items
from farm.service import requests
from farm.store.attempt import Claim
from farm.store.batches import Batch, ItemKey, Submitter, store_batches
from farm.store.queries import Queries
from farm.store.transitions import Store
from tests.farms import CORE, a_decision

OPTIONS = SubmitOptions(assembly=AssemblyOptions(), environment="core")
FIRST, SECOND = (f"00-{digit * 32}-{digit * 16}-01" for digit in "12")


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE])
    return store


def brought(store: Store, *programs: str, traceparent: str | None, key: str | None = None) -> Batch:
    """Store a batch of these programs as a part of a trace."""
    entries = [requests.Item(program=program).entry(number) for number, program in enumerate(programs, 1)]
    keys = [] if key is None else [ItemKey(key=key, sha256=b"1" * 32, line=1)]
    items = Items(entries, OPTIONS, Queries(store.engine).served())
    batch = items.new_batch(keys, traceparent)
    (stored,) = store_batches(store, items.options, [batch], Submitter())
    assert isinstance(stored, Batch)
    return stored


def claimed(store: Store, *, traced: bool = True) -> list[Claim]:
    return store.claim(["core"], worker="w", lease_seconds=60, most=10, traced=traced)


def test_a_claim_has_the_trace_of_the_run_that_asked_first(store: Store) -> None:
    brought(store, "theorem a : True := trivial", traceparent=FIRST)
    brought(store, "theorem a : True := trivial", "theorem b : True := trivial", traceparent=SECOND)
    brought(store, "theorem c : True := trivial", traceparent=None)
    found = {claim.check.program.split()[1]: claim.traceparent for claim in claimed(store)}
    assert found == {"a": FIRST, "b": SECOND, "c": None}


def test_who_does_not_trace_is_told_of_no_trace(store: Store) -> None:
    brought(store, "theorem a : True := trivial", traceparent=FIRST)
    assert [claim.traceparent for claim in claimed(store, traced=False)] == [None]


def test_a_verdict_keeps_the_id_of_its_trace(store: Store) -> None:
    batch = brought(store, "theorem a : True := trivial", traceparent=FIRST)
    (claim,) = claimed(store)
    store.record([(claim, replace(a_decision(), traceparent=SECOND))])
    _, (found,) = Queries(store.engine).told(batch.items, "")
    assert found.verdict is not None
    assert found.verdict.trace_id == "2" * 32


def test_the_same_key_in_another_trace_is_the_same_batch(store: Store) -> None:
    first = brought(store, "theorem a : True := trivial", traceparent=FIRST, key="k")
    assert brought(store, "theorem a : True := trivial", traceparent=SECOND, key="k").id == first.id


def test_a_run_that_is_not_traced_is_stored_as_before(store: Store) -> None:
    batch = brought(store, "theorem a : True := trivial", traceparent=None)
    with store.engine.connect() as connection:
        options = connection.scalar(text("SELECT options FROM runs WHERE id = :id"), {"id": batch.id})
    assert "traceparent" not in json.dumps(options)
