"""What users change about a run that is under way, and how workers end: nothing of it costs a verdict."""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import text

from farm.exit_status import ExitStatus
from tests.commands import ENDLESS, PROVED, WRONG, Command, entry, lines, verdicts, write
from tests.farms import CORE, Quiet, a_worker, finished, wait_for_run
from tests.processes import eventually, family

LONG = {"timeout": 600}
#: No two tests submit the same endless program: an equal one would share its check.
numbers = count()


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """A manifest whose lines take as long as they may."""
    return write(tmp_path / "long.jsonl", *(entry(ENDLESS, next(numbers), **LONG) for _ in range(4)))


@pytest.fixture(scope="module")
def at_work(shared_quiet: Quiet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quiet]:
    """A farm with a worker; each test submits programs of its own."""
    with a_worker(shared_quiet, tmp_path_factory.mktemp("worker")):
        yield shared_quiet


def outcomes(quiet: Quiet, run_id: str) -> list[object]:
    return quiet.ask(
        """
        SELECT outcome FROM attempts JOIN jobs USING (check_id) WHERE run_id = :run
        ORDER BY check_id, number
        """,
        run=run_id,
    )


class TestCancel:
    def test_what_waits_ends_at_once_and_what_runs_gives_way_to_the_next(
        self, at_work: Quiet, long: Path, tmp_path: Path
    ) -> None:
        before, short = long.read_bytes(), write(tmp_path / "short.jsonl", entry(PROVED, 9))
        with at_work.farm.forked(tmp_path / "submit", "submit", long) as submit:
            run_id = wait_for_run(at_work.queries, long, "running")
            next_run = at_work.farm.json("submit", short, "--no-wait")["run"]
            eventually(lambda: at_work.queries.tally(run_id).statuses == {"running": 2, "queued": 2})
            said = at_work.farm("cancel", run_id)
            assert said.returncode == 0, said.stderr
            assert f"Run {run_id}: cancelled 4 lines" in said.stderr
            assert at_work.queries.tally(run_id).statuses == {"cancelled": 4}
            assert submit.ended() == 0, submit.said
            # Each of the cancelled lines may take ten minutes: this one waits for no end of them.
            assert at_work.farm("status", next_run, "--wait").returncode == 0
        assert long.read_bytes() == before
        assert outcomes(at_work, run_id) == ["cancelled"] * 2
        assert at_work.ask(
            """
            SELECT started_at > (SELECT min(cancelled_at) FROM runs WHERE id = :cancelled)
            FROM jobs JOIN checks ON checks.id = check_id WHERE run_id = :next
            """,
            cancelled=run_id,
            next=next_run,
        ) == [True]

    def test_of_an_unknown_run_is_refused(self, quiet: Quiet) -> None:
        said = quiet.farm("cancel", "nosuchrun")
        assert said.returncode == 2
        assert "no run begins with 'nosuchrun'; list all runs with: farm status --runs" in said.stderr

    def test_without_a_run_says_which_are_there(self, quiet: Quiet) -> None:
        assert quiet.farm("cancel").returncode == 2

    @pytest.mark.newcomer
    def test_for_scripts(self, quiet: Quiet, long: Path) -> None:
        run_id = quiet.farm.json("submit", long, "--no-wait")["run"]
        assert quiet.farm.json("cancel", run_id) == {"schema": 1, "run": run_id, "cancelled": 4}


class TestRetry:
    def test_only_the_lines_of_that_reason_are_judged_anew(self, at_work: Quiet, tmp_path: Path) -> None:
        slow = entry(ENDLESS, 2) | {"predicted_proof": entry(PROVED, 2)["predicted_proof"], "timeout": 0.001}
        path = write(tmp_path / "a.jsonl", entry(PROVED, 1), slow, entry(WRONG, 3))
        assert at_work.farm("submit", path).returncode == 0
        assert verdicts(path) == [PROVED, ENDLESS, WRONG]
        run_id = lines(path)[0]["farm"]["run_id"]
        said = at_work.farm("rejudge", run_id, "--in-place", "--verdict", "timeout", "--timeout", 120)
        assert said.returncode == 0, said.stderr
        assert "1 line will be checked again" in said.stderr
        assert verdicts(path) == [PROVED, PROVED, WRONG]
        assert [line["farm"]["run_id"] for line in lines(path)] == [run_id] * 3

    @pytest.mark.parametrize(
        ("flags", "words"),
        [
            (("--reason", "slow"), "--reason slow: there is no such reason; choose one of ok"),
            (("--verdict", "timeout", "--timeout", "-1"), "a timeout of -1 s is out of range"),
            (("--status", "queued"), "--status queued: such a line has no verdict yet"),
            ((), "name the lines to check again: --verdict, --reason or --status"),
        ],
    )
    def test_what_cannot_be_retried_is_refused(
        self, quiet: Quiet, long: Path, flags: tuple[str, ...], words: str
    ) -> None:
        run_id = quiet.farm.json("submit", long, "--no-wait")["run"]
        said = quiet.farm("rejudge", run_id, "--in-place", *flags)
        assert said.returncode == 2
        assert words in said.stderr


