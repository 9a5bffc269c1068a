"""The farm at a glance, on a real PostgreSQL: who lives, what waits, what is unfinished, what was decided."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from farm.assembly.program import AssemblyOptions
from farm.errors import UnknownRun
from farm.judging.assurance import Assurance
from farm.judging.states import Priority
from farm.judging.submit_options import SubmitOptions
from farm.judging.tiers import Tier
from farm.kinds import Kind
from farm.manifest.entry import Entry
from farm.runs.batch import Items, store_batch
from farm.runs.farm_status import FarmStatus
from farm.store.environments import STARTING, Pending, Served
from farm.store.overview import Overview, Queue
from farm.store.queries import Queries
from farm.store.rates import Rates
from farm.store.transitions import Store
from farm.store.workers import SignOfLife, State, Workers
from tests.commands import PROVED, entry
from tests.farms import CORE, claimed, finished, load

SIGN = SignOfLife(
    name="node:1",
    since=1_000_000_000.25,
    node="node",
    pid=1,
    environments=[CORE],
    isolation="bwrap",
    farm_version="1",
    threads=4,
    busy=1,
    state=State.SERVING,
    lease_seconds=20.0,
)


@pytest.fixture
def workers(database: Engine) -> Workers:
    return Workers(database)


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE, replace(CORE, name="other")])
    return store


def execute(engine: Engine, statement: str, **values: object) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement), values)


def silence(engine: Engine, seconds: float) -> None:
    """Make all workers silent for so long."""
    execute(engine, "UPDATE workers SET seen_at = now() - :s * interval '1 second'", s=seconds)


# Workers.


def test_a_worker_is_there_as_it_last_spoke(workers: Workers) -> None:
    workers.say(SIGN)
    workers.say(replace(SIGN, busy=3, state=State.UNWELL))
    (found,) = workers.all()
    assert (found.name, found.node, found.pid) == ("node:1", "node", 1)
    assert (found.busy, found.threads, found.state) == (3, 4, "unwell")
    assert (found.isolation, found.farm_version, found.lease_seconds) == ("bwrap", "1", 20.0)
    assert [dict(each) for each in found.environments] == [
        {"name": "core", "toolchain": "Lean 4.35.0", "digest": "d1", "tiers": ["kernel", "audit", "lean"]}
    ]
    assert 0 <= found.silent_seconds < 20
    assert not found.is_silent


def test_an_environment_that_a_worker_does_not_serve_is_known_with_its_state_until_it_does(
    database: Engine, workers: Workers, store: Store
) -> None:
    starting = Pending(name="hol", state="starting", seconds=3.0, kind="hol-light")
    unfit = Pending(name="slow", state="unfit", seconds=5.0, reason="broken", retry_seconds=60.0)
    workers.say(replace(SIGN, pending=(starting, unfit)))
    silence(database, 10)
    found = {each.name: each for each in Queries(database).served()}
    assert sorted(found) == ["core", "hol", "other", "slow"]
    (told,) = found["hol"].pending
    assert (told.worker, told.state, found["hol"].kind) == ("node:1", "starting", "hol-light")
    assert 13 <= told.seconds < 20
    assert found["hol"].unfit_words == ""
    assert re.fullmatch(
        r"unfit for 1\d s on node:1, is examined again in [45]\d s: broken", found["slow"].unfit_words
    )
    assert found["core"].pending == ()
    (shown,) = workers.all()
    assert [each.name for each in shown.pending] == ["hol", "slow"]
    workers.say(replace(SIGN, pending=()))
    assert sorted(each.name for each in Queries(database).served()) == ["core", "other"]
    workers.say(replace(SIGN, pending=(starting,)))
    silence(database, 60)
    assert Queries(database).pending() == []


def test_a_worker_that_leaves_is_gone_at_once_and_no_other(workers: Workers) -> None:
    other = replace(SIGN, name="node:2")
    namesake = replace(SIGN, since=SIGN.since + 1)
    for each in (SIGN, other, namesake):
        workers.say(each)
    workers.leave(SIGN)
    assert len(workers.all()) == 2
    workers.leave(namesake)
    assert [each.name for each in workers.all()] == ["node:2"]


def test_a_silent_worker_is_shown_until_it_is_forgotten(database: Engine, workers: Workers) -> None:
    workers.say(SIGN)
    silence(database, 60)
    workers.forget()
    (found,) = workers.all()
    assert found.is_silent
    assert not found.takes("core", "kernel")
    silence(database, 3601)
    assert workers.all() == []  # whether or not a worker is there to remove it
    workers.forget()
    with database.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM workers")) == 0


def test_a_worker_that_said_no_farewell_is_shown_as_silent_for_an_hour_or_five_leases(
    database: Engine, workers: Workers
) -> None:
    workers.say(replace(SIGN, lease_seconds=1.0))
    workers.say(replace(SIGN, name="node:2", lease_seconds=1000.0))
    for seconds, shown in ((3500, ["node:1", "node:2"]), (3601, ["node:2"]), (5001, [])):
        silence(database, seconds)
        workers.forget()
        assert [each.name for each in workers.all() if each.is_silent] == shown


def test_a_silent_worker_is_forgotten_when_it_was_begun_anew(database: Engine, workers: Workers) -> None:
    workers.say(SIGN)
    workers.say(replace(SIGN, name="node:2"))
    silence(database, 60)
    workers.say(replace(SIGN, since=SIGN.since + 100))
    workers.forget()
    assert {(each.name, each.is_silent) for each in workers.all()} == {("node:1", False), ("node:2", True)}


def test_who_forgets_the_silent_counts_those_that_are_there(database: Engine, workers: Workers) -> None:
    workers.say(SIGN)
    workers.say(replace(SIGN, name="node:2"))
    silence(database, 60)
    assert workers.forget() == 0
    workers.say(SIGN)
    workers.say(replace(SIGN, name="node:3"))
    assert workers.forget() == 2


def test_two_processes_of_the_same_name_are_two_workers(workers: Workers) -> None:
    workers.say(SIGN)
    workers.say(replace(SIGN, since=SIGN.since + 0.001))
    workers.forget()
    assert [each.name for each in workers.all()] == ["node:1", "node:1"]


@pytest.mark.parametrize(
    ("state", "environment", "tier", "takes"),
    [
        (State.SERVING, "core", "kernel", True),
        (State.SERVING, "other", "kernel", False),
        (State.SERVING, "core", "audit", False),
        (State.UNWELL, "core", "kernel", False),
        (State.STOPPING, "core", "kernel", False),
    ],
)
def test_a_worker_takes_what_it_serves_while_it_is_well(
    workers: Workers, state: State, environment: str, tier: str, takes: bool
) -> None:
    served = Served(name="core", digest="d", toolchain="Lean", tiers=[Tier.KERNEL])
    workers.say(replace(SIGN, state=state, environments=[served]))
    (found,) = workers.all()
    assert found.takes(environment, tier) is takes


def test_a_sign_of_life_touches_no_index_and_its_table_does_not_grow(
    database: Engine, workers: Workers
) -> None:
    for _ in range(500):
        workers.say(SIGN)
    execute(database, "SELECT pg_stat_force_next_flush()")
    with database.connect() as connection:
        asked = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'workers'"
        updated, hot = connection.execute(text(asked)).one()
        pages = connection.scalar(text("SELECT pg_relation_size('workers') / 8192"))
    assert hot == updated == 499
    assert pages is not None
    assert pages <= 2


# What waits, and what is unfinished.


def batch(store: Store, *programs: str) -> str:
    """Store a batch of these programs."""
    options = SubmitOptions(assembly=AssemblyOptions(), environment="core", priority=Priority.ONLINE)
    blank = {"path": "", "header": "", "formal_statement": "", "generation": ""}
    entries = [
        Entry(line=n, name=f"i{n}", predicted_proof=each, **blank) for n, each in enumerate(programs, 1)
    ]
    items = Items(entries, options, Queries(store.engine).served())
    return store_batch(store, items, owner="somebody").id


def test_what_waits_is_told_by_class_and_environment_with_the_age_of_the_oldest(
    database: Engine, store: Store, tmp_path: Path
) -> None:
    entries = [entry(PROVED, 1), entry(PROVED, 2), entry(PROVED, 3, environment="other")]
    load(store, tmp_path / "a.jsonl", *entries)
    batch(store, "theorem t : True := trivial")
    execute(
        database,
        "UPDATE checks SET queued_at = now() - interval '90 s' WHERE environment = 'core' AND turn = 1",
    )
    found = Overview(database).queues()
    assert [(each.environment, each.priority, each.tier, each.waiting) for each in found] == [
        ("core", Priority.ONLINE, "kernel", 1),
        ("core", Priority.BATCH, "kernel", 2),
        ("other", Priority.BATCH, "kernel", 1),
    ]
    assert [90 <= each.oldest_seconds < 180 for each in found] == [False, True, False]


def test_of_a_long_queue_no_more_is_counted_than_asked_for(
    database: Engine, store: Store, tmp_path: Path
) -> None:
    load(store, tmp_path / "a.jsonl", *[entry(PROVED, n) for n in range(30)])
    (found,) = Overview(database).queues(most=20)
    assert (found.waiting, found.is_cut) == (20, True)
    (found,) = Overview(database).queues()
    assert (found.waiting, found.is_cut) == (30, False)


def test_a_long_queue_of_several_tiers_is_cut_in_all_of_them(
    database: Engine, store: Store, tmp_path: Path
) -> None:
    load(store, tmp_path / "a.jsonl", *[entry(PROVED, n) for n in range(15)])
    lean = Assurance(tier=Tier.LEAN)
    load(store, tmp_path / "b.jsonl", *[entry(PROVED, n) for n in range(15)], assurance=lean)
    load(store, tmp_path / "c.jsonl", entry(PROVED, 1, environment="other"))
    found = Overview(database).queues(most=20)
    assert [(each.environment, each.tier, each.is_cut) for each in found] == [
        ("core", "kernel", True),
        ("core", "lean", True),
        ("other", "kernel", False),
    ]
    assert found[0].waiting + found[1].waiting == 20


def test_unfinished_runs_and_batches_are_told_apart_from_finished_ones(
    database: Engine, store: Store, tmp_path: Path
) -> None:
    queries = Queries(database)
    ended = load(store, tmp_path / "a.jsonl", entry(PROVED, 1))
    first, second = [load(store, tmp_path / f"{n}.jsonl", entry(PROVED, n), entry(PROVED, 9)) for n in (2, 3)]
    of_batches = [[f"theorem {name}{n} : True := trivial" for name in "bc"] for n in (1, 2)]
    batches = [batch(store, *programs) for programs in of_batches]
    over = batch(store, "theorem over : True := trivial")
    for run_id in (ended, over):
        (check_id,) = queries.awaited(run_id)
        assert finished(store, claimed(store, check_id))
    running = min(queries.awaited(batches[0]))
    claimed(store, running)
    found = FarmStatus.of(queries)
    # The line that both runs have is one check, and a line of each.
    assert found.left.runs == {first: 2, second: 2}
    assert (found.left.batches, found.left.items) == (2, 4)
    assert [run.id for run, _ in found.unfinished] == [second, first]
    assert found.newest is not None
    assert found.newest[0].id == second
    assert found.newest_finished is not None
    assert found.newest_finished[0].id == ended
    assert found.newest_finished[1].verdicts == {("proved", "ok"): 1}


def test_where_nothing_was_ever_submitted_it_is_said_how_to(database: Engine, store: Store) -> None:
    with pytest.raises(UnknownRun, match="farm submit MANIFEST"):
        FarmStatus.of(Queries(database))


def test_a_farm_that_only_had_batches_has_no_newest_run(database: Engine, store: Store) -> None:
    batch(store, "theorem t : True := trivial")
    found = FarmStatus.of(Queries(database))
    assert (found.newest, found.newest_finished, found.left.batches) == (None, None, 1)
    assert found.queues == [
        Queue(
            environment="core",
            priority=Priority.ONLINE,
            tier="kernel",
            waiting=1,
            oldest_seconds=found.queues[0].oldest_seconds,
        )
    ]


def test_what_a_worker_is_at_is_told_with_the_line_that_waits_for_it(
    database: Engine, store: Store, tmp_path: Path
) -> None:
    run_id = load(store, tmp_path / "a.jsonl", *[entry(PROVED, n) for n in range(1, 5)])
    store.claim(["core"], worker="one", lease_seconds=60)
    ahead = store.claim(["core"], worker="two", lease_seconds=60, most=3)
    execute(database, "UPDATE checks SET started_at = now() - interval '1 min' WHERE worker = 'one'")
    overview = Overview(database)
    assert [(each.worker, each.run_id, each.line, each.name) for each in overview.at_work()] == [
        ("one", run_id, 1, "t1"),
        ("two", run_id, 2, "t2"),
    ]
    assert 60 <= overview.at_work()[0].seconds < 120
    store.begun([claim.hold for claim in ahead])
    assert [(each.worker, each.line) for each in overview.at_work()] == [
        ("one", 1),
        ("two", 2),
        ("two", 3),
        ("two", 4),
    ]
    assert [(each.worker, each.line) for each in overview.longest_at_work(most=2)] == [("one", 1), ("two", 2)]
    assert [(each.worker, each.line) for each in overview.longest_at_work(most=1)] == [("one", 1)]


# The rates.


_DECIDED = text("""
    WITH one AS (
        INSERT INTO checks (
            program_sha256, submitted, environment, tier, native, axioms, policy, wall_seconds, cpu_seconds,
            memory_mib, environment_digest, checker_version, priority, turn, status, attempt)
        VALUES (sha256('x'), '[]', 'core', 'lean', false, '[]', '{}', 1, 1, 1, '', '', 2, 0, 'done', 1)
        RETURNING id)
    INSERT INTO verdicts (
        check_id, attempt, verdict, reason, detail, messages, hits, wall_seconds, cpu_seconds,
        peak_memory_kib, isolation, environment_digest, toolchain, checker_version, decided_at)
    SELECT id, 1, :verdict, 'ok', '', '[]', '[]', 1, 1, 1, '', '', '', '', now() - :age * interval '1 second'
    FROM one
