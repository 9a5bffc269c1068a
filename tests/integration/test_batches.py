"""Batches on a real PostgreSQL: what is equal is checked once, a key is one item, and nobody locks up."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import Engine, text

from farm.assembly.program import AssemblyOptions
from farm.errors import ManifestError, ServerDown, UsageError
from farm.judging.states import Priority
from farm.judging.submit_options import SubmitOptions
from farm.manifest.entry import Entry
from farm.runs import revise
from farm.runs.batch import Items, store_batch
from farm.store.attempt import Claim
from farm.store.batches import Batch, BatchRows, ItemKey, KeyReused
from farm.store.queries import Queries
from farm.store.records import Judged
from farm.store.transitions import Store
from tests.farms import CORE, a_decision, finished


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE, replace(CORE, name="other", digest="d2")])
    return store


@pytest.fixture
def queries(database: Engine) -> Queries:
    return Queries(database)


def item(words: str, number: int = 0, **more: object) -> Entry:
    """Return an item with this program of its own; the number is given when it is stored."""
    known = {
        "path": "items",
        "line": number,
        "name": words,
        "header": "",
        "formal_statement": "",
        "generation": "",
        "predicted_proof": f"theorem {words} : True := trivial",
    }
    return Entry(**(known | more))


def stored(
    store: Store, *items: Entry, keys: Sequence[str | None] = (), owner: str = "", **options: object
) -> Batch:
    """Store a batch of these items, each with its key where there are any; a key stands for its program."""
    chosen = {"assembly": AssemblyOptions(), "environment": "core", "priority": Priority.ONLINE, **options}
    entries = [replace(each, line=number) for number, each in enumerate(items, 1)]
    made = Items(entries, SubmitOptions(**chosen), Queries(store.engine).served())
    return store_batch(
        store,
        made,
        keys=[
            ItemKey(key=key, sha256=items[number - 1].predicted_proof.encode(), line=number)
            for number, key in enumerate(keys, 1)
            if key is not None
        ],
        owner=owner,
    )


def claims(store: Store, *, most: int = 1000) -> list[Claim]:
    return store.claim(["core", "other"], worker="w1", lease_seconds=60, most=most)


def judge_all(store: Store, **facts: object) -> int:
    return sum(finished(store, claim, **facts) for claim in claims(store))


def told(queries: Queries, batch: Batch) -> list[Judged]:
    return queries.told(batch.items, "")[1]


def reasons(queries: Queries, batch: Batch) -> list[str]:
    """Return of each item the reason of its verdict, why it was cancelled, or how far it is."""
    return [
        each.verdict.reason if each.verdict else each.cancelled or each.status
        for each in told(queries, batch)
    ]


def settled(queries: Queries, batch: Batch) -> list[bool]:
    found = queries.waited(batch.items)
    return [found[each].is_settled for each in batch.items]


def test_a_check_knows_where_its_context_ends_and_is_another_one_without(store: Store) -> None:
    stated = {"predicted_proof": "", "formal_statement": "theorem t : True", "generation": ":= trivial"}
    below = item("a", **stated, context="import A\n\nnamespace N\n\n/-- Doc. -/\n")
    plain = item("b", **stated, header=below.context)
    for entries in ((below, plain), (below, plain, below)):  # the third is the first one's
        stored(store, *entries)
    (first,), (second,) = ([claim.check for claim in claims(store)] for _ in range(2))
    assert first.program == second.program
    assert first.challenge is not None
    assert second.challenge is not None
    end = len("import A\n\nnamespace N\n\n")
    assert (first.context_end, first.challenge.context_end) == (end, end)
    assert (second.context_end, second.challenge.context_end) == (0, 0)


class TestEqualItemsAreOneCheck:
    def test_within_a_batch(self, store: Store, queries: Queries) -> None:
        batch = stored(store, item("a"), item("b"), item("a"), item("a"))
        assert len(set(batch.checks.values())) == 2
        assert batch.queued == {"core"}
        assert judge_all(store) == 2
        assert reasons(queries, batch) == ["ok"] * 4
        assert [each.shared for each in told(queries, batch)] == [False, False, True, True]
        assert settled(queries, batch) == [True] * 4

    def test_with_what_waits(self, store: Store, queries: Queries) -> None:
        first = stored(store, item("a"), item("b"))
        second = stored(store, item("c"), item("b"), item("a"))
        assert {second.checks[each] for each in second.items[1:]} == set(first.checks.values())
        assert judge_all(store) == 3
        assert reasons(queries, second) == ["ok"] * 3

    def test_with_what_is_under_way(self, store: Store, queries: Queries) -> None:
        first = stored(store, item("a"))
        (claim,) = claims(store)
        second = stored(store, item("a"))
        assert claims(store) == []
        assert finished(store, claim)
        assert reasons(queries, first) == reasons(queries, second) == ["ok"]

    def test_with_what_is_done_and_then_nothing_waits(self, store: Store, queries: Queries) -> None:
        stored(store, item("a"), item("b"))
        judge_all(store)
        batch = stored(store, item("b"), item("a"), item("b"))
        assert (batch.queued, batch.judged) == (frozenset(), frozenset(batch.items))
        assert reasons(queries, batch) == ["ok"] * 3
        assert [each.shared for each in told(queries, batch)] == [True] * 3

    def test_with_another_keys_and_neither_is_told_of_the_other(self, store: Store, queries: Queries) -> None:
        first, check = stored(store, item("a"), owner="bob"), {"trace_id": "ab" * 16}
        judge_all(store)
        with store.engine.begin() as connection:
            connection.execute(text("UPDATE verdicts SET trace_id = :trace_id"), check)
        others = [stored(store, item("a"), item("a"), owner="alice"), stored(store, item("a"), owner="bob")]
        assert {each for batch in others for each in batch.checks.values()} == set(first.checks.values())
        shared = [[each.shared for each in told(queries, batch)] for batch in (first, *others)]
        assert shared == [[False], [False, True], [True]]
        verdicts = [each.verdict for batch in others for each in told(queries, batch)]
        assert [each and each.trace_id for each in verdicts] == [None, None, "ab" * 16]

    def test_and_is_hastened_by_who_is_in_a_greater_hurry(self, store: Store) -> None:
        stored(store, item("a"), item("b"), priority=Priority.BATCH)
        stored(store, item("b"), priority=Priority.INTERACTIVE)
        (first,) = claims(store, most=1)
        assert first.check.program.startswith("theorem b")

    def test_and_hastened_it_waits_its_turn_behind_what_has_waited_in_that_class(self, store: Store) -> None:
        stored(store, item("slow"), priority=Priority.BATCH)
        stored(store, item("a"), item("b"), item("c"))
        claims(store, most=2)
        stored(store, item("d"), item("slow"))
        order = [claim.check.program.split()[1] for claim in claims(store)]
        assert order == ["c", "d", "slow"]

    @pytest.mark.parametrize(
        "other",
        [{"share": False}, {"wall_seconds": 31.0}, {"environment": "other"}, {"memory_mib": 7}],
        ids=str,
    )
    def test_but_not_what_differs_or_is_not_to_be_shared(
        self, store: Store, queries: Queries, other: dict[str, object]
    ) -> None:
        stored(store, item("a"))
        judge_all(store)
        batch = stored(store, item("a"), **other)
        assert (batch.judged, reasons(queries, batch)) == (frozenset(), ["queued"])

    def test_nor_within_a_batch_that_is_not_to_be_shared(self, store: Store) -> None:
        batch = stored(store, item("a"), item("a"), share=False)
        assert len(set(batch.checks.values())) == 2
        assert judge_all(store) == 2

    @pytest.mark.parametrize("facts", [{"limit": "wall"}, {"box_error": "no disk"}], ids=str)
    def test_nor_a_verdict_by_chance_or_of_a_failure(
        self, store: Store, queries: Queries, facts: dict[str, object]
    ) -> None:
        stored(store, item("a"))
        judge_all(store, **facts)
        assert reasons(queries, stored(store, item("a"))) == ["queued"]


class TestWhatLeanNeedNotBeAsked:
    BAD = ("a\0b", "a\ud800b")

    @pytest.mark.parametrize("words", BAD)
    def test_has_its_verdict_at_once(self, store: Store, queries: Queries, words: str) -> None:
        batch = stored(store, item(words, group="g"), item("good"), item(words))
        assert reasons(queries, batch) == ["invalid_text", "queued", "invalid_text"]
        assert batch.judged == {batch.items[0], batch.items[2]}
        assert judge_all(store) == 1

    def test_alone_wakes_nobody(self, store: Store, queries: Queries) -> None:
        batch = stored(store, *map(item, self.BAD))
        assert (batch.queued, claims(store)) == (frozenset(), [])
        assert settled(queries, batch) == [True, True]

    def test_in_another_field_harms_nothing(self, store: Store, queries: Queries) -> None:
        odd = "\0\ud800\\u0000"
        batch = stored(store, item("a", name=odd))
        assert judge_all(store) == 1
        assert reasons(queries, batch) == ["ok"]

    @pytest.mark.parametrize("field", ["header", "formal_statement"])
    @pytest.mark.parametrize("odd", ["\0", "\ud800"], ids=repr)
    def test_is_a_fault_of_the_statement_where_that_has_it(
        self, store: Store, queries: Queries, field: str, odd: str
    ) -> None:
        said = {"header": "", "formal_statement": "theorem t : True := by"}
        said[field] += f" -- {odd}\n"
        asked = item("a", **said), item("", **said, predicted_proof="", generation="trivial")
        batch = stored(store, *asked)
        assert reasons(queries, batch) == ["bad_challenge"] * 2
        assert batch.queued == frozenset()


class TestAKey:
    def test_asked_for_again_is_the_item_of_then(self, store: Store, queries: Queries) -> None:
        first = stored(store, item("a"), item("b"), keys=["k1", "k2"])
        again = stored(store, item("a"), item("b"), keys=["k1", "k2"])
        assert (again.id, again.items) == (first.id, first.items)
        assert again.queued == frozenset()
        turned = stored(store, item("b"), item("a"), keys=["k2", "k1"])
        assert turned.items == first.items[::-1]
        fewer = stored(store, item("a"), keys=["k1"])
        assert fewer.items == first.items[:1]
        assert len({first.id, turned.id, fewer.id}) == 3
        for batch in (first, turned, fewer):
            assert queries.batch(batch.id, "") == list(batch.items)
        assert judge_all(store) == 2

    def test_with_another_body_is_refused_and_nothing_is_stored(self, store: Store, queries: Queries) -> None:
        stored(store, item("a"), keys=["k1"])
        with pytest.raises(KeyReused, match="k1") as error:
            stored(store, item("c"), item("b"), keys=["new", "k1"])
        assert error.value.keys == ("k1",)
        assert judge_all(store) == 1
        assert reasons(queries, stored(store, item("d"), keys=["new"])) == ["queued"]

    def test_beside_new_ones_and_none(self, store: Store, queries: Queries) -> None:
        first = stored(store, item("a"), keys=["k1"])
        mixed = stored(store, item("b"), item("a"), item("c"), keys=["k2", "k1", None])
        assert mixed.items == ((mixed.id, 1), first.items[0], (mixed.id, 3))
        assert judge_all(store) == 3
        assert reasons(queries, mixed) == ["ok"] * 3
        assert [each.name for each in told(queries, mixed)] == ["b", "a", "c"]
        assert queries.batch(mixed.id, "") == list(mixed.items)
        assert stored(store, item("b"), item("a"), keys=["k2", "k1"]).id not in (first.id, mixed.id)

    def test_of_another_owner_is_another(self, store: Store) -> None:
        first = stored(store, item("a"), keys=["k1"], owner="x")
        other = stored(store, item("b"), keys=["k1"], owner="y")
        assert first.items != other.items

    def test_retried_by_many_at_once_is_stored_once(self, store: Store, queries: Queries) -> None:
        names = [f"t{number}" for number in range(20)]
        gate = threading.Barrier(8)

        def retry(seed: int) -> Batch:
            order = random.Random(seed).sample(names, len(names))
            gate.wait(60)
            return stored(store, *map(item, order), keys=[f"k-{name}" for name in order])

        with ThreadPoolExecutor(8) as pool:
            batches = list(pool.map(retry, range(8)))
        assert len({each for batch in batches for each in batch.items}) == 20
        assert judge_all(store) == 20
        for batch in batches:
            assert queries.batch(batch.id, "") == list(batch.items)
            assert reasons(queries, batch) == ["ok"] * 20

    def test_whose_taker_failed_is_free(self, store: Store, queries: Queries) -> None:
        with pytest.raises(UsageError):
            stored(store, item("a"), keys=["k"], environment="nowhere")
        assert reasons(queries, stored(store, item("b"), keys=["k"])) == ["queued"]


class TestWhatEndsWhileABatchIsStored:
    """A check can lose what it has in common with others between the look-up and the join."""

    def store_around(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object], *items: Entry
    ) -> Batch:
        """Store a batch; `meanwhile` happens when it has looked up what is done, and joined nothing yet."""
        look_up = BatchRows.judged

        def judged(rows: BatchRows, identities: Sequence[bytes]) -> dict[bytes, int]:
            found = look_up(rows, identities)
            meanwhile()
            return found

        with monkeypatch.context() as patch:
            patch.setattr(BatchRows, "judged", judged)
            return stored(store, *items)

    def test_a_verdict_is_shared(
        self, store: Store, queries: Queries, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stored(store, item("a"))
        batch = self.store_around(store, monkeypatch, lambda: judge_all(store), item("a"))
        assert reasons(queries, batch) == ["ok"]
        assert settled(queries, batch) == [True]

    def test_a_verdict_by_chance_is_not(
        self, store: Store, queries: Queries, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stored(store, item("a"))
        (claim,) = claims(store)
        batch = self.store_around(
            store, monkeypatch, lambda: finished(store, claim, limit="wall"), item("b"), item("a"), item("a")
        )
        assert reasons(queries, batch) == ["queued"] * 3
        assert judge_all(store) == 2
        assert reasons(queries, batch) == ["ok"] * 3

    def test_what_is_cancelled_is_checked_all_the_same(
        self, store: Store, queries: Queries, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = stored(store, item("a"))
        batch = self.store_around(store, monkeypatch, lambda: revise.cancel(store, first.id), item("a"))
        assert reasons(queries, batch) == ["queued"]
        assert judge_all(store) == 1
        assert reasons(queries, first) == ["user"]

    def test_an_environment_that_is_gone_is_an_error_and_nothing_is_stored(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def gone() -> None:
            with store.transaction() as connection:
                connection.execute(text("DELETE FROM environments WHERE name = 'core'"))

        with pytest.raises(UsageError, match="is gone, and nothing was stored"):
            self.store_around(store, monkeypatch, gone, item("a"))
        with store.transaction() as connection:
            assert connection.scalar(text("SELECT count(*) FROM runs")) == 0


class TestCancelling:
    def test_items_ends_those_alone(self, store: Store, queries: Queries) -> None:
        batch = stored(store, item("a"), item("b"), item("a"))
        assert revise.cancel(store, batch.id, lines=[3, 2]) == 2
        assert reasons(queries, batch) == ["queued", "user", "user"]
        assert judge_all(store) == 1
        assert reasons(queries, batch) == ["ok", "user", "user"]
        assert settled(queries, batch) == [True] * 3

    def test_groups_ends_those_alone(self, store: Store, queries: Queries) -> None:
        batch = stored(store, item("a", group="g"), item("b", group="h"), item("c"))
        assert revise.cancel(store, batch.id, groups=("g", "c")) == 2
        assert reasons(queries, batch) == ["user", "queued", "user"]

    @pytest.mark.parametrize("none", [(), []])
    def test_none_ends_none(self, store: Store, queries: Queries, none: Sequence[str]) -> None:
        batch = stored(store, item("a"))
        assert revise.cancel(store, batch.id, groups=none) == 0
        assert revise.cancel(store, batch.id, lines=[], groups=None) == 0
        assert reasons(queries, batch) == ["queued"]

    @pytest.mark.parametrize("odd", ["\0", "a\ud800"], ids=repr)
    def test_no_group_has_a_name_that_the_database_cannot_hold(self, store: Store, odd: str) -> None:
        with pytest.raises(ManifestError, match="group"):
            stored(store, item("a", group=odd), item("b", group="x"))
        assert claims(store) == []

    def test_leaves_what_others_wait_for(self, store: Store, queries: Queries) -> None:
        first, second = stored(store, item("a")), stored(store, item("a"))
        assert revise.cancel(store, first.id) == 1
        assert judge_all(store) == 1
        assert (reasons(queries, first), reasons(queries, second)) == (["user"], ["ok"])


class TestADeadline:
    def sweep(self, store: Store) -> int:
        return store.sweep(checker_version="1").past_deadline

    def test_cancels_what_has_not_begun(self, store: Store, queries: Queries) -> None:
        batch = stored(store, item("a"), deadline_seconds=0.000_001)
        other = stored(store, item("a"), item("b"), deadline_seconds=3600)
        assert self.sweep(store) == 1
        assert reasons(queries, batch) == ["deadline"]
        assert settled(queries, batch) == [True]
        assert judge_all(store) == 2
        assert reasons(queries, other) == ["ok"] * 2

    def test_of_who_left_is_taken_back_when_somebody_asks(self, store: Store, queries: Queries) -> None:
        kept, left = stored(store, item("a"), deadline_seconds=3600), stored(store, item("b"))
        for batch in (kept, left):
            store.leave(batch.id, seconds=0)
        found = queries.asked_of([*kept.items, *left.items], "")
        assert [found[batch.id].is_left for batch in (kept, left)] == [True, True]
        store.ask_again([kept.id])
        assert not queries.asked_of(kept.items, "")[kept.id].is_left
        assert self.sweep(store) == 1
        assert (reasons(queries, kept), reasons(queries, left)) == (["queued"], ["deadline"])

    def test_of_a_batch_that_is_over_says_nothing_of_who_asks(self, store: Store, queries: Queries) -> None:
        batch = stored(store, item("a"), deadline_seconds=0.000_001)
        self.sweep(store)
        self.sweep(store)
        assert not queries.asked_of(batch.items, "")[batch.id].is_left

    def test_that_is_sooner_than_a_leave_stays(self, store: Store, queries: Queries) -> None:
        batch = stored(store, item("a"), deadline_seconds=0.000_001)
        store.leave(batch.id, seconds=60)
        assert not queries.asked_of(batch.items, "")[batch.id].is_left
        assert self.sweep(store) == 1


class TestTheFirstProof:
    def test_that_is_known_ends_its_group_before_it_begins(self, store: Store, queries: Queries) -> None:
        stored(store, item("a"))
        judge_all(store)
        items = [item(words, group="g") for words in "abc"] + [item("d", group="h")]
        batch = stored(store, *items, stop_on_first_proof=True)
        assert reasons(queries, batch) == ["ok", "group", "group", "queued"]
        assert settled(queries, batch) == [True, True, True, False]
        assert judge_all(store) == 1

    def test_that_is_made_ends_the_rest(self, store: Store, queries: Queries) -> None:
        batch = stored(store, *(item(words, group="g") for words in "abc"), stop_on_first_proof=True)
        (claim,) = claims(store, most=1)
        assert finished(store, claim)
        assert Counter(reasons(queries, batch)) == {"ok": 1, "group": 2}

    def test_that_is_refuted_ends_nothing(self, store: Store, queries: Queries) -> None:
        batch = stored(store, *(item(words, group="g") for words in "ab"), stop_on_first_proof=True)
        (claim,) = claims(store, most=1)
        assert finished(store, claim, reached_end=False)
        assert "queued" in reasons(queries, batch)


class TestWhoMay:
    def test_is_the_owner_alone(self, store: Store, queries: Queries) -> None:
        batch = stored(store, item("a"), owner="x")
        assert queries.batch(batch.id, "x") == list(batch.items)
        assert queries.asked_of(batch.items, "y") == {}
        with pytest.raises(UsageError):
            queries.batch(batch.id, "y")

    @pytest.mark.parametrize("odd", ["\0", "a\0b", "\ud800", "x" * 100_000, ""])
    def test_of_an_odd_id_is_nobody(self, queries: Queries, odd: str) -> None:
        with pytest.raises(UsageError):
            queries.batch(odd, "")


class TestManySmallBatches:
    def test_leave_no_trace_in_the_catalogue(self, store: Store, queries: Queries) -> None:
        def catalogue() -> list[int]:
            with store.transaction() as connection:
                connection.execute(text("SELECT pg_stat_force_next_flush()"))
                counts = [
                    f"SELECT count(*) FROM {table}" for table in ("pg_class", "pg_attribute", "pg_type")
                ]
                counts.append(
                    "SELECT coalesce(sum(n_dead_tup + n_tup_ins), 0) FROM pg_stat_sys_tables"
                    " WHERE relname IN ('pg_class', 'pg_attribute', 'pg_type', 'pg_depend')"
                )
                return [int(connection.scalar(text(count)) or 0) for count in counts]

        stored(store, item("warm"))
        before = catalogue()
        for number in range(300):
            stored(store, item(f"a{number}"), item("same"), keys=[f"k{number}", None])
        assert catalogue() == before
        assert judge_all(store) == 302

    def test_of_what_is_known_leave_few_dead_rows(self, store: Store) -> None:
        stored(store, item("a"))
        judge_all(store)
        for _ in range(300):
            assert stored(store, item("a")).queued == frozenset()
        with store.engine.connect() as connection:
            connection.execute(text("SELECT pg_stat_force_next_flush()"))
            connection.commit()
            dead = connection.scalar(text("SELECT sum(n_tup_upd + n_tup_del) FROM pg_stat_user_tables"))
        assert dead is not None
        assert dead < 50


class Traffic:
    """Clients that bring overlapping items in every order, and those who judge and cancel beside them."""

    def __init__(self, store: Store, clients: int, others: int) -> None:
        self.store, self.clients = store, clients
        self.made: list[Batch] = []
        self.over = threading.Event()
        self._gate = threading.Barrier(clients + others)

    def bring(self, seed: int) -> None:
        chance = random.Random(seed)
        self._gate.wait(60)
        for nth in range(12):
            some = [f"t{number}" for number in chance.sample(range(60), 25)]
            racing = {"stop_on_first_proof": True} if chance.random() < 0.3 else {}
            keys = [f"{seed}-{nth}-{name}" for name in some] if chance.random() < 0.5 else []
            items = [item(name, group=name[:2]) for name in some]
            self.made.append(stored(self.store, *items, keys=keys, **racing))

    def judge(self, seed: int) -> None:
        """Record verdicts, many of them by chance: their checks lose what they have in common with others."""
        chance = random.Random(seed)
        self._gate.wait(60)
        while not self.over.is_set():
            taken = claims(self.store, most=16)
            chance.shuffle(taken)
            facts = [{"limit": "wall"} if chance.random() < 0.4 else {} for _ in taken]
            decided = [(claim, a_decision(**fact)) for claim, fact in zip(taken, facts, strict=True)]
            self.store.stop_rivals(self.store.record(decided).proved)

    def cancel(self, seed: int) -> None:
        chance = random.Random(seed)
        self._gate.wait(60)
        while not self.over.is_set():
            if self.made:
                batch = chance.choice(self.made)
                revise.cancel(self.store, batch.id, lines=chance.sample(range(1, 26), 5))
            self.store.sweep(checker_version="1")

    def run(self, *others: Callable[[int], None]) -> None:
        with ThreadPoolExecutor(self.clients + len(others)) as pool:
            clients = [pool.submit(self.bring, seed) for seed in range(self.clients)]
            beside = [pool.submit(other, seed) for seed, other in enumerate(others)]
            try:
                for each in clients:
                    each.result(300)
            finally:
                self.over.set()
            for each in beside:
                each.result(60)


def test_batches_verdicts_cancels_and_sweeps_at_once_never_lock_up(store: Store, queries: Queries) -> None:
    traffic = Traffic(store, 8, 3)
    traffic.run(traffic.judge, traffic.judge, traffic.cancel)
    while judge_all(store):
        pass
    with store.engine.connect() as connection:
        mine = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        assert connection.scalar(text(mine)) == 0
    assert len(traffic.made) == 96
    for batch in traffic.made:
        assert all(settled(queries, batch))
        for each in told(queries, batch):
            assert (each.verdict is None) == (each.cancelled is not None)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("step", ["add_run", "judged", "add_texts", "ids", "add_checks", "add_jobs"])
def test_a_batch_whose_connection_ends_at_any_step_is_not_stored_and_says_that_postgresql_is_away(
    store: Store, monkeypatch: pytest.MonkeyPatch, step: str, last: bool
) -> None:
    one = getattr(BatchRows, step)

    def ending(rows: BatchRows, *values: object) -> object:
        found = one(rows, *values) if last else None
        with psycopg.connect(_address(store.engine), autocommit=True) as other:
            pid = rows._connection.info.backend_pid
            other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
        return found if last else one(rows, *values)

    with monkeypatch.context() as patch:
        patch.setattr(BatchRows, step, ending)
        with pytest.raises(ServerDown):
            stored(store, item("a"), item("b"))
    batch = stored(store, item("a"), item("b"))
    with store.engine.connect() as connection:
        counts = [
            connection.scalar(text(f"SELECT count(*) FROM {table}")) for table in ("runs", "jobs", "checks")
        ]
    assert (counts, len(batch.queued)) == ([1, 2, 2], 1)


def _address(engine: Engine) -> str:
    return engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
