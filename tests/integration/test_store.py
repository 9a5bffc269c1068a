"""The store on a real PostgreSQL: each transition happens once, and only from where it may start."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import IntegrityError

from farm.judging.assurance import Assurance
from farm.judging.audit import against
from farm.judging.report import Message
from farm.judging.states import TRANSITIONS, Priority, Status
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason
from farm.kinds import Kind
from farm.limits import Limits
from farm.runs.submit import unserved_words
from farm.settings import ATTEMPTS
from farm.store import postgres
from farm.store.attempt import Claim, Released
from farm.store.queries import Queries
from farm.store.transitions import Store
from farm.store.watermark import Front
from farm.store.wish import Alike
from tests.farms import CORE, a_decision, claimed, finished, load
from tests.over_tcp import over_tcp
from tests.processes import eventually

OTHER = "other"
#: A line of Metamath.
METAMATH = {"name": "i", "formal_statement": "tt $p |- ( ph -> ph ) $= ? $.", "generation": "wph ax-i"}


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE])
    return store


@pytest.fixture
def queries(database: Engine) -> Queries:
    return Queries(database)


def line(words: str = "theorem t : True := trivial", **more: object) -> dict[str, object]:
    return {"name": "t", "predicted_proof": words, **more}


def lines(count: int) -> list[dict[str, object]]:
    return [line(f"theorem t{number} : True := trivial") for number in range(count)]


def checks_of(store: Store, run_id: str) -> list[int]:
    asked = text("SELECT check_id FROM jobs WHERE run_id = :run ORDER BY line")
    with store.engine.connect() as connection:
        return list(connection.scalars(asked, {"run": run_id}))


@pytest.fixture
def run_id(store: Store, tmp_path: Path) -> str:
    """A run of one line."""
    return load(store, tmp_path / "a.jsonl", line("the program ℝ", timeout=3), memory_mib=512)


@pytest.fixture
def check_id(store: Store, run_id: str) -> int:
    (check_id,) = checks_of(store, run_id)
    return check_id


def claims(store: Store, *, most: int = 100, served: tuple[str, ...] = ("core",)) -> list[Claim]:
    return store.claim(served, worker="w1", lease_seconds=60, most=most)


def status_of(store: Store, check_id: int) -> str:
    with store.engine.connect() as connection:
        return str(connection.scalar(text("SELECT status FROM checks WHERE id = :id"), {"id": check_id}))


def force(store: Store, check_id: int, status: Status) -> None:
    lease = "now() + interval '1 hour'" if status is Status.RUNNING else "NULL"
    with store.engine.begin() as connection:
        connection.execute(
            text(f"UPDATE checks SET status = :s, lease_until = {lease}, attempt = 1 WHERE id = :id"),
            {"s": status, "id": check_id},
        )


def give_back(store: Store, claim: Claim, *, failed: bool = True, detail: str = "") -> bool:
    returned = Released(
        claim=claim, outcome="judge_error" if failed else "returned", detail=detail, failed=failed
    )
    return claim.check_id in store.give_back([returned])


def outcomes(queries: Queries, run_id: str, number: int = 1) -> list[str | None]:
    return [attempt["outcome"] for attempt in queries.attempts(run_id, 0, number)]


def options(connection: psycopg.Connection[Any]) -> list[int]:
    """Return what decides how soon a connection ends whose other end is gone."""
    with socket.socket(fileno=os.dup(connection.fileno())) as found:
        names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        alive = found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        return [alive, *(found.getsockopt(socket.IPPROTO_TCP, name) for name in names)]


def test_a_connection_over_tcp_whose_other_end_is_gone_ends_within_seconds(database: Engine) -> None:
    with over_tcp(database) as url:
        engine = postgres.connect(url, application="test")
        with engine.connect() as connection:
            driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
            assert options(driver) == [1, 5, 2, 3, 10_000]
        engine.dispose()
    with over_tcp(database) as url:
        engine = postgres.connect(url, application="test")
        with psycopg.connect(**postgres.driver_arguments(engine)) as connection:
            assert options(connection) == [1, 5, 2, 3, 10_000]


def test_a_loaded_run_is_queued_line_by_line(store: Store, queries: Queries, tmp_path: Path) -> None:
    run_id = load(store, tmp_path / "a.jsonl", *lines(3))
    assert queries.tally(run_id).statuses == {"queued": 3}
    assert [job.line for job in queries.judged(run_id, 0)] == [1, 2, 3]


def test_equal_programs_are_stored_once(store: Store, tmp_path: Path) -> None:
    for name in ("a", "b"):
        load(store, tmp_path / f"{name}.jsonl", line(), line(), line("another"))
    with store.engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM programs")) == 2


@pytest.mark.parametrize("words", ["nul \0 inside", "lone \ud800 surrogate"])
def test_a_text_lean_cannot_be_given_is_judged_at_once_and_kept_as_it_was(
    store: Store, queries: Queries, tmp_path: Path, words: str
) -> None:
    run_id = load(store, tmp_path / "a.jsonl", line(words))
    job = queries.line(run_id, 0, 1)
    assert job.program == words
    assert job.verdict is not None
    assert (job.verdict.outcome, job.verdict.reason) == (Outcome.REJECTED, Reason.INVALID_TEXT)
    assert claims(store) == []


def test_a_name_postgresql_cannot_hold_is_stored_readably(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    run_id = load(store, tmp_path / "a.jsonl", line(name="a\0b\ud800"))
    assert queries.line(run_id, 0, 1).name == "a\ufffdb\ufffd"


@pytest.mark.usefixtures("run_id")
def test_a_claim_brings_the_program_and_its_limits(store: Store) -> None:
    (claim,) = claims(store)
    assert (claim.check.program, claim.attempt, claim.environment) == ("the program ℝ", 1, "core")
    assert claim.check.limits == Limits(wall_seconds=3.0, cpu_seconds=6.0, memory_mib=512)


def test_of_many_claims_at_once_each_check_goes_to_one(store: Store, tmp_path: Path) -> None:
    load(store, tmp_path / "a.jsonl", *lines(50))
    with ThreadPoolExecutor(8) as pool:
        taken = [
            claim.check_id
            for found in pool.map(lambda _: claims(store, most=3), range(32))
            for claim in found
        ]
    assert len(taken) == len(set(taken)) == 50


def test_a_worker_that_does_not_serve_the_environment_gets_nothing(store: Store, check_id: int) -> None:
    assert claims(store, served=("mathlib",)) == []
    assert status_of(store, check_id) == "queued"


@contextmanager
def locked(engine: Engine, environment: str) -> Iterator[None]:
    """Hold the lock of an environment's row, as a worker does that says at this moment that it serves it."""
    with engine.connect() as connection:
        held = text("SELECT FROM environments WHERE name = :name FOR UPDATE")
        connection.execute(held, {"name": environment})
        yield
        connection.rollback()


