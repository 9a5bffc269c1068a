"""The worker's steps on a real store with real Lean: claim, check, judge, record, and the upkeep beside."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from celery import Celery
from commands import ADMITTED, ENDLESS, PROVED, WRONG, entry
from farms import load
from processes import eventually
from sqlalchemy import Engine, text

from farm.broker import application, publish
from farm.queries import Judged, Queries
from farm.store import MAX_ATTEMPTS, Store
from workers.box.isolation import Isolation, prepared
from workers.checker import Checker
from workers.environments import LeanEnvironment, installed
from workers.tasks import Desk, verify
from workers.upkeep import Upkeep


@pytest.fixture(scope="module")
def isolation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Isolation]:
    with prepared(tmp_path_factory.mktemp("work")) as found:
        yield found


@pytest.fixture(scope="module")
def core(isolation: Isolation, tmp_path_factory: pytest.TempPathFactory) -> LeanEnvironment:
    return installed(tmp_path_factory.mktemp("home"), None, isolation)["core"]


@pytest.fixture(scope="module")
def checker(isolation: Isolation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    with Checker(isolation, home=tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture
def desk(database: Engine, core: LeanEnvironment, checker: Checker) -> Desk:
    desk = Desk(
        store=Store(database), environments={"core": core}, checker=checker, name="w1", lease_seconds=60.0
    )
    desk.store.register(desk.served())
    return desk


@pytest.fixture
def queries(database: Engine) -> Queries:
    return Queries(database)


@pytest.fixture
def app(redis_database: tuple[str, redis.Redis]) -> Iterator[Celery]:
    app = application(redis_database[0])
    yield app
    app.close()


def only(desk: Desk, question: str) -> object:
    with desk.store.engine.connect() as connection:
        return connection.scalar(text(question))


def loaded(desk: Desk, folder: Path, kind: tuple[str, str], **more: object) -> tuple[str, int]:
    """Store a run of one line and return its id and the check's."""
    run_id = load(desk.store, folder / "a.jsonl", entry(kind, 1, **more))
    return run_id, int(str(only(desk, "SELECT max(id) FROM checks")))


def judged(queries: Queries, run_id: str) -> Judged:
    return queries.line(run_id, 0, 1)


def attempts(queries: Queries, run_id: str) -> list[str | None]:
    return [attempt["outcome"] for attempt in queries.attempts(run_id, 0, 1)]


@pytest.mark.parametrize("kind", [PROVED, WRONG, ADMITTED, ENDLESS])
def test_a_check_is_claimed_checked_judged_and_recorded(
    desk: Desk, queries: Queries, core: LeanEnvironment, tmp_path: Path, kind: tuple[str, str]
) -> None:
    run_id, check_id = loaded(desk, tmp_path, kind)
    verify(desk, check_id)
    line = judged(queries, run_id)
    assert line.status == "done"
    assert line.verdict is not None
    assert (line.verdict.outcome, line.verdict.reason) == kind
    assert (line.verdict.environment_digest, line.verdict.toolchain) == (core.digest, core.toolchain)
    assert line.verdict.wall_seconds > 0
    assert attempts(queries, run_id) == [kind[0]]


def test_a_message_that_comes_twice_changes_nothing(desk: Desk, queries: Queries, tmp_path: Path) -> None:
    run_id, check_id = loaded(desk, tmp_path, PROVED)
    verify(desk, check_id)
    verify(desk, check_id)
    assert attempts(queries, run_id) == ["proved"]


def test_a_message_about_a_check_that_is_gone_is_passed_over(desk: Desk) -> None:
    verify(desk, 10**12)


def test_a_check_of_an_environment_that_is_not_here_is_left_to_others(
    desk: Desk, queries: Queries, tmp_path: Path
) -> None:
    run_id, check_id = loaded(desk, tmp_path, PROVED)
    verify(dataclasses.replace(desk, environments={}), check_id)
    assert judged(queries, run_id).status == "queued"
    assert attempts(queries, run_id) == []


def test_a_failure_of_the_farm_is_tried_again_and_named_only_in_the_end(
    desk: Desk, queries: Queries, core: LeanEnvironment, tmp_path: Path
) -> None:
    broken = dataclasses.replace(core, digest="none", lean=(str(tmp_path / "no-lean-here"),))
    run_id, check_id = loaded(desk, tmp_path, PROVED)
    for number in range(1, MAX_ATTEMPTS):
        verify(dataclasses.replace(desk, environments={"core": broken}), check_id)
        assert judged(queries, run_id).status == "queued"
        assert attempts(queries, run_id) == ["judge_error"] * number
    verify(dataclasses.replace(desk, environments={"core": broken}), check_id)
    line = judged(queries, run_id)
    assert line.status == "done"
    assert line.verdict is not None
    assert line.verdict.outcome == "judge_error"


def test_a_failure_of_the_farm_on_one_machine_is_mended_on_another(
    desk: Desk, queries: Queries, core: LeanEnvironment, tmp_path: Path
) -> None:
    broken = dataclasses.replace(core, digest="none", lean=(str(tmp_path / "no-lean-here"),))
    run_id, check_id = loaded(desk, tmp_path, PROVED)
    verify(dataclasses.replace(desk, environments={"core": broken}), check_id)
    verify(desk, check_id)
    assert attempts(queries, run_id) == ["judge_error", "proved"]


