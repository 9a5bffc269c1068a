"""The worker's steps on a real store with real Lean: claim, check, judge, record, and heartbeat."""

from __future__ import annotations

import dataclasses
import io
import json
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import redis
from celery import Celery
from farm_workers.box.isolation import Isolation, prepared
from farm_workers.box.once import never
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import KernelChecker, LeanEnvironment
from farm_workers.lean.way import COLD, FORKED, PREPARED, WAYS
from farm_workers.loop import process
from farm_workers.loop.context import Context
from farm_workers.loop.heartbeat import Heartbeat, Presence, of_many
from farm_workers.loop.record import MOST, Completed, nobody
from farm_workers.loop.verify import verify, work
from farm_workers.machine.environments import installed
from farm_workers.machine.judges import Judges
from farm_workers.metrics import events
from farm_workers.systems.lean.judge import LeanJudge
from sqlalchemy import Engine, text

from farm import log
from farm.broker import application
from farm.completions import Publisher
from farm.errors import FarmError, ServerDown
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.judging.verdict import judge
from farm.kinds import Kind
from farm.runs import revise
from farm.settings import ATTEMPTS
from farm.store.attempt import Claim
from farm.store.postgres import connect
from farm.store.queries import Queries
from farm.store.records import Judged
from farm.store.transitions import Store
from farm.store.workers import Workers
from farm.version import farm_version
from tests.commands import ADMITTED, ENDLESS, PROVED, WRONG, entry
from tests.farms import a_decision, load
from tests.made_once import MadeOnce, copied
from tests.own_redis import own_redis
from tests.processes import PATIENCE, eventually, family
from tests.reports import SEALED, with_facts
from tests.scraping import by, happened, scraped
from tests.toolchains import script, toolchain

CASES = Path(__file__).parents[1] / "cases" / "verdict"


@pytest.fixture(scope="module")
def isolation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Isolation]:
    with prepared(tmp_path_factory.mktemp("work")) as found:
        yield found


@pytest.fixture(scope="module")
def core(
    isolation: Isolation, made_once: MadeOnce, tmp_path_factory: pytest.TempPathFactory
) -> LeanEnvironment:
    made = made_once("environments", lambda folder: installed(folder, None, isolation))
    return installed(copied(made, tmp_path_factory.mktemp("core")), None, isolation)["core"]