def is_waited_for(engine: Engine) -> bool:
    asked = text(
        "SELECT true FROM pg_stat_activity "
        "WHERE wait_event_type = 'Lock' AND datname = current_database() LIMIT 1"
    )
    with engine.connect() as connection:
        return bool(connection.scalar(asked))


def test_a_worker_that_says_what_was_just_said_waits_for_nobody(store: Store) -> None:
    with ThreadPoolExecutor(1) as pool:
        with locked(store.engine, "core"):
            saying = pool.submit(store.register, [CORE])
            eventually(lambda: saying.done() or is_waited_for(store.engine))
            assert saying.done()
        saying.result(20)


def test_a_worker_that_waits_for_one_environment_locks_no_other(store: Store) -> None:
    others = [replace(CORE, digest="d2"), replace(CORE, name=OTHER, digest="d2")]
    store.register([CORE, replace(CORE, name=OTHER)])
    with ThreadPoolExecutor(1) as pool:
        with locked(store.engine, OTHER):
            saying = pool.submit(store.register, others)
            eventually(lambda: is_waited_for(store.engine))
            with store.engine.connect() as connection:
                asked = text("SELECT digest FROM environments WHERE name = 'core' FOR UPDATE SKIP LOCKED")
                assert connection.scalars(asked).all() == ["d2"]
        saying.result(20)


