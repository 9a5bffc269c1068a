"""The store on a real PostgreSQL: each transition happens once, and only from where it may start."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from farms import CORE, a_decision
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from farm.assurance import Assurance
from farm.job import TRANSITIONS, Limits, Status
from farm.load import NewJob, loading
from farm.manifest import Fingerprint
from farm.program import Program
from farm.queries import Queries
from farm.store import MAX_ATTEMPTS, Claim, Store
from farm.verdict import Message, Outcome, Reason, judge_text


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE])
    return store


@pytest.fixture
def queries(database: Engine) -> Queries:
    return Queries(database)


def a_program(words: str) -> Program:
    return Program(text=words, segments=(), warnings=(), submitted_from=0)


def a_job(line: int, words: str = "theorem t : True := trivial") -> NewJob:
    return NewJob(
        manifest=0,
        line=line,
        name=f"t{line}",
        group=None,
        environment="core",
        limits=Limits(wall_seconds=3.0, cpu_seconds=6.0, memory_mib=512),
        program=a_program(words),
        challenge=None,
        verdict=judge_text(words),
    )


def a_run(store: Store, *jobs: NewJob, run_id: str = "run1") -> list[int]:
    with loading(store, run_id, {"assembly": {"profile": "farm"}}, assurance=Assurance()) as load:
        for job in jobs:
            load.add(job)
        load.close_manifest(Path("/manifest.jsonl"), Fingerprint(sha256="f" * 64, size=10))
    with store.engine.connect() as connection:
        asked = text("SELECT check_id FROM jobs WHERE run_id = :r ORDER BY line")
        return list(connection.scalars(asked, {"r": run_id}))


def claimed(store: Store, check_id: int, *, lease: float = 60.0) -> Claim:
    claim = store.claim(check_id, worker="w1", served=["core"], lease_seconds=lease)
    assert claim is not None
    return claim


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


def test_a_loaded_run_is_queued_line_by_line(store: Store, queries: Queries) -> None:
    a_run(store, a_job(1), a_job(3), a_job(4))
    assert queries.tally("run1").statuses == {"queued": 3}
    assert [job.line for job in queries.judged("run1", 0)] == [1, 3, 4]


def test_equal_programs_are_stored_once(store: Store) -> None:
    a_run(store, a_job(1), a_job(2), a_job(3, "another"))
    with store.engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM programs")) == 2


def test_a_load_that_fails_leaves_nothing(store: Store, queries: Queries) -> None:
    with pytest.raises(ZeroDivisionError), loading(store, "run1", {}, assurance=Assurance()) as load:
        load.add(a_job(1))
        raise ZeroDivisionError
    assert queries.runs() == []
    with store.engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM programs")) == 0


@pytest.mark.parametrize("words", ["nul \0 inside", "lone \ud800 surrogate"])
def test_a_text_lean_cannot_be_given_is_judged_at_once_and_kept_as_it_was(
    store: Store, queries: Queries, words: str
) -> None:
    (check_id,) = a_run(store, a_job(1, words))
    job = queries.line("run1", 0, 1)
    assert job.program == words
    assert job.verdict is not None
    assert (job.verdict.outcome, job.verdict.reason) == (Outcome.REJECTED, Reason.INVALID_TEXT)
    assert store.claim(check_id, worker="w1", served=["core"], lease_seconds=60) is None


def test_a_name_postgresql_cannot_hold_is_stored_readably(store: Store, queries: Queries) -> None:
    job = a_job(1)
    a_run(store, NewJob(**{f: getattr(job, f) for f in NewJob.__slots__} | {"name": "a\0b\ud800"}))
    assert queries.line("run1", 0, 1).name == "a\ufffdb?"


def test_a_claim_brings_the_program_and_its_limits(store: Store) -> None:
    (check_id,) = a_run(store, a_job(1, "the program ℝ"))
    claim = claimed(store, check_id)
    assert (claim.check.program, claim.attempt, claim.environment) == ("the program ℝ", 1, "core")
    assert claim.check.limits == Limits(wall_seconds=3.0, cpu_seconds=6.0, memory_mib=512)


def test_of_many_claims_at_once_one_gets_the_check(store: Store) -> None:
    (check_id,) = a_run(store, a_job(1))

    def claim(worker: int) -> Claim | None:
        return store.claim(check_id, worker=f"w{worker}", served=["core"], lease_seconds=60)

    with ThreadPoolExecutor(8) as pool:
        got = [claim for claim in pool.map(claim, range(32)) if claim]
    assert len(got) == 1


def test_a_worker_that_does_not_serve_the_environment_gets_nothing(store: Store) -> None:
    (check_id,) = a_run(store, a_job(1))
    assert store.claim(check_id, worker="w1", served=["mathlib"], lease_seconds=60) is None


def test_a_finished_check_keeps_its_first_verdict(store: Store, queries: Queries) -> None:
    (check_id,) = a_run(store, a_job(1))
    claim = claimed(store, check_id)
    assert store.finish(claim, a_decision())
    assert not store.finish(claim, a_decision(exit_status=1, limit="wall"))
    verdict = queries.line("run1", 0, 1).verdict
    assert verdict is not None
    assert verdict.outcome is Outcome.PROVED


def test_a_verdict_keeps_what_the_audit_found_whatever_names_a_module_has(
    store: Store, queries: Queries
) -> None:
    (check_id,) = a_run(store, a_job(1))
    finding = {"word": "axiom", "name": "a\0b", "sentence": "a\0b \\u0000 is not so."}
    audit = {"accepted": False, "findings": [finding]}
    assert store.finish(claimed(store, check_id), a_decision(audit=audit))
    verdict = queries.line("run1", 0, 1).verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.REJECTED, Reason.AXIOM)
    assert verdict.audit is not None
    assert verdict.audit["findings"][0]["name"] == "a\ufffdb"


def test_a_verdict_keeps_leans_messages(store: Store, queries: Queries) -> None:
    (check_id,) = a_run(store, a_job(1))
    message = Message(
        severity="error",
        kind="k",
        text="nul \0, ℝ and \ud800",
        line=1,
        column=2,
        end_line=None,
        end_column=None,
    )
    store.finish(claimed(store, check_id), a_decision(exit_status=1, messages=(message,)))
    verdict = queries.line("run1", 0, 1).verdict
    assert verdict is not None
    assert verdict.messages[0].text == "nul \ufffd, ℝ and ?"


@pytest.mark.parametrize("status", list(Status))
def test_only_a_queued_check_can_be_claimed(store: Store, status: Status) -> None:
    (check_id,) = a_run(store, a_job(1))
    force(store, check_id, status)
    claim = store.claim(check_id, worker="w1", served=["core"], lease_seconds=60)
    assert (claim is not None) == (status is Status.QUEUED)


@pytest.mark.parametrize("status", list(Status))
def test_only_a_running_check_can_be_finished_or_given_back(store: Store, status: Status) -> None:
    first, second = a_run(store, a_job(1), a_job(2))
    claims = claimed(store, first), claimed(store, second)
    for claim in claims:
        force(store, claim.check_id, status)
    finished = store.finish(claims[0], a_decision())
    given_back = store.give_back(claims[1], outcome="judge_error", detail="")
    assert finished == (status is Status.RUNNING)
    assert given_back == (Status.QUEUED in TRANSITIONS[status])


def test_a_check_given_back_is_sent_and_tried_again(store: Store, queries: Queries) -> None:
    (check_id,) = a_run(store, a_job(1))
    with store.outbox():
        pass
    store.give_back(claimed(store, check_id), outcome="judge_error", detail="no disk \0")
    with store.outbox() as rows:
        assert rows == [(check_id, "core")]
    assert claimed(store, check_id).attempt == 2
    first, second = queries.attempts("run1", 0, 1)
    assert (first["outcome"], first["detail"], second["outcome"]) == ("judge_error", "no disk \ufffd", None)


def test_an_expired_lease_is_taken_back_and_its_late_result_refused(store: Store, queries: Queries) -> None:
    (check_id,) = a_run(store, a_job(1))
    late = claimed(store, check_id, lease=-1)
    assert store.take_back(checker_version="1") == 1
    assert not store.finish(late, a_decision())
    again = claimed(store, check_id)
    assert not store.finish(late, a_decision())
    assert store.finish(again, a_decision())
    assert [a["outcome"] for a in queries.attempts("run1", 0, 1)] == ["lost", "proved"]


def test_a_lease_still_running_is_not_taken_back(store: Store) -> None:
    (check_id,) = a_run(store, a_job(1))
    claimed(store, check_id)
    assert store.take_back(checker_version="1") == 0


def test_what_loses_every_worker_ends_as_judge_error(store: Store, queries: Queries) -> None:
    (check_id,) = a_run(store, a_job(1))
    for _ in range(MAX_ATTEMPTS):
        claimed(store, check_id, lease=-1)
        store.take_back(checker_version="1")
    verdict = queries.line("run1", 0, 1).verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.reason) == (Outcome.JUDGE_ERROR, "worker_lost")
    assert status_of(store, check_id) == "done"


def test_a_heartbeat_says_which_leases_are_lost(store: Store) -> None:
    kept, lost = a_run(store, a_job(1), a_job(2))
    claims = claimed(store, kept), claimed(store, lost, lease=-1)
    store.take_back(checker_version="1")
    held = {claim.check_id: claim.attempt for claim in claims}
    assert store.extend(held, lease_seconds=60) == {lost}


def test_what_is_in_the_outbox_is_nobody_elses(store: Store) -> None:
    a_run(store, *(a_job(n) for n in range(1, 6)))
    with store.outbox(most=3) as mine, store.outbox(most=3) as others:
        assert len(mine) == 3
        assert len(others) == 2
        assert not set(mine) & set(others)


def test_an_outbox_whose_sending_fails_is_sent_again(store: Store) -> None:
    (check_id,) = a_run(store, a_job(1))
    with pytest.raises(ZeroDivisionError), store.outbox():
        raise ZeroDivisionError
    with store.outbox() as rows:
        assert rows == [(check_id, "core")]
    with store.outbox() as rows:
        assert rows == []


def test_what_was_sent_long_ago_is_sent_again_on_request(store: Store) -> None:
    (check_id,) = a_run(store, a_job(1))
    with store.outbox():
        pass
    store.unpublish(["core"], older_than_seconds=3600)
    with store.outbox() as rows:
        assert rows == []
    store.unpublish(["core"], older_than_seconds=-1)
    with store.outbox() as rows:
        assert rows == [(check_id, "core")]


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("UPDATE checks SET status = 'nonsense'", "checks_status_known_check"),
        ("UPDATE checks SET status = 'running'", "checks_lease_while_running_check"),
        ("UPDATE checks SET memory_mib = 0", "checks_limits_positive_check"),
        ("UPDATE programs SET source = 'forged'", "programs_sha256_true_check"),
    ],
)
def test_the_database_refuses_what_breaks_a_rule(store: Store, statement: str, constraint: str) -> None:
    a_run(store, a_job(1))
    with pytest.raises(IntegrityError, match=constraint), store.engine.begin() as connection:
        connection.execute(text(statement))


@pytest.fixture
def three_runs(store: Store) -> Iterator[None]:
    for run_id in ("aa1", "ab1", "bb1"):
        a_run(store, a_job(1), run_id=run_id)
    return


@pytest.mark.usefixtures("three_runs")
class TestFindingARun:
    def test_the_newest_is_the_default(self, queries: Queries) -> None:
        assert queries.run(None).id == "bb1"

    def test_the_beginning_of_an_id_is_enough(self, queries: Queries) -> None:
        assert queries.run("ab").id == "ab1"

    def test_a_beginning_that_two_runs_share_is_refused(self, queries: Queries) -> None:
        with pytest.raises(Exception, match="more than one run begins with 'a'; see them with: farm list"):
            queries.run("a")

    def test_an_unknown_id_is_refused(self, queries: Queries) -> None:
        with pytest.raises(Exception, match="no run begins with 'zz'"):
            queries.run("zz")
