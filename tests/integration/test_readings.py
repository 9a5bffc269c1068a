"""What the farm's metrics are made of, on a real PostgreSQL: counts agree with the rows, and stay cheap."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from farm.assembly.program import AssemblyOptions
from farm.errors import ServerDown
from farm.judging.states import Priority
from farm.judging.submit_options import SubmitOptions
from farm.manifest.entry import Entry
from farm.runs import revise
from farm.runs.batch import Items, store_batch
from farm.runs.export import export
from farm.store import postgres, tallies
from farm.store.attempt import Released
from farm.store.queries import Queries
from farm.store.readings import NEWEST, FarmReading, read
from farm.store.transitions import Store
from tests.bulk_rows import fill
from tests.commands import PROVED, WRONG, entry, write
from tests.farms import CORE, a_decision, claimed, finished, load


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE])
    return store


@pytest.fixture
def queries(database: Engine) -> Queries:
    return Queries(database)


def ask(store: Store, statement: str, **values: object) -> list[tuple[object, ...]]:
    with store.engine.begin() as connection:
        found = connection.execute(text(statement), values)
        return [tuple(row) for row in found] if found.returns_rows else []


def ended(store: Store) -> Mapping[object, object]:
    """Return how many attempts ended how, by counting their rows."""
    return dict(ask(store, "SELECT outcome, count(*) FROM attempts GROUP BY 1"))  # type: ignore[arg-type]


def export_all(store: Store, queries: Queries, run_id: str) -> None:
    assert list(export(store, queries, queries.run(run_id)))


class TestTheQueue:
    def test_it_is_told_by_environment_and_class_with_the_age_of_its_oldest_check(
        self, store: Store, tmp_path: Path
    ) -> None:
        load(store, tmp_path / "a.jsonl", entry(PROVED, 1), entry(PROVED, 2))
        load(store, tmp_path / "b.jsonl", entry(PROVED, 3), priority=Priority.ONLINE)
        ask(
            store, "UPDATE checks SET queued_at = now() - interval '1 minute' WHERE turn = 1 AND priority = 2"
        )
        reading = read(store.engine)
        assert reading.waiting == {("core", "batch"): 2, ("core", "online"): 1}
        assert reading.oldest_seconds["core", "batch"] == pytest.approx(60, abs=30)
        assert 0 <= reading.oldest_seconds["core", "online"] < 30

    def test_what_workers_hold_does_not_wait_and_is_overdue_when_its_lease_is(
        self, store: Store, tmp_path: Path
    ) -> None:
        load(store, tmp_path / "a.jsonl", entry(PROVED, 1), entry(PROVED, 2), entry(PROVED, 3))
        (one,) = store.claim(["core"], worker="w", lease_seconds=60)
        store.claim(["core"], worker="dead", lease_seconds=-1)
        reading = read(store.engine)
        assert (reading.waiting, reading.held, reading.overdue) == ({("core", "batch"): 1}, {"core": 2}, 1)
        assert finished(store, one)
        assert read(store.engine).held == {"core": 1}

    def test_an_idle_farm_holds_nothing_and_says_when_its_workers_were_heard_of(self, store: Store) -> None:
        store.declare("later")
        reading = read(store.engine)
        assert (reading.waiting, reading.oldest_seconds) == ({}, {})
        assert reading.held == {"core": 0, "later": 0}
        assert set(reading.silent_seconds) == {"core"}
        assert reading.silent_seconds["core"] >= 0
        assert reading.schema == postgres.SCHEMA
        assert reading.database_bytes > 1 << 20


class TestAttempts:
    def test_each_is_counted_when_it_ends_however_it_ends(self, store: Store, tmp_path: Path) -> None:
        run_id = load(store, tmp_path / "a.jsonl", *(entry(PROVED, number) for number in range(6)))
        ids = [id_ for (id_,) in ask(store, "SELECT id FROM checks ORDER BY turn")]
        held = [claimed(store, int(str(id_))) for id_ in ids[:5]]
        assert finished(store, held[0])
        assert finished(store, held[1], limit="wall")
        store.give_back([Released.unharmed(held[2], "why")])
        ask(store, "UPDATE checks SET lease_until = now() - interval '1 s' WHERE id = :id", id=ids[3])
        assert store.sweep(checker_version="1").taken_back == 1
        revise.cancel(store, run_id)
        counted = read(store.engine).attempts
        assert counted == ended(store)
        assert set(counted) == {"proved", "timeout", "returned", "lost", "cancelled"}

    def test_a_result_that_is_refused_counts_nothing(self, store: Store, tmp_path: Path) -> None:
        load(store, tmp_path / "a.jsonl", entry(PROVED, 1))
        (claim,) = store.claim(["core"], worker="w", lease_seconds=60)
        assert finished(store, claim)
        assert not finished(store, claim)
        assert read(store.engine).attempts == {"proved": 1}

    def test_rows_that_are_added_up_while_others_are_recorded_count_the_same(
        self, store: Store, tmp_path: Path
    ) -> None:
        lines = 200
        load(store, tmp_path / "a.jsonl", *(entry(PROVED, number) for number in range(lines)))
        held = store.claim(["core"], worker="w", lease_seconds=600, most=lines)
        over = threading.Event()

        def add_up() -> None:
            while not over.is_set():
                with store.transaction() as connection:
                    tallies.add_up(connection, few=2)

        with ThreadPoolExecutor() as pool:
            adding = pool.submit(add_up)
            list(pool.map(lambda claim: store.record([(claim, a_decision())]), held))
            over.set()
            adding.result()
        assert read(store.engine).attempts == {"proved": lines}
        with store.transaction() as connection:
            tallies.add_up(connection, few=1)
        assert ask(store, "SELECT * FROM tallies ORDER BY 1, 2") == [
            ("attempts", "proved", lines),
            ("lines", "own", lines),
        ]
        assert read(store.engine).attempts == {"proved": lines}

    def test_a_sweep_adds_up_many_rows_and_lets_few_be(self, store: Store) -> None:
        ask(store, "INSERT INTO tallies SELECT 'attempts', 'proved', 1 FROM generate_series(1, 499)")
        store.sweep(checker_version="1")
        assert ask(store, "SELECT count(*) FROM tallies") == [(499,)]
        ask(store, "INSERT INTO tallies VALUES ('attempts', 'proved', 1)")
        store.sweep(checker_version="1")
        assert ask(store, "SELECT * FROM tallies") == [("attempts", "proved", 500)]


class TestLines:
    def test_those_that_another_check_answers_are_shared(self, store: Store, tmp_path: Path) -> None:
        load(store, tmp_path / "a.jsonl", entry(PROVED, 1), entry(PROVED, 1), entry(PROVED, 2))
        load(store, tmp_path / "b.jsonl", entry(PROVED, 2), entry(PROVED, 3))
        assert read(store.engine).lines == {"own": 3, "shared": 2}
        rows = ask(store, "SELECT shared, count(*) FROM jobs GROUP BY 1 ORDER BY 1")
        assert rows == [(False, 3), (True, 2)]

    def test_items_of_batches_are_lines_and_their_batch_is_no_run(self, store: Store) -> None:
        options = SubmitOptions(assembly=AssemblyOptions(), environment="core")
        items = [
            Entry(
                path="items",
                line=number,
                name="",
                header="",
                formal_statement="",
                generation="",
                predicted_proof="theorem t : True := trivial",
            )
            for number in (1, 2)
        ]
        store_batch(store, Items(items, options, Queries(store.engine).served()))
        reading = read(store.engine)
        assert reading.lines == {"own": 1, "shared": 1}
        assert (reading.in_progress, reading.left, reading.lags) == (0, {}, {})


class TestRuns:
    def test_their_unfinished_lines_are_counted_also_those_that_share_a_check(
        self, store: Store, tmp_path: Path
    ) -> None:
        one = load(store, tmp_path / "a.jsonl", entry(PROVED, 1), entry(PROVED, 1), entry(PROVED, 2))
        two = load(store, tmp_path / "b.jsonl", entry(PROVED, 2))
        assert read(store.engine).left == {two: 1, one: 3}
        (claim,) = store.claim(["core"], worker="w", lease_seconds=60)
        assert read(store.engine).left == {two: 1, one: 3}
        assert finished(store, claim)
        reading = read(store.engine)
        assert (reading.left, reading.in_progress) == ({two: 1, one: 1}, 2)
        revise.cancel(store, one)
        assert read(store.engine).left == {two: 1}

    def test_the_newest_are_told_and_all_are_counted(self, store: Store, tmp_path: Path) -> None:
        runs = [
            load(store, tmp_path / f"{number}.jsonl", entry(PROVED, number)) for number in range(NEWEST + 2)
        ]
        reading = read(store.engine)
        assert reading.in_progress == len(runs)
        assert list(reading.left) == runs[:1:-1]
        assert set(reading.lags) == set(runs[2:])

    def test_of_very_many_lines_the_number_is_estimated(self, store: Store) -> None:
        fill(store.engine, runs=3, lines=30_000, done=40_000)
        reading = read(store.engine)
        assert list(reading.left) == ["filled3", "filled2"]
        assert reading.left["filled3"] == pytest.approx(30_000, rel=0.001)
        assert reading.left["filled2"] == pytest.approx(20_000, rel=0.001)


class TestTheExportLag:
    def lag(self, store: Store, run_id: str) -> float:
        return read(store.engine).lags[run_id]

    def judge_one(self, store: Store, *, seconds_ago: float) -> None:
        (claim,) = store.claim(["core"], worker="w", lease_seconds=60)
        assert finished(store, claim)
        ask(
            store,
            "UPDATE verdicts SET decided_at = now() - :ago * interval '1 s' WHERE check_id = :id",
            ago=seconds_ago,
            id=claim.check_id,
        )

    def test_it_begins_with_the_first_verdict_and_ends_with_the_export(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run_id = load(store, tmp_path / "a.jsonl", entry(PROVED, 1), entry(WRONG, 2))
        ask(store, "UPDATE runs SET created_at = now() - interval '1 hour'")
        assert self.lag(store, run_id) == 0
        self.judge_one(store, seconds_ago=600)
        self.judge_one(store, seconds_ago=300)
        assert self.lag(store, run_id) == pytest.approx(600, abs=30)
        export_all(store, queries, run_id)
        assert self.lag(store, run_id) == 0

    def test_a_verdict_that_came_after_the_export_is_due(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run_id = load(store, tmp_path / "a.jsonl", entry(PROVED, 1), entry(WRONG, 2))
        self.judge_one(store, seconds_ago=0)
        export_all(store, queries, run_id)
        ask(store, "UPDATE manifests SET exported_at = now() - interval '1 hour'")
        ask(store, "UPDATE verdicts SET decided_at = now() - interval '2 hours'")
        ask(store, "UPDATE runs SET created_at = now() - interval '3 hours'")
        self.judge_one(store, seconds_ago=60)
        assert self.lag(store, run_id) == pytest.approx(60, abs=30)

    def test_a_verdict_that_was_known_before_is_due_since_the_run_was_submitted(
        self, store: Store, tmp_path: Path
    ) -> None:
        load(store, tmp_path / "a.jsonl", entry(PROVED, 1))
        self.judge_one(store, seconds_ago=9999)
        run_id = load(store, tmp_path / "b.jsonl", entry(PROVED, 1))
        assert 0 <= self.lag(store, run_id) < 60

    def test_an_export_that_died_leaves_it_as_it_was(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        path = write(tmp_path / "a.jsonl", entry(PROVED, 1))
        run_id = load(store, path, entry(PROVED, 1))
        ask(store, "UPDATE runs SET created_at = now() - interval '1 hour'")
        self.judge_one(store, seconds_ago=600)
        store.exporting(run_id, 0, sha256="0" * 64, size=1)
        assert self.lag(store, run_id) == pytest.approx(600, abs=30)


def test_a_postgresql_that_is_not_there_is_said_to_be_down() -> None:
    engine = postgres.connect("postgresql+psycopg://farm@127.0.0.1:1/farm", application="farm-test")
    with pytest.raises(ServerDown):
        read(engine)


_READ = """
    SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)
               + heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit, 0) + coalesce(idx_blks_read, 0))
    FROM pg_stat_user_tables JOIN pg_statio_user_tables USING (relid)