def test_a_worker_leaves_what_asks_for_a_tier_that_it_does_not_give(store: Store, tmp_path: Path) -> None:
    load(store, tmp_path / "a.jsonl", *lines(3))
    tiers = {"core": ["audit", "lean"]}
    assert store.waiting(["core"], tiers) == []
    assert store.claim(["core"], worker="w1", lease_seconds=60, tiers=tiers) == []
    load(store, tmp_path / "b.jsonl", line("easy"), assurance=Assurance(tier=Tier.AUDIT))
    assert store.waiting(["core"], tiers) == ["core"]
    (claim,) = store.claim(["core"], worker="w1", lease_seconds=60, most=9, tiers=tiers)
    assert claim.check.program == "easy"
    assert len(claims(store)) == 3


@pytest.mark.parametrize(("was", "now"), [(Kind.METAMATH, Kind.HOL_LIGHT), (Kind.LEAN, Kind.METAMATH)])
def test_a_worker_leaves_what_was_assembled_for_another_proof_system(
    store: Store, queries: Queries, tmp_path: Path, was: Kind, now: Kind
) -> None:
    store.register([replace(CORE, kind=was)])
    stored = {Kind.LEAN: line(), Kind.METAMATH: METAMATH}
    run = load(store, tmp_path / "a.jsonl", stored[was])
    (check,) = checks_of(store, run)
    store.register([replace(CORE, kind=now)])
    with store.engine.connect() as connection:
        image = connection.scalar(text("SELECT image FROM checks"))
    wish = Alike(environment="core", priority=Priority.BATCH, image=image or 0)
    for alike in (None, wish):
        asked: dict[str, Any] = {"worker": "w1", "lease_seconds": 60, "alike": alike}
        assert store.claim(["core"], **asked, kinds={"core": now}) == []
    # A front that has just looked does not scan the queue again at once: each look has its own.
    assert not store.is_overtaken(["core"], Priority.BATCH + 1, front=Front(), kinds={"core": now})
    assert store.waiting(["core"], kinds={"core": now}) == []
    words = unserved_words(queries, run, seconds=60.0)
    assert f"1 line was assembled for {was}, but workers have core as {now} now" in words
    assert (f"farm cancel {run}" in words, status_of(store, check)) == (True, Status.QUEUED)
    assert store.is_overtaken(["core"], Priority.BATCH + 1, front=Front(), kinds={"core": was})
    assert store.waiting(["core"], kinds={"core": was}) == ["core"]
    (claim,) = store.claim(["core"], worker="w1", lease_seconds=60, kinds={"core": was})
    assert claim.check_id == check


def test_what_an_older_release_stored_is_of_any_kind(store: Store, check_id: int) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE checks SET kind = NULL"))
    (claim,) = store.claim(["core"], worker="w1", lease_seconds=60, kinds={"core": Kind.METAMATH})
    assert claim.check_id == check_id


def test_a_finished_check_keeps_its_first_verdict(store: Store, queries: Queries, run_id: str) -> None:
    (claim,) = claims(store)
    assert finished(store, claim)
    assert not finished(store, claim, exit_status=1, limit="wall")
    verdict = queries.line(run_id, 0, 1).verdict
    assert verdict is not None
    assert verdict.outcome == Outcome.PROVED


def test_verdicts_are_recorded_together_and_each_for_itself(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    run_id = load(store, tmp_path / "a.jsonl", *lines(3))
    one, two, three = claims(store)
    assert finished(store, two)
    decisions = [(one, a_decision()), (two, a_decision(exit_status=1)), (three, a_decision(limit="wall"))]
    assert store.record(decisions).check_ids == {one.check_id, three.check_id}
    found = [job.verdict.outcome for job in queries.judged(run_id, 0) if job.verdict]
    assert found == [Outcome.PROVED, Outcome.PROVED, Outcome.TIMEOUT]


def test_of_two_attempts_in_one_batch_only_the_one_that_is_held_counts(
    store: Store, queries: Queries, run_id: str, check_id: int
) -> None:
    lost = claimed(store, check_id, lease_seconds=-1)
    store.sweep(checker_version="1")
    (held,) = claims(store)
    recorded = store.record([(held, a_decision()), (lost, a_decision(limit="wall"))])
    assert (recorded.check_ids, recorded.anew) == ({check_id}, 0)
    assert outcomes(queries, run_id) == ["lost", "proved"]


def test_a_verdict_keeps_what_the_audit_found_whatever_names_a_module_has(
    store: Store, queries: Queries, run_id: str
) -> None:
    audit = against("axiom", "a\0b \\u0000 \ud800", "a\0b")
    (claim,) = claims(store)
    assert finished(store, claim, audit=audit)
    verdict = queries.line(run_id, 0, 1).verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.REJECTED, Reason.AXIOM)
    assert verdict.audit == against("axiom", "a\ufffdb \\u0000 \ufffd", "a\ufffdb")