@pytest.fixture(scope="module")
def checker(isolation: Isolation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    with Checker(isolation, home=tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture
def context(database: Engine, core: LeanEnvironment, checker: Checker) -> Iterator[Context]:
    with new_context(database, core, checker) as found:
        yield found


@contextmanager
def new_context(
    database: Engine,
    core: LeanEnvironment,
    checker: Checker,
    *,
    lease_seconds: float = 60.0,
    completed: Completed = nobody,
) -> Iterator[Context]:
    context = process.new_context(
        Store(database),
        {"core": core},
        Judges({Kind.LEAN: lambda: LeanJudge(checker)}, way=checker.way, isolation=checker.isolation),
        name="w1",
        lease_seconds=lease_seconds,
        concurrency=2,
        completed=completed,
    )
    context.store.register(context.served())
    yield context
    context.leases.recall()  # what cannot be recorded is not to be tried for ever
    context.recorder.stop()


@pytest.fixture
def queries(database: Engine) -> Queries:
    return Queries(database)


@pytest.fixture
def app(redis_database: tuple[str, redis.Redis]) -> Iterator[Celery]:
    app = application(redis_database[0])
    yield app
    app.close()


def only(context: Context, question: str) -> object:
    with context.store.engine.connect() as connection:
        return connection.scalar(text(question))


def loaded(context: Context, folder: Path, *kinds: tuple[str, str], **more: object) -> str:
    """Store a run of these lines, on the quickest tier, and return its id."""
    entries = [entry(kind, number, **more) for number, kind in enumerate(kinds, 1)]
    return load(context.store, folder / "a.jsonl", *entries, assurance=Assurance(tier=Tier.LEAN))


def judged(queries: Queries, run_id: str) -> Judged:
    return queries.line(run_id, 0, 1)


def attempts(queries: Queries, run_id: str, number: int = 1) -> list[str | None]:
    return [attempt["outcome"] for attempt in queries.attempts(run_id, 0, number)]


def recorded(context: Context) -> None:
    """Wait until nothing is held any more: what became of it is in the store."""
    eventually(lambda: not context.leases.all())


@pytest.mark.parametrize("kind", [PROVED, WRONG, ADMITTED, ENDLESS])
def test_a_check_is_claimed_checked_judged_and_recorded(
    context: Context, queries: Queries, core: LeanEnvironment, tmp_path: Path, kind: tuple[str, str]
) -> None:
    run_id = loaded(context, tmp_path, kind)
    work(context)
    recorded(context)
    line = judged(queries, run_id)
    assert line.status == "done"
    assert line.verdict is not None
    assert (line.verdict.outcome, line.verdict.reason) == kind
    assert (line.verdict.environment_digest, line.verdict.toolchain) == (core.digest, core.toolchain)
    assert line.verdict.wall_seconds > 0
    assert attempts(queries, run_id) == [kind[0]]


def test_one_call_is_enough_for_all_that_waits_and_calls_others(
    context: Context, queries: Queries, tmp_path: Path
) -> None:
    run_id = loaded(context, tmp_path, *[PROVED, WRONG, ADMITTED] * 10)
    work(context)
    recorded(context)
    assert queries.tally(run_id).statuses == {"done": 30}
    assert context.calling.is_set()


def test_a_call_too_many_finds_nothing_and_calls_nobody(context: Context) -> None:
    work(context)
    assert not context.calling.is_set()


def test_a_call_beyond_the_places_of_a_worker_begins_nothing(
    context: Context, queries: Queries, tmp_path: Path
) -> None:
    run_id = loaded(context, tmp_path, PROVED)
    with context.threads.occupy_slot(), context.threads.occupy_slot():
        work(context)
        assert context.threads.busy == 2
    assert context.threads.busy == 0
    assert judged(queries, run_id).status == "queued"


@pytest.mark.whole
def test_small_checks_are_claimed_and_recorded_several_at_a_time(
    context: Context, queries: Queries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a small check is depends on the machine; here all of them are.
    monkeypatch.setattr("farm_workers.loop.claim.AHEAD_SECONDS", 60.0)
    monkeypatch.setattr("farm_workers.loop.record.TOGETHER_SECONDS", 60.0)
    run_id = loaded(context, tmp_path, *[PROVED] * 200)
    threads = [threading.Thread(target=work, args=(context,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    recorded(context)
    assert queries.tally(run_id).verdicts == {("proved", "ok"): 200}
    begun, ended = (
        only(context, f"SELECT count(DISTINCT {column}) FROM {table}")
        for column, table in (("started_at", "checks"), ("decided_at", "verdicts"))
    )
    assert int(str(begun)) < 20
    assert int(str(ended)) < 20


def test_a_check_of_an_environment_that_is_not_here_is_left_to_others(
    context: Context, queries: Queries, tmp_path: Path
) -> None:
    run_id = loaded(context, tmp_path, PROVED)
    with context.store.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO environments (name, digest, toolchain, tiers, seen_at) "
                "SELECT 'other', digest, toolchain, tiers, now() FROM environments"
            )
        )
    other = load(context.store, tmp_path / "b.jsonl", entry(PROVED, 1, environment="other"))
    work(context)
    recorded(context)
    assert judged(queries, run_id).status == "done"
    assert judged(queries, other).status == "queued"
    assert attempts(queries, other) == []


def test_a_machine_that_fails_what_it_should_know_gives_its_checks_back_and_takes_no_more(
    database: Engine, queries: Queries, core: LeanEnvironment, checker: Checker, tmp_path: Path
) -> None:
    broken = dataclasses.replace(core, digest="none", lean=(str(tmp_path / "no-lean-here"),))
    with new_context(database, broken, checker) as unwell:
        run_id = loaded(unwell, tmp_path, PROVED, PROVED)
        work(unwell)
        recorded(unwell)
        assert not unwell.is_well
        work(unwell)
        assert unwell.leases.all() == []
        assert attempts(queries, run_id, 1) + attempts(queries, run_id, 2) == ["returned"]
    with new_context(database, core, checker) as well:
        work(well)
        recorded(well)
    assert queries.tally(run_id).verdicts == {("proved", "ok"): 2}


@pytest.mark.whole
def test_an_environment_that_is_broken_holds_up_no_other_one(
    database: Engine,
    app: Celery,
    queries: Queries,
    core: LeanEnvironment,
    checker: Checker,
    tmp_path: Path,
) -> None:
    made = toolchain(tmp_path / "lean", core)
    visible = (*core.visible, *map(str, made.visible))
    broken = dataclasses.replace(core, name="other", digest="o", lean=(str(made.lean),), visible=visible)
    away = made.lean.rename(tmp_path / "away")
    with new_context(database, core, checker) as context:
        context.serve(broken)
        context.store.register(context.served())
        others = load(context.store, tmp_path / "o.jsonl", entry(PROVED, 1, environment="other"))
        work(context)
        recorded(context)
        assert attempts(queries, others) == ["returned"]
        run_id = loaded(context, tmp_path, PROVED, PROVED)
        work(context)
        recorded(context)
        assert queries.tally(run_id).verdicts == {("proved", "ok"): 2}
        assert attempts(queries, others) == ["returned"]
        heartbeat = Heartbeat(context, app, work)
        heartbeat.heartbeat()
        (found,) = Workers(context.store.engine).all()
        (unfit,) = context.pending()
        assert (found.state, [each["name"] for each in found.environments]) == ("serving", ["core"])
        assert (unfit.name, unfit.state, "box_failed" in unfit.reason) == ("other", "unfit", True)
        assert context.waiting() == []
        away.rename(made.lean)
        eventually(lambda: (context.health.look_again(), context.health.is_fit("other"))[1])
        assert (context.pending(), context.waiting()) == ([], ["other"])
        work(context)
        recorded(context)
    assert queries.tally(others).verdicts == {("proved", "ok"): 1}


def crashing(name: str) -> dict[str, object]:
    """Return a manifest line whose program brings down its own Lean."""
    return {"name": name, "predicted_proof": (CASES / "rejected" / "crash" / "program.lean").read_text()}


@pytest.mark.parametrize("way", [FORKED, COLD])
def test_a_program_that_brings_down_its_own_lean_is_rejected_at_once_and_the_machine_is_well(
    database: Engine, core: LeanEnvironment, isolation: Isolation, queries: Queries, tmp_path: Path, way: str
) -> None:
    with (
        Checker(isolation, home=tmp_path, way=way) as checker,
        new_context(database, core, checker) as context,
    ):
        run_id = load(context.store, tmp_path / "a.jsonl", crashing("t"))
        work(context)
        recorded(context)
        assert context.is_well
    assert queries.tally(run_id).verdicts == {("rejected", "crash"): 1}
    assert attempts(queries, run_id) == ["rejected"]


def test_a_crash_is_one_lines_own(context: Context, queries: Queries, tmp_path: Path) -> None:
    run_id = load(context.store, tmp_path / "a.jsonl", crashing("t"), crashing("t"))
    assert queries.tally(run_id).shared == 1
    eventually(lambda: (work(context), queries.tally(run_id).done == 2)[1])
    recorded(context)
    assert queries.tally(run_id).verdicts == {("rejected", "crash"): 2}
    assert queries.tally(run_id).shared == 0


@pytest.mark.parametrize(
    "words",
    [
        "echo 'lean: error while loading shared libraries: libgmp.so.10' >&2; exit 127",
        "exec /dev/null",
        "kill -BUS $$",
    ],
)
@pytest.mark.whole
def test_a_machine_on_which_lean_crashes_rejects_no_proof(
    database: Engine,
    core: LeanEnvironment,
    isolation: Isolation,
    queries: Queries,
    tmp_path: Path,
    words: str,
) -> None:
    lean = script(tmp_path / "broken" / "bin" / "lean", words)
    broken = dataclasses.replace(core, digest="broken", lean=(str(lean),))
    with Checker(isolation, home=tmp_path, way=COLD) as cold, new_context(database, broken, cold) as context:
        run_id = loaded(context, tmp_path, PROVED)
        work(context)
        recorded(context)
        assert not context.is_well
        work(context)
        assert not context.leases.all()
    assert attempts(queries, run_id) == ["returned"]
    assert judged(queries, run_id).status == "queued"


def test_a_machine_that_is_well_again_takes_checks_again(
    context: Context, core: LeanEnvironment, app: Celery, tmp_path: Path
) -> None:
    broken = dataclasses.replace(core, digest="none", lean=(str(tmp_path / "no-lean-here"),))
    assert not context.health.examine(broken)
    Heartbeat(context, app, work).keep()
    assert not context.is_well
    assert context.health.examine(core)
    assert context.is_well


class Faulty(Checker):
    """A checker with a bug that shows at checks, and perhaps another that shows at canaries."""

    bug: Callable[[Report], Report]
    canary_bug: Callable[[Report], Report] | None = None

    def check(
        self,
        check: Check,
        environment: LeanEnvironment,
        *,
        cancelled: Callable[[], bool] = never,
        way: str | None = None,
    ) -> Report:
        report = super().check(check, environment, cancelled=cancelled, way=way)
        bug = self.bug if way is None else self.canary_bug
        return report if bug is None else bug(report)


def raises(_report: Report) -> Report:
    raise RuntimeError("a bug")


def nothing_found(report: Report) -> Report:
    """Return a report that cannot be judged."""
    return dataclasses.replace(report, tier=Tier.KERNEL, audit=cast("Any", {}))


def box_failed(report: Report) -> Report:
    return with_facts(report, box_error="the disk is full")


@pytest.fixture
def faulty(isolation: Isolation, tmp_path: Path) -> Iterator[Faulty]:
    with Faulty(isolation, home=tmp_path / "faulty", way=COLD) as found:
        yield found


@pytest.mark.parametrize("bug", [raises, nothing_found])
@pytest.mark.whole
def test_whatever_raises_in_a_check_is_a_failed_attempt_and_in_the_end_a_judge_error(
    database: Engine,
    core: LeanEnvironment,
    faulty: Faulty,
    queries: Queries,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    bug: Callable[[Report], Report],
) -> None:
    faulty.bug = bug
    with new_context(database, core, faulty) as context:
        run_id = loaded(context, tmp_path, PROVED)
        eventually(lambda: (work(context), queries.tally(run_id).done == 1)[1])
        recorded(context)
        assert context.is_well
    assert attempts(queries, run_id) == ["judge_error"] * ATTEMPTS
    assert queries.tally(run_id).verdicts == {("judge_error", "box_failed"): 1}
    assert sum(each.exc_info is not None for each in caplog.records) == ATTEMPTS


def test_a_machine_on_which_the_known_program_raises_gives_its_check_back_and_takes_no_more(
    database: Engine, core: LeanEnvironment, faulty: Faulty, queries: Queries, tmp_path: Path
) -> None:
    faulty.bug, faulty.canary_bug = box_failed, raises
    with new_context(database, core, faulty) as context:
        run_id = loaded(context, tmp_path, PROVED)
        work(context)
        recorded(context)
        assert not context.is_well
        work(context)
        assert not context.leases.all()
    assert attempts(queries, run_id) == ["returned"]


def test_what_the_kernels_disagree_about_is_recorded_at_once_and_logged_as_an_error(
    database: Engine,
    core: LeanEnvironment,
    checker: Checker,
    queries: Queries,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    other = KernelChecker(name="other", command=("/bin/sh", "-c", "echo no; exit 1"), visible=())
    doubted = dataclasses.replace(core, digest="doubted", checkers=(other,))
    with new_context(database, doubted, checker) as context:
        run_id = load(context.store, tmp_path / "a.jsonl", entry(PROVED, 1))
        work(context)
        recorded(context)
    assert attempts(queries, run_id) == ["judge_error"]
    assert queries.tally(run_id).verdicts == {("judge_error", "kernels_disagree"): 1}
    verdict = judged(queries, run_id).verdict
    assert verdict is not None
    assert verdict.audit is not None
    (logged,) = (each for each in caplog.records if each.levelname == "ERROR")
    for words in ("other rejected it: no", verdict.audit.module_sha256, verdict.audit.sealed_sha256):
        assert words in logged.getMessage()


@pytest.mark.whole
def test_a_lean_that_is_killed_from_outside_is_tried_again_and_named_only_in_the_end(
    database: Engine, core: LeanEnvironment, isolation: Isolation, queries: Queries, tmp_path: Path
) -> None:
    with Checker(isolation, home=tmp_path, way=COLD) as cold, new_context(database, core, cold) as context:
        # Else the Lean that is killed could be the one that reads the header alone, once.
        cold.check(Check.of(program=str(entry(PROVED, 1)["predicted_proof"])), core)
        run_id = loaded(context, tmp_path, ENDLESS, timeout=60)
        for _ in range(ATTEMPTS):
            with working(context):
                context.threads.stopping = True  # or it would take the check again
                eventually(kill_a_lean)
            recorded(context)
            context.threads.stopping = False
    assert attempts(queries, run_id) == ["judge_error"] * ATTEMPTS
    verdict = judged(queries, run_id).verdict
    assert verdict is not None
    assert verdict.outcome == "judge_error"


def kill_a_lean() -> bool:
    """Kill the Lean that this process runs, if it does; an image that waits for checks is none."""
    everyone = family(os.getpid())
    parents = {process.parent for process in everyone}
    leans = [each for each in everyone if each.pid not in parents and "--stdin" in each.command]
    for lean in leans:
        os.kill(lean.pid, signal.SIGKILL)
    return bool(leans)


@contextmanager
def working(context: Context) -> Iterator[threading.Thread]:
    """Work in a thread of its own; a check is running when the block begins, and over at its end."""
    # A daemon: should the test fail, it must not go on asking for a server that is gone.
    thread = threading.Thread(target=work, args=(context,), daemon=True)
    thread.start()
    eventually(lambda: context.leases.all())
    yield thread
    thread.join(30)
    assert not thread.is_alive()


def expire(context: Context) -> None:
    with context.store.engine.begin() as connection:
        connection.execute(text("UPDATE checks SET lease_until = now() - interval '1 second'"))


def test_the_heartbeat_extends_the_leases_of_what_runs(context: Context, app: Celery, tmp_path: Path) -> None:
    loaded(context, tmp_path, ENDLESS, timeout=3)
    with working(context):
        before = only(context, "SELECT lease_until FROM checks")
        Heartbeat(context, app, work).heartbeat()
        after = only(context, "SELECT lease_until FROM checks")
        assert before is not None
        assert after > before


def test_a_heartbeat_that_begins_while_postgresql_is_away_waits_for_it(
    context: Context, app: Celery, caplog: pytest.LogCaptureFixture
) -> None:
    # Short: the name of a socket has 107 characters at most.
    with tempfile.TemporaryDirectory() as folder:
        later = Path(folder) / "later"
        url = context.store.engine.url.update_query_dict({"host": str(later)})
        engine = connect(url.render_as_string(hide_password=False), application="test", works=True)
        heartbeat = Heartbeat(dataclasses.replace(context, store=Store(engine)), app, work)
        beginning = threading.Thread(target=heartbeat.start)
        beginning.start()
        eventually(lambda: "; waiting" in caplog.text)
        later.symlink_to(str(context.store.engine.url.query["host"]))
        beginning.join(30)
        assert not beginning.is_alive()
        heartbeat.stop()
        engine.dispose()


def test_a_check_whose_lease_was_lost_is_ended_and_leaves_no_verdict(
    context: Context, queries: Queries, app: Celery, tmp_path: Path
) -> None:
    run_id = loaded(context, tmp_path, ENDLESS, timeout=60)
    with working(context) as thread:
        context.threads.stopping = True  # or it would take the check again
        expire(context)
        assert context.store.sweep(checker_version="1").taken_back == 1
        Heartbeat(context, app, work).keep()
        thread.join(20)
        assert not thread.is_alive()
    assert attempts(queries, run_id) == ["lost"]
    assert judged(queries, run_id).verdict is None
    assert judged(queries, run_id).status == "queued"


def test_a_check_that_is_cancelled_is_ended(
    context: Context, queries: Queries, app: Celery, tmp_path: Path
) -> None:
    run_id = loaded(context, tmp_path, ENDLESS, timeout=60)
    heartbeat = Heartbeat(context, app, work)
    heartbeat.start()
    try:
        with working(context) as thread:
            assert revise.cancel(context.store, run_id) == 1
            thread.join(20 * PATIENCE)
            assert not thread.is_alive()
    finally:
        heartbeat.stop()
    assert attempts(queries, run_id) == ["cancelled"]
    assert judged(queries, run_id).status == "cancelled"


def test_what_was_claimed_too_far_ahead_is_given_back(
    context: Context, queries: Queries, app: Celery, tmp_path: Path
) -> None:
    run_id = loaded(context, tmp_path, PROVED, PROVED, PROVED)
    context.claims.note(0.001)
    assert context.claims.take(busy=1) is not None
    assert len(context.leases.all()) == 3
    heartbeat = Heartbeat(context, app, work)
    eventually(lambda: (heartbeat.keep(), len(context.leases.all()) == 1)[1])
    assert [attempts(queries, run_id, number) for number in (1, 2, 3)] == [[None], ["returned"], ["returned"]]
    assert context.calling.is_set()


def test_what_was_claimed_ahead_runs_only_when_a_thread_has_begun_it(
    context: Context, queries: Queries, app: Celery, tmp_path: Path
) -> None:
    run_id = loaded(context, tmp_path, PROVED, PROVED, PROVED)
    context.claims.note(0.001)
    assert context.claims.take(busy=1) is not None
    assert queries.tally(run_id).statuses == {"running": 1, "queued": 2}
    assert [line.status for line in queries.judged(run_id, 0)] == ["running", "queued", "queued"]
    assert attempts(queries, run_id, 2) == []
    assert context.claims.take(busy=1) is not None
    heartbeat = Heartbeat(context, app, work)
    eventually(lambda: (heartbeat.keep(), queries.tally(run_id).statuses == {"running": 2, "queued": 1})[1])
    assert only(context, "SELECT count(*) FROM checks WHERE status = 'running' AND ahead") == 0


def test_a_small_check_that_was_claimed_ahead_costs_no_statement_more(
    context: Context, app: Celery, tmp_path: Path
) -> None:
    loaded(context, tmp_path, *[PROVED] * 20)
    context.claims.note(0.001)
    heartbeat = Heartbeat(context, app, work)
    work(context)
    heartbeat.keep()
    recorded(context)
    assert context.leases.begun(seconds=0.0) == []
    assert only(context, "SELECT count(*) FROM checks WHERE ahead AND status = 'done'") != 0


def test_an_idle_thread_is_called_for_what_another_claimed_ahead(
    context: Context, app: Celery, redis_database: tuple[str, redis.Redis], tmp_path: Path
) -> None:
    loaded(context, tmp_path, PROVED, PROVED)
    context.claims.note(0.001)
    assert context.claims.take(busy=1) is not None
    assert context.store.waiting(["core"]) == []
    heartbeat = Heartbeat(context, app, work)
    with context.threads.occupy_slot():
        heartbeat.wake()
        assert redis_database[1].llen("farm:farm.core") == 1
        with context.threads.occupy_slot():
            heartbeat.wake()
            assert redis_database[1].llen("farm:farm.core") == 1
        assert context.claims.take(busy=1) is not None
        heartbeat.wake()
        assert redis_database[1].llen("farm:farm.core") == 1


def test_the_heartbeat_takes_back_what_a_dead_worker_held_and_calls_for_it(
    database: Engine,
    core: LeanEnvironment,
    checker: Checker,
    queries: Queries,
    app: Celery,
    redis_database: tuple[str, redis.Redis],
    tmp_path: Path,
) -> None:
    with new_context(database, core, checker, lease_seconds=1.0) as context:
        run_id = loaded(context, tmp_path, PROVED)
        assert context.store.claim(["core"], worker="dead", lease_seconds=60)
        expire(context)
        heartbeat = Heartbeat(context, app, work)
        eventually(lambda: (heartbeat.wake(), judged(queries, run_id).status == "queued")[1])
        assert redis_database[1].llen("farm:farm.core") == 1
        work(context)
        recorded(context)
    assert attempts(queries, run_id) == ["lost", "proved"]


def test_a_worker_that_begins_takes_nothing_back_before_others_had_the_time_to_extend_their_leases(
    context: Context, queries: Queries, app: Celery, tmp_path: Path
) -> None:
    run_id = loaded(context, tmp_path, PROVED)
    assert context.store.claim(["core"], worker="other", lease_seconds=60)
    expire(context)
    Heartbeat(context, app, work).wake()
    assert attempts(queries, run_id) == [None]


@pytest.mark.whole
def test_nothing_is_taken_back_when_postgresql_was_away_for_longer_than_a_lease(
    database: Engine, core: LeanEnvironment, checker: Checker, queries: Queries, app: Celery, tmp_path: Path
) -> None:
    with away(database) as (server, engine), new_context(engine, core, checker, lease_seconds=2.0) as context:
        heartbeat = Heartbeat(context, app, work)
        swept = loaded(context, tmp_path, PROVED)
        assert context.store.claim(["core"], worker="dead", lease_seconds=60)
        expire(context)
        eventually(lambda: (heartbeat.wake(), judged(queries, swept).status == "queued")[1])
        claims = context.store.claim(["core"], worker="other", lease_seconds=2.0)
        server.unlink()
        engine.dispose()
        eventually(lambda: expired(queries))
        with pytest.raises(ServerDown):
            heartbeat.wake()
        server.symlink_to(str(database.url.query["host"]))
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            heartbeat.wake()
            assert judged(queries, swept).status == "running"
        context.store.extend([claim.hold for claim in claims], lease_seconds=2.0)
        eventually(lambda: (heartbeat.wake(), judged(queries, swept).status == "queued")[1])
    assert attempts(queries, swept) == ["lost", "lost"]


@contextmanager
def hanging(engine: Engine) -> Iterator[None]:
    """Stop every process of PostgreSQL that serves this database: it is there, and answers nothing."""
    with engine.connect() as connection:
        asked = text("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        pids = connection.scalars(asked).all()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_a_sweep_that_postgresql_lets_wait_takes_nothing_back(
    database: Engine, core: LeanEnvironment, checker: Checker, queries: Queries, app: Celery, tmp_path: Path
) -> None:
    with new_context(database, core, checker, lease_seconds=1.0) as context, ThreadPoolExecutor(1) as pool:
        heartbeat = Heartbeat(context, app, work)
        run_id = loaded(context, tmp_path, PROVED)
        assert context.store.claim(["core"], worker="other", lease_seconds=60)
        expire(context)
        with hanging(database):
            end = time.monotonic() + context.lease_seconds
            sweeping = pool.submit(heartbeat.sweep)
            while time.monotonic() < end:
                assert not sweeping.done()
                time.sleep(0.02)
        sweeping.result(20)
        assert judged(queries, run_id).status == "running"
        eventually(lambda: (heartbeat.sweep(), judged(queries, run_id).status == "queued")[1])


def test_a_check_that_lost_its_last_worker_is_counted_as_the_farms_failure(
    context: Context, app: Celery, tmp_path: Path
) -> None:
    loaded(context, tmp_path, PROVED)
    heartbeat = Heartbeat(context, app, work)
    with events.served(address="127.0.0.1", port=0) as url:
        for _ in range(ATTEMPTS):
            assert context.store.claim(["core"], worker="dead", lease_seconds=-1)
            heartbeat.sweep()
        told = scraped(url)
    counted = happened(told, "farm_checks_total", "environment", "tier", "verdict", "reason")
    assert counted == {("core", "lean", "judge_error", "worker_lost"): 1}
    assert by(told, "farm_leases_expired_total") == {(): ATTEMPTS}


def test_the_wait_of_a_check_is_told_once_where_it_begins(context: Context, tmp_path: Path) -> None:
    loaded(context, tmp_path, PROVED, PROVED, PROVED)
    context.claims.note(0.001)

    def waits(url: str) -> object:
        return by(scraped(url), "farm_check_wait_seconds_count").get((), 0)

    with events.served(address="127.0.0.1", port=0) as url:
        begun = context.claims.take(busy=1)
        assert begun is not None
        assert len(context.leases.all()) == 3
        assert waits(url) == 1
        context.claims.unbegun(all_of_them=True)
        expire(context)
        context.store.sweep(checker_version="1")
        again = context.claims.take(busy=1)
        assert again is not None
        assert again.failures == 1
        assert waits(url) == 1


def test_a_check_whose_verdict_is_recorded_was_not_lost(
    context: Context, app: Celery, tmp_path: Path
) -> None:
    loaded(context, tmp_path, PROVED)
    with events.served(address="127.0.0.1", port=0) as url:
        held = context.store.claim(["core"], worker="w1", lease_seconds=60)
        context.leases.hold(held)
        context.store.record([(held[0], a_decision())])
        Heartbeat(context, app, work).keep()  # looks between the commit and what the recorder does after it
        context.leases.release(held)
        assert by(scraped(url), "farm_leases_lost_total") == {(): 0}


def test_what_was_claimed_ahead_and_is_cancelled_meanwhile_is_lost_and_no_late_result(
    context: Context, queries: Queries, app: Celery, tmp_path: Path
) -> None:
    run_id = loaded(context, tmp_path, PROVED, WRONG, ADMITTED)
    heartbeat = Heartbeat(context, app, work)
    context.claims.note(0.001)
    with events.served(address="127.0.0.1", port=0) as url:
        begun = context.claims.take(busy=1)
        assert begun is not None
        revise.cancel(context.store, run_id)
        eventually(lambda: (heartbeat.keep(), context.leases.all() == [begun.hold])[1])
        told = scraped(url)
        assert by(told, "farm_leases_lost_total") == {(): 2}
        verify(context, begun)
        recorded(context)
        told = scraped(url)
    assert by(told, "farm_leases_lost_total") == {(): 3}
    assert by(told, "farm_results_refused_total") == {(): 0}


def expired(queries: Queries) -> bool:
    """Whether the lease of anything that runs has run out."""
    with queries.engine.connect() as connection:
        return bool(connection.scalar(text("SELECT bool_or(lease_until < now()) FROM checks")))


@contextmanager
def away(database: Engine) -> Iterator[tuple[Path, Engine]]:
    """Another way to the database, through a link: without the link its server is away."""
    # Short: the name of a socket has 107 characters at most.
    with tempfile.TemporaryDirectory() as folder:
        server = Path(folder) / "server"
        server.symlink_to(str(database.url.query["host"]))
        url = database.url.update_query_dict({"host": str(server)}).render_as_string(hide_password=False)
        engine = connect(url, application="test", works=True, connections=4)
        yield server, engine
        engine.dispose()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.whole
def test_a_check_does_not_depend_on_the_default_timeout_of_sockets(
    isolation: Isolation, core: LeanEnvironment, tmp_path: Path, way: str
) -> None:
    socket.setdefaulttimeout(0.0)  # as if every timeout had passed; Celery sets one while a worker ends
    try:
        with Checker(isolation, home=tmp_path, way=way) as checker:
            program = str(entry(PROVED, 1)["predicted_proof"])
            report = checker.check(Check.of(program=program, assurance=Assurance(tier=Tier.KERNEL)), core)
    finally:
        socket.setdefaulttimeout(None)
    # What a prepared Lean accepts, a fresh one compiles.
    assert (report.way, judge(report).outcome) == (COLD if way == PREPARED else way, PROVED[0])


def test_a_worker_that_celery_ends_without_a_signal_ends_with_an_error(context: Context) -> None:
    nowhere = application("redis+socket:///nowhere/redis.sock")
    nowhere.conf.update(broker_connection_retry=False, broker_connection_retry_on_startup=False)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with pytest.raises(FarmError, match="Celery ended without a signal"):
            process.serve(context, nowhere, grace_seconds=1.0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_the_heartbeat_does_not_wait_for_a_claim_that_hangs(
    context: Context, app: Celery, tmp_path: Path
) -> None:
    loaded(context, tmp_path, PROVED, PROVED)
    assert context.claims.take(busy=1) is not None
    before = only(context, "SELECT max(lease_until) FROM checks")
    with ThreadPoolExecutor(2) as pool, context.store.engine.connect() as connection:
        connection.execute(text("LOCK TABLE programs IN ACCESS EXCLUSIVE MODE"))  # only claims look there
        claiming = pool.submit(context.claims.take, 1)
        eventually(lambda: only(context, "SELECT true FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
        beating = pool.submit(Heartbeat(context, app, work).keep)
        eventually(beating.done)
        assert not claiming.done()
        connection.rollback()
        assert claiming.result(20) is not None
    assert str(only(context, "SELECT min(lease_until) FROM checks")) > str(before)


def test_the_heartbeat_does_not_wait_for_a_recorder_that_can_take_no_more(
    context: Context, app: Celery, tmp_path: Path
) -> None:
    loaded(context, tmp_path, *[PROVED] * (4 * MOST + 3))
    claims = context.store.claim(["core"], worker="w1", lease_seconds=60, most=4 * MOST + 1)
    context.leases.hold(claims)
    context.claims.note(0.001)
    begun = context.claims.take(busy=1)
    assert begun is not None
    assert context.claims.prefetched()
    with ThreadPoolExecutor(1) as pool, context.store.engine.connect() as connection:
        connection.execute(text("LOCK TABLE verdicts IN ACCESS EXCLUSIVE MODE"))  # the recorder writes there
        context.recorder.put((claims[0], a_decision()))
        eventually(lambda: only(context, "SELECT true FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
        for claim in claims[1:]:
            context.recorder.put((claim, a_decision()))
        heartbeat = Heartbeat(context, app, work)
        beating = pool.submit(eventually, lambda: (heartbeat.keep(), not context.claims.prefetched())[1])
        try:
            eventually(beating.done)
        finally:
            connection.rollback()
        beating.result(20)
    context.recorder.put((begun, a_decision()))
    recorded(context)


def test_the_heartbeat_calls_for_what_a_submitter_stored_and_never_called_for(
    context: Context, app: Celery, redis_database: tuple[str, redis.Redis], tmp_path: Path
) -> None:
    heartbeat = Heartbeat(context, app, work)
    heartbeat.wake()
    assert redis_database[1].llen("farm:farm.core") == 0
    loaded(context, tmp_path, PROVED)
    heartbeat.wake()
    assert redis_database[1].llen("farm:farm.core") == 1


def test_a_worker_with_no_idle_thread_calls_only_when_asked_to(
    context: Context, app: Celery, redis_database: tuple[str, redis.Redis], tmp_path: Path
) -> None:
    loaded(context, tmp_path, PROVED)
    with context.threads.occupy_slot(), context.threads.occupy_slot():
        heartbeat = Heartbeat(context, app, work)
        heartbeat.wake()
        assert redis_database[1].llen("farm:farm.core") == 0
        context.calling.set()
        heartbeat.wake()
        assert redis_database[1].llen("farm:farm.core") == 1


def test_the_heartbeat_says_that_its_environments_are_served(
    context: Context, queries: Queries, app: Celery
) -> None:
    with context.store.engine.begin() as connection:
        connection.execute(text("UPDATE environments SET seen_at = now() - interval '1 hour'"))
    Heartbeat(context, app, work).heartbeat()
    assert only(context, "SELECT now() - seen_at < interval '1 minute' FROM environments") is True
    assert [(each.name, each.checker_version) for each in queries.served()] == [("core", farm_version())]


@pytest.mark.whole
def test_leases_are_extended_in_time_while_redis_is_down(
    database: Engine, core: LeanEnvironment, checker: Checker, queries: Queries, tmp_path: Path
) -> None:
    nowhere = application("redis+socket:///nowhere/redis.sock")
    with new_context(database, core, checker, lease_seconds=1.0) as hasty:
        heartbeat = Heartbeat(hasty, nowhere, work)
        run_id = loaded(hasty, tmp_path, ENDLESS, timeout=4)
        heartbeat.start()
        try:
            with working(hasty) as thread:
                eventually(lambda: hasty.store.sweep(checker_version="1").taken_back or not thread.is_alive())
            recorded(hasty)
            assert attempts(queries, run_id) == ["timeout"]
        finally:
            heartbeat.stop()
            nowhere.close()


@pytest.mark.whole
def test_leases_are_extended_and_verdicts_recorded_while_redis_hangs(
    database: Engine, core: LeanEnvironment, checker: Checker, queries: Queries, pair: str, tmp_path: Path
) -> None:
    with (
        own_redis(pair) as redis,
        Publisher(redis.url) as publisher,
        new_context(database, core, checker, lease_seconds=1.0, completed=publisher.publish) as hasty,
    ):
        app = application(redis.url)
        heartbeat = Heartbeat(hasty, app, work)
        run_id = loaded(hasty, tmp_path, PROVED, ENDLESS, timeout=4)
        with redis.hung():
            heartbeat.start()
            with working(hasty) as thread:
                eventually(lambda: hasty.store.sweep(checker_version="1").taken_back or not thread.is_alive())
            recorded(hasty)
            assert [attempts(queries, run_id, number) for number in (1, 2)] == [["proved"], ["timeout"]]
        heartbeat.stop()
        app.close()


def test_an_environment_that_a_run_waits_for_and_nobody_serves_is_named(
    context: Context, queries: Queries, tmp_path: Path
) -> None:
    run_id = loaded(context, tmp_path, PROVED)
    assert queries.unserved(run_id, seconds=30) == []
    with context.store.engine.begin() as connection:
        connection.execute(text("UPDATE environments SET seen_at = now() - interval '1 hour'"))
    assert queries.unserved(run_id, seconds=30) == ["core"]
    work(context)
    recorded(context)
    assert queries.unserved(run_id, seconds=30) == []


class TestTheRecorder:
    """What the database does not take costs nobody else their verdict."""

    @pytest.fixture
    def claims(self, context: Context, tmp_path: Path) -> list[Claim]:
        loaded(context, tmp_path, PROVED, PROVED, PROVED)
        claims = context.store.claim(["core"], worker="w1", lease_seconds=60, most=3)
        context.leases.hold(claims)
        return claims

    def test_a_verdict_that_cannot_be_stored_is_the_farms_failure_and_the_others_are_recorded(
        self, context: Context, queries: Queries, claims: list[Claim]
    ) -> None:
        odd = a_decision(audit=dataclasses.replace(SEALED, statement="no word of the table"))
        for claim, decision in zip(claims, (a_decision(), odd, a_decision()), strict=True):
            context.recorder.put((claim, decision))
        recorded(context)
        (run,) = queries.runs()
        found = [job.verdict.outcome for job in queries.judged(run.id, 0) if job.verdict]
        assert found == ["proved", "judge_error", "proved"]

    def test_a_verdict_beyond_a_limit_of_postgresql_is_not_tried_for_ever(
        self, context: Context, queries: Queries, claims: list[Claim]
    ) -> None:
        with context.store.engine.begin() as connection:
            name = context.store.engine.url.database
            connection.execute(text(f'ALTER DATABASE "{name}" SET max_stack_depth = 100'))
        context.store.engine.dispose()
        deep: Any = ()
        for _ in range(900):
            deep = (deep,)
        sys.setrecursionlimit(10_000)  # the database is to refuse it, not this process
        odd = a_decision(audit=dataclasses.replace(SEALED, axioms=deep))
        for claim, decision in zip(claims, (a_decision(), odd, a_decision()), strict=True):
            context.recorder.put((claim, decision))
        recorded(context)
        (run,) = queries.runs()
        found = [job.verdict.outcome for job in queries.judged(run.id, 0) if job.verdict]
        assert found == ["proved", "judge_error", "proved"]

    def test_one_of_an_attempt_that_was_lost_is_refused_and_let_go(
        self, context: Context, queries: Queries, claims: list[Claim]
    ) -> None:
        expire(context)
        context.store.sweep(checker_version="1")
        for claim in claims:
            context.recorder.put((claim, a_decision()))
        recorded(context)
        (run,) = queries.runs()
        assert queries.tally(run.id).statuses == {"queued": 3}


def test_a_claim_in_the_place_of_one_that_a_crash_lost_is_not_taken_for_it(
    context: Context, database: Engine, tmp_path: Path
) -> None:
    loaded(context, tmp_path, PROVED)
    (first,) = context.store.claim(["core"], worker="w1", lease_seconds=60)
    context.leases.hold([first])
    with database.begin() as connection:  # as PostgreSQL is after it lost the claim
        connection.execute(text("UPDATE checks SET status = 'queued', attempt = 0, lease_until = NULL"))
    gone = context.store.lost(context.leases.all())
    (second,) = context.store.claim(["core"], worker="w1", lease_seconds=60)
    context.leases.hold([second])
    context.leases.lose(gone)
    assert (context.leases.is_lost(first), context.leases.is_lost(second)) == (True, False)
    context.leases.give_up(first)
    assert context.leases.all() == [second.hold]
    assert context.store.lost(context.leases.all()) == []


def test_a_new_attempt_at_a_check_that_was_lost_here_is_not_lost(context: Context, tmp_path: Path) -> None:
    loaded(context, tmp_path, PROVED)
    (first,) = context.store.claim(["core"], worker="w1", lease_seconds=60)
    context.leases.hold([first])
    expire(context)
    context.store.sweep(checker_version="1")
    context.leases.lose(context.store.lost(context.leases.all()))
    (second,) = context.store.claim(["core"], worker="w1", lease_seconds=60)
    context.leases.hold([second])
    assert context.leases.is_lost(first)
    assert not context.leases.is_lost(second)
    context.leases.release([first])
    assert context.leases.all() == [second.hold]


# The sign of life.


def test_a_heartbeat_says_that_the_worker_lives_and_its_end_that_it_does_not(
    context: Context, app: Celery, core: LeanEnvironment
) -> None:
    workers = Workers(context.store.engine)
    heartbeat = Heartbeat(context, app, work)
    with context.threads.occupy_slot():
        heartbeat.start()
        (found,) = workers.all()
    assert (found.name, found.pid, found.threads, found.busy) == ("w1", os.getpid(), 2, 1)
    assert (found.farm_version, found.state, found.lease_seconds) == (farm_version(), "serving", 60.0)
    assert [each["digest"] for each in found.environments] == [core.digest]
    context.threads.stopping = True
    heartbeat.heartbeat()
    assert [each.state for each in workers.all()] == ["stopping"]
    heartbeat.stop()
    assert workers.all() == []


def test_a_worker_whose_machine_is_unwell_says_so(
    context: Context, core: LeanEnvironment, app: Celery, tmp_path: Path
) -> None:
    broken = dataclasses.replace(core, digest="none", lean=(str(tmp_path / "no-lean-here"),))
    assert not context.health.examine(broken)
    Heartbeat(context, app, work).heartbeat()
    (found,) = Workers(context.store.engine).all()
    assert found.state == "unwell"


def test_a_worker_whose_postgresql_is_away_is_silent_then_and_nothing_else(
    database: Engine, core: LeanEnvironment, checker: Checker, queries: Queries, app: Celery, tmp_path: Path
) -> None:
    workers = Workers(database)
    with away(database) as (server, engine), new_context(engine, core, checker, lease_seconds=1.0) as context:
        heartbeat = Heartbeat(context, app, work)
        heartbeat.heartbeat()
        assert heartbeat.is_database_up
        run_id = loaded(context, tmp_path, PROVED, WRONG)
        server.unlink()
        engine.dispose()
        with pytest.raises(ServerDown):
            heartbeat.heartbeat()
        eventually(lambda: workers.all()[0].is_silent)
        eventually(lambda: not heartbeat.is_database_up)
        asking = threading.Thread(target=work, args=(context,))
        asking.start()
        eventually(lambda: (context.threads.busy, context.threads.at_work) == (1, 0))
        server.symlink_to(str(database.url.query["host"]))
        heartbeat.heartbeat()
        assert heartbeat.is_database_up
        assert not workers.all()[0].is_silent
        asking.join()
        recorded(context)
    assert queries.tally(run_id).statuses == {"done": 2}


def test_a_worker_that_ends_while_postgresql_is_away_ends_and_seems_silent(
    database: Engine, core: LeanEnvironment, checker: Checker, app: Celery
) -> None:
    with away(database) as (server, engine), new_context(engine, core, checker, lease_seconds=1.0) as context:
        presence = Presence(context)
        presence.say()
        server.unlink()
        engine.dispose()
        presence.leave()
    eventually(lambda: Workers(database).all()[0].is_silent)


def test_a_worker_knows_how_many_there_are_with_it(
    database: Engine, core: LeanEnvironment, checker: Checker, context: Context
) -> None:
    presence = Presence(context)
    presence.say()
    assert presence.many == 1
    with new_context(database, core, checker) as other:
        Presence(other).say()
        later = Presence(context)
        later.say()
        assert later.many == 2


@pytest.mark.parametrize(
    ("many", "look", "sweep"),
    [(1, 1.0, 4.0), (8, 1.0, 4.0), (32, 1.0, 16.0), (64, 2.0, 20.0), (512, 4.0, 20.0)],
)
def test_of_many_workers_each_does_less_of_what_one_has_to_do(many: int, look: float, sweep: float) -> None:
    assert of_many(1.0, many, 32, at_most=4.0) == look
    assert of_many(4.0, many, 8, at_most=20.0) == sweep


@pytest.mark.whole
def test_what_a_check_logs_names_the_check(
    database: Engine, core: LeanEnvironment, faulty: Faulty, queries: Queries, tmp_path: Path
) -> None:
    faulty.bug = raises
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    log.set_format(handler, "json")
    logging.getLogger().addHandler(handler)
    try:
        with new_context(database, core, faulty) as context:
            run_id = loaded(context, tmp_path, PROVED)
            eventually(lambda: (work(context), queries.tally(run_id).done == 1)[1])
            recorded(context)
    finally:
        logging.getLogger().removeHandler(handler)
    told = [json.loads(line) for line in written.getvalue().splitlines()]
    (check_id,) = {each.get("check_id") for each in told if "could not be carried out" in each["message"]}
    assert check_id == only_check(queries, run_id)
    raised = [each for each in told if "traceback" in each]
    assert [each["attempt"] for each in raised] == [1, 2, 3]
    assert "RuntimeError: a bug" in raised[0]["traceback"]


def only_check(queries: Queries, run_id: str) -> object:
    with queries.engine.connect() as connection:
        return connection.scalar(text("SELECT check_id FROM jobs WHERE run_id = :run"), {"run": run_id})