"""


def read_by_a_reading(database: Engine) -> tuple[int, FarmReading]:
    """Return how many rows and pages a reading looks at; of statistics PostgreSQL has none."""
    engine = postgres.connect(
        database.url.render_as_string(hide_password=False), application="farm-test", connections=1
    )
    amounts = []
    for _ in range(2):
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_stat_force_next_flush()"))
        with engine.begin() as connection:
            amounts.append(int(connection.scalar(text(_READ)) or 0))
        reading = read(engine)
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
    with engine.begin() as connection:
        amounts.append(int(connection.scalar(text(_READ)) or 0))
    engine.dispose()
    return amounts[2] - amounts[1], reading


def test_what_a_reading_looks_at_does_not_grow_with_what_is_stored(database: Engine) -> None:
    fill(database, runs=25, lines=100, done=2_400)
    few, _ = read_by_a_reading(database)
    with database.begin() as connection:
        connection.execute(
            text("TRUNCATE runs, programs, checks, attempts, verdicts, tallies RESTART IDENTITY CASCADE")
        )
    fill(database, runs=25, lines=4_000, done=99_900)
    many, reading = read_by_a_reading(database)
    assert reading.waiting == {("core", "batch"): 100}
    assert reading.lines == {"own": 100_000}
    assert 0 < many < 1.5 * few, (few, many)