def test_a_verdict_keeps_leans_messages(store: Store, queries: Queries, run_id: str) -> None:
    message = Message(
        severity="error",
        kind="k",
        text="nul \0, ℝ and \ud800",
        line=1,
        column=2,
        end_line=None,
        end_column=None,
    )
    (claim,) = claims(store)
    finished(store, claim, exit_status=1, messages=(message,))
    verdict = queries.line(run_id, 0, 1).verdict
    assert verdict is not None
    assert verdict.messages[0].text == "nul \ufffd, ℝ and \ufffd"


@pytest.mark.parametrize("status", list(Status))
def test_only_a_queued_check_can_be_claimed(store: Store, check_id: int, status: Status) -> None:
    force(store, check_id, status)
    assert bool(claims(store)) == (status is Status.QUEUED)


@pytest.mark.parametrize("status", list(Status))
def test_only_a_running_check_can_be_finished_or_given_back(
    store: Store, tmp_path: Path, status: Status
) -> None:
    load(store, tmp_path / "a.jsonl", *lines(2))
    first, second = claims(store)
    for claim in (first, second):
        force(store, claim.check_id, status)
    assert finished(store, first) == (status is Status.RUNNING)
    assert give_back(store, second) == (Status.QUEUED in TRANSITIONS[status])


def test_a_check_given_back_is_tried_again(store: Store, queries: Queries, run_id: str) -> None:
    (claim,) = claims(store)
    give_back(store, claim, detail="no disk \0")
    (again,) = claims(store)
    assert (again.attempt, again.failures) == (2, 1)
    first, second = queries.attempts(run_id, 0, 1)
    assert (first["outcome"], first["detail"], second["outcome"]) == ("judge_error", "no disk \ufffd", None)


@pytest.mark.usefixtures("run_id")
def test_what_a_worker_gives_back_unharmed_is_no_failure(store: Store) -> None:
    for number in range(1, 2 * ATTEMPTS):
        (claim,) = claims(store)
        assert (claim.attempt, claim.failures) == (number, 0)
        give_back(store, claim, failed=False)