@contextmanager
def verifying(desk: Desk, check_id: int) -> Iterator[threading.Thread]:
    """Verify in a thread of its own; the check is running when the block begins, and over at its end."""
    # A daemon: should the test fail, it must not go on asking for a server that is gone.
    thread = threading.Thread(target=verify, args=(desk, check_id), daemon=True)
    thread.start()
    eventually(lambda: desk.held.attempts())
    yield thread
    thread.join(30)
    assert not thread.is_alive()


def expire(desk: Desk) -> None:
    with desk.store.engine.begin() as connection:
        connection.execute(text("UPDATE checks SET lease_until = now() - interval '1 second'"))


def test_upkeep_extends_the_leases_of_what_runs(desk: Desk, app: Celery, tmp_path: Path) -> None:
    _, check_id = loaded(desk, tmp_path, ENDLESS, timeout=3)
    with verifying(desk, check_id):
        before = only(desk, "SELECT lease_until FROM checks")
        Upkeep(desk, app).heartbeat()
        after = only(desk, "SELECT lease_until FROM checks")
        assert before is not None
        assert after > before


def test_a_check_whose_lease_was_lost_is_ended_and_leaves_no_verdict(
    desk: Desk, queries: Queries, app: Celery, tmp_path: Path
) -> None:
    run_id, check_id = loaded(desk, tmp_path, ENDLESS, timeout=60)
    with verifying(desk, check_id) as thread:
        expire(desk)
        assert desk.store.take_back(checker_version="1") == 1
        Upkeep(desk, app).heartbeat()
        thread.join(20)
        assert not thread.is_alive()
    assert attempts(queries, run_id) == ["lost"]
    assert judged(queries, run_id).verdict is None
    assert judged(queries, run_id).status == "queued"


def test_upkeep_takes_back_what_a_dead_worker_held_and_sends_it_again(
    desk: Desk, queries: Queries, app: Celery, redis_database: tuple[str, redis.Redis], tmp_path: Path
) -> None:
    run_id, check_id = loaded(desk, tmp_path, PROVED)
    assert desk.store.claim(check_id, worker="dead", served=["core"], lease_seconds=60)
    expire(desk)
    Upkeep(desk, app).sweep()
    assert judged(queries, run_id).status == "queued"
    assert redis_database[1].llen("farm:farm.core") == 1
    verify(desk, check_id)
    assert attempts(queries, run_id) == ["lost", "proved"]


def test_upkeep_sends_what_a_submitter_stored_and_never_sent(
    desk: Desk, app: Celery, redis_database: tuple[str, redis.Redis], tmp_path: Path
) -> None:
    loaded(desk, tmp_path, PROVED)
    Upkeep(desk, app).sweep()
    assert redis_database[1].llen("farm:farm.core") == 1


def test_upkeep_sends_again_what_redis_lost(
    desk: Desk, app: Celery, redis_database: tuple[str, redis.Redis], tmp_path: Path
) -> None:
    loaded(desk, tmp_path, PROVED)
    publish(app, desk.store)
    redis_database[1].flushdb()
    with desk.store.engine.begin() as connection:
        connection.execute(text("UPDATE checks SET published_at = now() - interval '1 hour'"))
    Upkeep(desk, app).sweep()
    assert redis_database[1].llen("farm:farm.core") == 1


def test_upkeep_says_that_its_environments_are_served(desk: Desk, queries: Queries, app: Celery) -> None:
    with desk.store.engine.begin() as connection:
        connection.execute(text("UPDATE environments SET seen_at = now() - interval '1 hour'"))
    Upkeep(desk, app).heartbeat()
    assert only(desk, "SELECT now() - seen_at < interval '1 minute' FROM environments") is True
    assert [each.name for each in queries.served()] == ["core"]


def test_leases_are_extended_in_time_while_redis_is_down(
    desk: Desk, queries: Queries, tmp_path: Path
) -> None:
    nowhere = application("redis+socket:///nowhere/redis.sock")
    hasty = dataclasses.replace(desk, lease_seconds=1.0)
    upkeep = Upkeep(hasty, nowhere)
    run_id, check_id = loaded(desk, tmp_path, ENDLESS, timeout=4)
    upkeep.start()
    try:
        with verifying(hasty, check_id) as thread:
            eventually(lambda: hasty.store.take_back(checker_version="1") or not thread.is_alive())
        assert attempts(queries, run_id) == ["timeout"]
    finally:
        upkeep.stop()
        nowhere.close()


def test_an_environment_that_a_run_waits_for_and_nobody_serves_is_named(
    desk: Desk, queries: Queries, tmp_path: Path
) -> None:
    run_id, check_id = loaded(desk, tmp_path, PROVED)
    assert queries.unserved(run_id, seconds=30) == []
    with desk.store.engine.begin() as connection:
        connection.execute(text("UPDATE environments SET seen_at = now() - interval '1 hour'"))
    assert queries.unserved(run_id, seconds=30) == ["core"]
    verify(desk, check_id)
    assert queries.unserved(run_id, seconds=30) == []