class TestRetryOnAnotherTier:
    """A line that is retried on a stronger tier has a check of its own with that tier."""

    def test_what_the_compiler_proved_is_asked_of_the_kernel(self, at_work: Quiet, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", entry(PROVED, 11), entry(WRONG, 12))
        assert at_work.farm("submit", path, "--tier", "lean", "--policy", "axiom=reject").returncode == 0
        run_id = lines(path)[0]["farm"]["run_id"]
        said = at_work.farm("rejudge", run_id, "--in-place", "--verdict", "proved", "--tier", "kernel")
        assert said.returncode == 0, said.stderr
        first, second = (line["farm"] for line in lines(path))
        assert (first["verdict"], first["tier"], second["tier"]) == ("proved", "kernel", "lean")
        assert first["audit"]["replay"]["accepted"] is True
        assert "tiers" in said.stdout
        assert at_work.farm.json("status", run_id)["tiers"] == {"kernel": 1, "lean": 1}

    @pytest.fixture
    def audited(self, quiet: Quiet, tmp_path: Path) -> str:
        """A run on the tier audit, of one line in each of two environments, both judged."""
        plain = replace(CORE, name="plain", tiers=("audit", "lean"))
        quiet.store.register([plain, replace(plain, name="bare")])
        entries = entry(PROVED, 1, environment="plain"), entry(PROVED, 2, environment="bare")
        path = write(tmp_path / "a.jsonl", *entries)
        run_id = str(quiet.farm.json("submit", path, "--no-wait", "--tier", "audit")["run"])
        for claim in quiet.store.claim(["plain", "bare"], worker="w", lease_seconds=60, most=2):
            assert finished(quiet.store, claim)
        return run_id

    def test_environments_that_cannot_give_it_are_named_with_what_they_can(
        self, quiet: Quiet, audited: str
    ) -> None:
        before = quiet.rows()
        said = quiet.farm(
            "rejudge", audited, "--in-place", "--verdict", "proved", "--tier", "kernel", "--no-wait"
        )
        assert said.returncode == 2
        for name in ("plain", "bare"):
            words = f"the environment '{name}' does not support the tier kernel, only audit and lean"
            assert words in said.stderr
        assert quiet.rows() == before

    def test_a_weaker_one_is_another_run(self, quiet: Quiet, audited: str) -> None:
        said = quiet.farm(
            "rejudge", audited, "--in-place", "--verdict", "proved", "--tier", "lean", "--no-wait"
        )
        assert said.returncode == 2
        assert "ask for the tier audit, which trusts less" in said.stderr
        assert (
            quiet.farm("rejudge", audited, "--in-place", "--verdict", "proved", "--tier", "best").returncode
            == 2
        )

    def test_known_holes_of_a_kernel_are_refused_as_at_a_submit(self, quiet: Quiet, tmp_path: Path) -> None:
        quiet.store.register([replace(CORE, name="old", toolchain="4.9.0")])
        path = write(tmp_path / "a.jsonl", entry(PROVED, 1, environment="old"))
        run_id = quiet.farm.json("submit", path, "--no-wait", "--tier", "audit")["run"]
        assert quiet.farm("cancel", run_id).returncode == 0
        said = quiet.farm(
            "rejudge", run_id, "--in-place", "--status", "cancelled", "--tier", "kernel", "--no-wait"
        )
        assert said.returncode == 2
        assert "known holes" in said.stderr


class TestSubmitAgain:
    def test_goes_on_with_the_same_run_and_says_so(self, at_work: Quiet, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", entry(PROVED, 41), entry(WRONG, 42))
        run_id = at_work.farm.json("submit", path, "--no-wait")["run"]
        said = at_work.farm("submit", path)
        assert said.returncode == 0, said.stderr
        assert f"Run {run_id}: submitted before" in said.stderr
        assert verdicts(path) == [PROVED, WRONG]
        again = at_work.farm("submit", path)
        assert f"Run {run_id}: submitted before" in again.stderr
        assert f"To judge all of them again: farm rejudge {run_id}" in again.stderr
        assert [run.id for run in at_work.queries.runs() if run.manifests == (path,)] == [run_id]

    def test_after_a_kill_in_the_middle_finishes_the_job(self, quiet: Quiet, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", *(entry(PROVED, number) for number in range(3000)))
        waiting = (
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name LIKE 'farm %'"
        )
        with quiet.engine.connect() as connection:
            connection.execute(text("LOCK TABLE manifests IN ACCESS EXCLUSIVE MODE"))
            with quiet.farm.forked(tmp_path / "submit", "submit", path) as submit:
                eventually(lambda: quiet.ask(waiting), seconds=60)
                submit.process.kill()
                submit.process.wait()
            connection.rollback()
        assert quiet.rows() == {}
        assert quiet.farm("submit", path, "--no-wait").returncode == 0
        run = quiet.queries.run(None)
        assert quiet.queries.tally(run.id).statuses == {"queued": 3000}
        assert len(quiet.queries.runs()) == 1

    def test_shared_verdicts_are_counted(self, at_work: Quiet, tmp_path: Path) -> None:
        entries = [entry(PROVED, 21), entry(PROVED, 21), entry(WRONG, 22)]
        first = at_work.farm.json("submit", write(tmp_path / "a.jsonl", *entries))
        second = at_work.farm("submit", write(tmp_path / "b.jsonl", *entries))
        assert first["shared"] == 1
        assert "3 shared with equal ones" in second.stderr
        assert "3 lines shared the check of an equal line." in second.stdout


class TestBadOptions:
    @pytest.mark.parametrize(
        ("flags", "words"),
        [
            (
                ("--priority", "urgent"),
                "--priority urgent: no such class; choose one of interactive, online, batch",
            ),
            (("--deadline", "soon"), "--deadline soon: give a time such as 90s, 30m, 2h or 1d"),
            (("--deadline", "0s"), "--deadline 0s: give a time"),
        ],
    )
    def test_are_refused_and_nothing_is_stored(
        self, quiet: Quiet, long: Path, flags: tuple[str, ...], words: str
    ) -> None:
        said = quiet.farm("submit", long, *flags)
        assert said.returncode == 2
        assert words in said.stderr
        assert quiet.rows() == {}

    def test_a_full_queue_is_said_to_be_full(self, quiet: Quiet, long: Path) -> None:
        said = quiet.farm.having(FARM_QUEUE_LIMIT="3")("submit", long)
        assert said.returncode == ExitStatus.TRY_AGAIN
        assert "more than 3 checks would wait" in said.stderr
        assert quiet.rows() == {}


def test_a_deadline_cancels_what_has_not_begun(at_work: Quiet, long: Path) -> None:
    run_id = at_work.farm.json("submit", long, "--no-wait", "--deadline", "1s")["run"]
    eventually(lambda: at_work.queries.tally(run_id).statuses == {"running": 2, "cancelled": 2})
    at_work.farm("cancel", run_id)


def test_a_group_ends_with_its_first_proof(at_work: Quiet, tmp_path: Path) -> None:
    entries = [entry(PROVED, 31, group="g"), *(entry(ENDLESS, n, group="g", **LONG) for n in range(32, 35))]
    path = write(tmp_path / "a.jsonl", *entries)
    facts = at_work.farm.json("submit", path, "--stop-on-first-proof")
    assert facts["statuses"] == {"done": 1, "cancelled": 3}
    assert [line.get("proof_status") for line in lines(path)] == ["completed", None, None, None]


def test_an_interactive_run_overtakes_a_long_one(at_work: Quiet, tmp_path: Path) -> None:
    long = write(tmp_path / "a.jsonl", *(entry(ENDLESS, number) for number in range(300)))
    short = write(tmp_path / "b.jsonl", entry(PROVED, 100))
    run_id = at_work.farm.json("submit", long, "--no-wait")["run"]
    wait_for_run(at_work.queries, long, "running")
    assert at_work.farm("submit", short, "--priority", "interactive").returncode == 0
    assert at_work.queries.tally(run_id).statuses["queued"] > 150
    at_work.farm("cancel", run_id)
    assert verdicts(short) == [PROVED]


class TestAWorkerThatIsToldToStop:
    def test_returns_what_does_not_end_within_its_grace(
        self, quiet: Quiet, long: Path, tmp_path: Path
    ) -> None:
        run_id = quiet.farm.json("submit", long, "--no-wait")["run"]
        with a_worker(quiet, tmp_path / "worker", FARM_GRACE_SECONDS="1") as worker:
            eventually(lambda: quiet.queries.tally(run_id).statuses.get("running") == 2)
            members = family(worker.process.pid)
            worker.process.terminate()
            assert worker.ended(seconds=20) == 0, worker.said
        assert not any(member.alive for member in members)
        assert quiet.queries.tally(run_id).statuses == {"queued": 4}
        assert set(outcomes(quiet, run_id)) == {"returned"}

    def test_twice_returns_it_at_once(self, quiet: Quiet, long: Path, tmp_path: Path) -> None:
        run_id = quiet.farm.json("submit", long, "--no-wait")["run"]
        with a_worker(quiet, tmp_path / "worker", FARM_GRACE_SECONDS="600") as worker:
            eventually(lambda: quiet.queries.tally(run_id).statuses.get("running") == 2)
            worker.process.send_signal(signal.SIGINT)
            eventually(lambda: "Ending" in worker.said)
            assert quiet.queries.tally(run_id).statuses["running"] == 2
            worker.process.terminate()
            assert worker.ended(seconds=20) == 0, worker.said
        assert quiet.queries.tally(run_id).statuses == {"queued": 4}

    def test_ends_while_it_waits_for_postgresql(self, quiet: Quiet, tmp_path: Path) -> None:
        with elsewhere(quiet, tmp_path / "nowhere").forked(tmp_path / "worker", "worker") as worker:
            eventually(lambda: "; waiting" in worker.said, seconds=60)
            worker.process.terminate()
            assert worker.ended(seconds=20) == 0, worker.said


def test_a_worker_that_begins_before_postgresql_answers_waits_for_it_and_ends_while_redis_is_down(
    quiet: Quiet,
) -> None:
    nowhere = quiet.farm.settings["FARM_BROKER_URL"].replace("valkey.sock", "nowhere.sock")
    assert nowhere != quiet.farm.settings["FARM_BROKER_URL"]
    # Short: the name of a socket has 107 characters at most.
    with tempfile.TemporaryDirectory() as folder:
        later = Path(folder) / "later"
        farm = elsewhere(quiet, later).having(FARM_BROKER_URL=nowhere)
        with farm.forked(Path(folder) / "worker", "worker") as worker:
            eventually(lambda: "; waiting" in worker.said, seconds=60)
            later.symlink_to(str(quiet.engine.url.query["host"]))
            eventually(lambda: "Serving" in worker.said, seconds=60)
            worker.process.terminate()
            assert worker.ended(seconds=20) == 0, worker.said


def elsewhere(quiet: Quiet, folder: Path) -> Command:
    """The farm's command for a PostgreSQL whose socket is in another folder."""
    url = quiet.engine.url.update_query_dict({"host": str(folder)})
    return quiet.farm.having(FARM_DATABASE_URL=url.render_as_string(hide_password=False))


def test_a_sweep_by_hand_takes_back_what_a_dead_worker_held(quiet: Quiet, long: Path) -> None:
    quiet.farm("submit", long, "--no-wait")
    assert quiet.store.claim(["core"], worker="dead", lease_seconds=-1)
    said = quiet.farm("worker", "--sweep", "--now", "--json")
    assert json.loads(said.stdout) == {"schema": 1, "taken_back": 1, "past_deadline": 0, "given_up": []}
    assert "Requeued 1 check" in said.stderr


def test_a_sweep_tells_which_checks_have_lost_their_last_worker(quiet: Quiet, long: Path) -> None:
    quiet.farm("submit", long, "--no-wait")
    for _ in range(quiet.store.max_failures):
        assert quiet.store.claim(["core"], worker="dead", lease_seconds=-1)
        said = quiet.farm("worker", "--sweep", "--now", "--json")
        assert said.returncode == 0, said.stderr
    ended = [{"environment": "core", "tier": "kernel", "checks": 1}]
    assert json.loads(said.stdout)["given_up"] == ended


def test_a_sweep_by_hand_after_an_outage_leaves_workers_the_time_to_extend_their_leases(
    quiet: Quiet, long: Path, tmp_path: Path
) -> None:
    quiet.farm("submit", long, "--no-wait")
    claims = quiet.store.claim(["core"], worker="cut off", lease_seconds=-1, most=2)
    with quiet.farm.having(FARM_LEASE_SECONDS="60").forked(tmp_path / "sweep", "worker", "--sweep") as sweep:
        eventually(lambda: "2 leases ran out" in sweep.said or sweep.process.poll() is not None)
        quiet.store.extend([claim.hold for claim in claims], lease_seconds=60)
        assert sweep.ended() == 0
        assert "Requeued 0 checks" in sweep.said
    assert outcomes(quiet, quiet.queries.run(None).id) == []


def test_a_sweep_by_hand_takes_back_what_nobody_extends_for_one_lease(quiet: Quiet, long: Path) -> None:
    quiet.farm("submit", long, "--no-wait")
    assert quiet.store.claim(["core"], worker="dead", lease_seconds=-1)
    said = quiet.farm.having(FARM_LEASE_SECONDS="1")("worker", "--sweep", "--json")
    assert json.loads(said.stdout)["taken_back"] == 1
    assert "1 lease ran out" in said.stderr
    assert outcomes(quiet, quiet.queries.run(None).id) == ["lost"]