class TestWhatThisReleaseCannotRead:
    """A newer release's options; every other check is claimed, and nobody is blamed."""

    @pytest.fixture(params=['{"moon": "reject"}', '{"axiom": "moon"}', '["moon"]'])
    def run(self, request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> str:
        """A run of three lines, the first of which cannot be read."""
        run_id = load(store, tmp_path / "a.jsonl", *lines(3))
        with store.engine.begin() as connection:
            connection.execute(
                text("UPDATE checks SET policy = CAST(:policy AS jsonb) WHERE id = :id"),
                {"policy": request.param, "id": checks_of(store, run_id)[0]},
            )
        return run_id

    @pytest.mark.parametrize("most", [1, 64])
    def test_it_goes_back_unharmed_and_what_is_behind_it_is_claimed(
        self, store: Store, queries: Queries, run: str, most: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        front = Front()
        unreadable, *others = checks_of(store, run)
        for _ in range(ATTEMPTS):
            for claim in store.claim(["core"], worker="w1", lease_seconds=60, most=most, front=front):
                assert claim.check_id == others.pop(0)
        assert others == []
        assert status_of(store, unreadable) == Status.QUEUED
        assert outcomes(queries, run) == ["returned"]
        with store.engine.connect() as connection:
            asked = text("SELECT failures FROM checks WHERE id = :id")
            assert connection.scalar(asked, {"id": unreadable}) == 0
        assert len(caplog.records) == 1
        assert f"Check {unreadable} is left to newer workers" in caplog.text

    def test_a_worker_that_can_read_it_claims_it(self, store: Store, run: str) -> None:
        store.claim(["core"], worker="w1", lease_seconds=60, most=64)
        with store.engine.begin() as connection:
            connection.execute(text("UPDATE checks SET policy = '{}'"))
        (claim,) = store.claim(["core"], worker="w2", lease_seconds=60, most=64)
        assert (claim.check_id, claim.attempt, claim.failures) == (checks_of(store, run)[0], 2, 0)


class TestLeases:
    def test_one_that_ran_out_is_taken_back_and_its_late_result_refused(
        self, store: Store, queries: Queries, run_id: str, check_id: int
    ) -> None:
        late = claimed(store, check_id, lease_seconds=-1)
        assert store.sweep(checker_version="1").taken_back == 1
        assert not finished(store, late)
        (again,) = claims(store)
        assert not finished(store, late)
        assert finished(store, again)
        assert outcomes(queries, run_id) == ["lost", "proved"]

    @pytest.mark.usefixtures("run_id")
    def test_one_that_runs_is_not_taken_back(self, store: Store) -> None:
        claims(store)
        assert store.sweep(checker_version="1").taken_back == 0

    def test_what_loses_every_worker_ends_as_judge_error_with_every_attempt_on_record(
        self, store: Store, queries: Queries, run_id: str, check_id: int
    ) -> None:
        for _ in range(ATTEMPTS):
            claimed(store, check_id, lease_seconds=-1)
            store.sweep(checker_version="1")
        verdict = queries.line(run_id, 0, 1).verdict
        assert verdict is not None
        assert (verdict.outcome, verdict.reason) == (Outcome.JUDGE_ERROR, "worker_lost")
        assert status_of(store, check_id) == "done"
        assert outcomes(queries, run_id) == ["lost"] * ATTEMPTS

    def test_a_worker_hears_which_are_no_longer_its_own(self, store: Store, tmp_path: Path) -> None:
        kept, lost = checks_of(store, load(store, tmp_path / "a.jsonl", *lines(2)))
        held = [claimed(store, kept).hold, claimed(store, lost, lease_seconds=-1).hold]
        assert store.lost(held) == []
        store.sweep(checker_version="1")
        assert store.lost(held) == held[1:]

    def test_they_are_extended_only_for_the_attempt_that_is_held(self, store: Store, check_id: int) -> None:
        claim = claimed(store, check_id, lease_seconds=-1)
        moment = claim.claimed_at
        store.extend([(check_id, claim.attempt + 1, moment)], lease_seconds=60)
        store.extend([(check_id, claim.attempt, moment + timedelta(microseconds=1))], lease_seconds=60)
        assert store.sweep(checker_version="1").taken_back == 1
        again = claimed(store, check_id, lease_seconds=-1)
        store.extend([again.hold], lease_seconds=60)
        assert store.sweep(checker_version="1").taken_back == 0

    def test_a_sweep_leaves_the_work_to_one_that_is_under_way(self, store: Store, check_id: int) -> None:
        claimed(store, check_id, lease_seconds=-1)
        with store.transaction() as connection:
            assert connection.scalar(text("SELECT 1 FROM sweeping FOR UPDATE"))
            assert store.sweep(checker_version="1").taken_back == 0
        assert store.sweep(checker_version="1").taken_back == 1


class TestWhatMayBringWorkersDown:
    def failed(self, store: Store, count: int, times: int) -> None:
        """Have the farm fail so often at so many checks."""
        for _ in range(times):
            for claim in store.claim(["core"], worker="w1", lease_seconds=60, most=count):
                give_back(store, claim)

    def test_one_failure_is_nothing_special(self, store: Store, tmp_path: Path) -> None:
        load(store, tmp_path / "a.jsonl", *lines(6))
        self.failed(store, 4, 1)
        assert [(claim.failures, claim.suspect) for claim in claims(store)] == [(1, False)] * 4 + [
            (0, False)
        ] * 2

    def test_what_has_one_attempt_left_is_claimed_one_by_one_beside_others(
        self, store: Store, tmp_path: Path
    ) -> None:
        load(store, tmp_path / "a.jsonl", *lines(6))
        self.failed(store, 4, ATTEMPTS - 1)
        assert sorted(claim.suspect for claim in claims(store)) == [False, False, True]
        assert [claim.suspect for claim in claims(store)] == [True]

    def test_only_the_first_that_is_begun_is_not_claimed_ahead_and_what_may_do_harm_is_the_first(
        self, store: Store, tmp_path: Path
    ) -> None:
        load(store, tmp_path / "a.jsonl", *lines(6))
        assert [claim.ahead for claim in claims(store, most=1)] == [False]
        self.failed(store, 3, ATTEMPTS - 1)
        assert sorted((claim.ahead, claim.suspect) for claim in claims(store)) == [
            (False, True),
            (True, False),
            (True, False),
        ]

    def test_a_worker_that_holds_one_leaves_the_others(self, store: Store, tmp_path: Path) -> None:
        load(store, tmp_path / "a.jsonl", *lines(3))
        self.failed(store, 2, ATTEMPTS - 1)
        taken = store.claim(["core"], worker="w1", lease_seconds=60, most=5, suspects=False)
        assert [claim.failures for claim in taken] == [0]


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("UPDATE checks SET status = 'nonsense'", "checks_status_known_check"),
        ("UPDATE checks SET status = 'running'", "checks_lease_while_running_check"),
        ("UPDATE checks SET memory_mib = 0", "checks_limits_positive_check"),
        ("UPDATE programs SET source = 'forged'", "programs_sha256_true_check"),
        ("UPDATE jobs SET cancelled = 'nonsense'", "jobs_cancelled_known_check"),
    ],
)
@pytest.mark.usefixtures("run_id")
def test_the_database_refuses_what_breaks_a_rule(store: Store, statement: str, constraint: str) -> None:
    with pytest.raises(IntegrityError, match=constraint), store.engine.begin() as connection:
        connection.execute(text(statement))