""")


def decide(engine: Engine, ages: Mapping[float, str]) -> None:
    """Record verdicts that are so many seconds old, one for each age."""
    with engine.begin() as connection:
        for age, verdict in ages.items():
            connection.execute(_DECIDED, {"age": age, "verdict": verdict})


def test_the_pace_counts_what_was_decided_lately(database: Engine) -> None:
    decide(database, {1.0: "proved", 2.0: "rejected", 30.0: "proved", 200.0: "timeout", 400.0: "proved"})
    rates = Rates(Overview(database))
    rates.look()
    assert rates.verdicts(seconds=60) == {"proved": 2, "rejected": 1}
    assert rates.verdicts(seconds=300) == {"proved": 2, "rejected": 1, "timeout": 1}


def test_a_second_look_adds_what_came_since_and_counts_nothing_twice(database: Engine) -> None:
    decide(database, {1.0: "proved", 30.0: "proved"})
    rates = Rates(Overview(database))
    rates.look()
    decide(database, {0.0: "rejected", 2.0: "proved"})
    rates.look()
    rates.look()
    assert rates.verdicts(seconds=60) == {"proved": 3, "rejected": 1}


def test_a_second_look_reads_only_the_last_seconds(database: Engine) -> None:
    decide(database, {20.0 + n / 10: "proved" for n in range(400)})
    rates = Rates(Overview(database))

    def read() -> int:
        execute(database, "SELECT pg_stat_force_next_flush()")
        with database.connect() as connection:
            asked = "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_user_tables WHERE relname = 'verdicts'"
            return int(connection.scalar(text(asked)) or 0)

    begun = read()
    rates.look()
    whole = read() - begun
    rates.look()
    assert whole >= 400
    assert read() - begun - whole < 40
    assert rates.verdicts(seconds=300) == {"proved": 400}


def test_what_was_known_without_a_worker_is_not_counted(database: Engine) -> None:
    decide(database, {1.0: "proved"})
    execute(database, "UPDATE verdicts SET attempt = 0")
    rates = Rates(Overview(database))
    rates.look()
    assert rates.verdicts(seconds=60) == {}


# Names that mean something else than before.


def test_a_name_means_what_its_workers_have_it_as_once_none_serves_it_as_before(
    store: Store, workers: Workers, database: Engine
) -> None:
    queries, other = Queries(database), replace(SIGN, environments=[replace(CORE, name="other")])
    workers.say(other)
    assert not store.declare("other", kind=Kind.METAMATH)
    workers.say(replace(other, environments=[CORE]))
    assert not store.declare("other", kind=Kind.LEAN)  # its digest is worth keeping
    assert store.declare("other", kind=Kind.METAMATH)
    (found,) = (each for each in queries.served() if each.name == "other")
    assert (found.kind, found.digest, found.is_only_declared) == (Kind.METAMATH, "", True)
    store.register([replace(CORE, name="other")])
    workers.say(replace(other, state=State.STOPPING))
    assert store.declare("other", kind=Kind.HOL_LIGHT)


def test_a_name_that_workers_disagree_on_takes_no_lines(
    store: Store, workers: Workers, database: Engine
) -> None:
    workers.say(replace(SIGN, environments=[replace(CORE, name="other")]))
    late = Pending(name="other", state=STARTING, seconds=1.0, kind=Kind.METAMATH)
    workers.say(replace(SIGN, name="node:2", environments=[], pending=[late]))
    known = {each.name: each for each in Queries(database).served()}
    assert known["core"].unfit_words == ""
    assert "known as 'lean', and as 'metamath', starting for" in known["other"].unfit_words