class TestFindingARun:
    @pytest.fixture
    def three(self, store: Store, tmp_path: Path) -> list[str]:
        return [load(store, tmp_path / f"{number}.jsonl", line()) for number in range(3)]

    def test_the_newest_is_the_default(self, queries: Queries, three: list[str]) -> None:
        assert queries.run(None).id == three[-1]

    def test_the_beginning_of_an_id_is_enough(self, queries: Queries, three: list[str]) -> None:
        assert queries.run(three[1][:-1]).id == three[1]

    @pytest.mark.usefixtures("three")
    def test_a_beginning_that_two_runs_share_is_refused(self, queries: Queries) -> None:
        with pytest.raises(
            Exception, match="more than one run begins with ''; list all runs with: farm status --runs"
        ):
            queries.run("")

    @pytest.mark.usefixtures("three")
    def test_an_unknown_id_is_refused(self, queries: Queries) -> None:
        with pytest.raises(Exception, match="no run begins with '11'"):
            queries.run("11")


@pytest.fixture
def restored(store: Store) -> Iterator[Store]:
    """The database as it was when the test began, under another name."""
    store.engine.dispose()
    url = store.engine.url
    name = f"{url.database}_restored"
    words = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*map(sql.Identifier, (name, str(url.database))))
    other = create_engine(url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with other.connect() as connection:
        # A database is copied only while nobody is connected to it; a pooler may be.
        others = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name")
        connection.execute(others, {"name": url.database})
        connection.connection.driver_connection.execute(words)  # type: ignore[union-attr]
    other.dispose()
    engine = postgres.connect(
        url.set(database=name).render_as_string(hide_password=False), application="farm-test"
    )
    yield Store(engine)
    engine.dispose()


def test_what_a_worker_held_before_a_restore_is_not_taken_for_what_has_its_numbers_now(
    store: Store, restored: Store, tmp_path: Path
) -> None:
    load(store, tmp_path / "a.jsonl", line("theorem t : True := trivial"))
    (before,) = claims(store)
    run_id = load(restored, tmp_path / "b.jsonl", line("theorem t : False := trivial"))
    (now,) = claims(restored)
    assert now.hold[:2] == before.hold[:2]
    assert restored.lost([before.hold, now.hold]) == [before.hold]
    assert not finished(restored, before)
    assert not restored.give_back([Released.unharmed(before, "the worker is stopping")])
    assert Queries(restored.engine).tally(run_id).statuses == {"running": 1}
    assert finished(restored, now)
