"""Who waits for a check, on a real PostgreSQL: lines that share one, and what becomes of the others."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from farm.assembly.program import AssemblyOptions
from farm.errors import FarmError, QueueFull
from farm.exit_status import ExitStatus
from farm.judging.assurance import Assurance
from farm.judging.states import Priority
from farm.judging.submit_options import SubmitOptions
from farm.manifest.lines import opened
from farm.reports.report import report
from farm.runs import revise
from farm.runs.pick import Pick
from farm.runs.prepare.manifests import preparing
from farm.runs.submit import submit
from farm.store.attempt import Claim, Released
from farm.store.loading import loading
from farm.store.queries import Queries
from farm.store.transitions import Store
from farm.store.watermark import Front
from tests.commands import write
from tests.farms import CORE, a_decision, finished, load, submitted
from tests.processes import eventually


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE, replace(CORE, name="other", digest="d2")])
    return store


@pytest.fixture
def queries(database: Engine) -> Queries:
    return Queries(database)


def line(words: str, **more: object) -> dict[str, object]:
    return {"name": words, "predicted_proof": f"theorem {words} : True := trivial", **more}


def claims(store: Store, *, most: int = 100, served: tuple[str, ...] = ("core",)) -> list[Claim]:
    return store.claim(served, worker="w1", lease_seconds=60, most=most)


def words(claims: list[Claim]) -> list[str]:
    return [claim.check.program.split()[1] for claim in claims]


def judge_all(store: Store, *, most: int = 100, **facts: object) -> int:
    taken = claims(store, most=most)
    return sum(finished(store, claim, **facts) for claim in taken)


def reasons(queries: Queries, run_id: str) -> list[str]:
    return [job.verdict.reason if job.verdict else job.status for job in queries.judged(run_id, 0)]


class TestEqualChecksAreOne:
    def test_within_a_run(self, store: Store, queries: Queries, tmp_path: Path) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"), line("b"), line("a"), line("a"))
        assert judge_all(store) == 2
        assert reasons(queries, run_id) == ["ok"] * 4
        assert queries.tally(run_id).shared == 2

    def test_while_one_is_under_way(self, store: Store, queries: Queries, tmp_path: Path) -> None:
        first = load(store, tmp_path / "a.jsonl", line("a"))
        (claim,) = claims(store)
        second = load(store, tmp_path / "b.jsonl", line("a"))
        assert claims(store) == []
        assert finished(store, claim)
        assert reasons(queries, first) == reasons(queries, second) == ["ok"]

    def test_with_what_was_judged_before(self, store: Store, queries: Queries, tmp_path: Path) -> None:
        load(store, tmp_path / "a.jsonl", line("a"))
        judge_all(store)
        run_id = load(store, tmp_path / "b.jsonl", line("a"), line("b"))
        tally = queries.tally(run_id)
        assert (tally.statuses, tally.shared) == ({"done": 1, "queued": 1}, 1)

    def test_a_known_line_is_stored_like_a_new_one(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        odd = {"header": "", "formal_statement": "theorem o : True := by", "generation": "no fence"}
        lines = [line("a"), odd | {"name": "n\0ℝ", "group": "g"}, line("b", timeout=7), line("a")]
        first = load(store, tmp_path / "a.jsonl", *lines)
        judge_all(store)
        second = load(store, tmp_path / "b.jsonl", line("new"), *lines, line("newer"), new_run=True)
        was, new = (list(queries.judged(run_id, 0)) for run_id in (first, second))
        assert [job.status for job in new] == ["queued", *["done"] * 4, "queued"]
        assert [job.shared for job in new] == [False, *[True] * 4, False]
        assert [job._replace(run_id=first, line=job.line - 1, shared=False) for job in new[1:-1]] == [
            job._replace(shared=False) for job in was
        ]

    @pytest.mark.parametrize(
        "options",
        [
            {"wall_seconds": 31.0},
            {"memory_mib": 4095},
            {"share": False},
            {"assurance": Assurance(axioms=("propext",))},
            {"environment": "other"},
        ],
        ids=lambda options: next(iter(options)),
    )
    def test_but_not_what_differs(
        self, store: Store, queries: Queries, tmp_path: Path, options: dict[str, object]
    ) -> None:
        load(store, tmp_path / "a.jsonl", line("a"))
        judge_all(store)
        run_id = load(store, tmp_path / "b.jsonl", line("a"), **options)
        assert queries.tally(run_id).statuses == {"queued": 1}

    @pytest.mark.parametrize("changed", [{"digest": "d9"}, {"checker_version": "2"}], ids=str)
    def test_nor_what_another_library_or_checker_judges(
        self, store: Store, queries: Queries, tmp_path: Path, changed: dict[str, str]
    ) -> None:
        load(store, tmp_path / "a.jsonl", line("a"))
        judge_all(store)
        store.register([replace(CORE, **changed)])
        run_id = load(store, tmp_path / "b.jsonl", line("a"))
        assert queries.tally(run_id).statuses == {"queued": 1}

    def test_what_was_judged_with_something_else_than_expected_is_one_line_s_own(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"))
        store.register([replace(CORE, digest="d9")])
        judge_all(store)  # by a worker that has the library of before
        again = load(store, tmp_path / "b.jsonl", line("a"))
        assert reasons(queries, run_id) == ["ok"]
        assert queries.tally(again).statuses == {"queued": 1}


class TestAVerdictByChance:
    def test_is_not_shared_later(self, store: Store, queries: Queries, tmp_path: Path) -> None:
        load(store, tmp_path / "a.jsonl", line("a"))
        judge_all(store, limit="wall")
        run_id = load(store, tmp_path / "b.jsonl", line("a"))
        assert queries.tally(run_id).statuses == {"queued": 1}

    def test_is_one_line_s_own_and_the_others_are_checked_anew(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"), line("a"), line("a"))
        (claim,) = claims(store)
        recorded = store.record([(claim, a_decision(limit="memory"))])
        assert recorded.anew == 2
        assert reasons(queries, run_id) == ["memory_limit", "queued", "queued"]
        assert judge_all(store) == 2
        assert reasons(queries, run_id) == ["memory_limit", "ok", "ok"]

    def test_that_counted_steps_and_no_seconds_is_shared(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"), line("a"))
        (claim,) = claims(store)
        assert store.record([(claim, a_decision(limit="output"))]).anew == 0
        assert queries.tally(run_id).statuses == {"done": 2}

    def test_a_failure_of_the_farm_is_told_to_all_who_wait_and_to_nobody_later(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"), line("a"))
        judge_all(store, box_error="no disk")
        assert reasons(queries, run_id) == ["box_failed"] * 2
        later = load(store, tmp_path / "b.jsonl", line("a"))
        assert queries.tally(later).statuses == {"queued": 1}


class TestWhatEndsWhileARunIsLoaded:
    """A run that is being loaded is seen by nobody, and attaches itself to checks that go on meanwhile."""

    @pytest.fixture
    def claim(self, store: Store, tmp_path: Path) -> Claim:
        load(store, tmp_path / "a.jsonl", line("a"), line("a"))
        (claim,) = claims(store)
        return claim

    def load_around(self, store: Store, path: Path, meanwhile: object) -> str:
        """Load a run of the same line; `meanwhile` happens when it is attached and not yet committed."""
        known = Queries(store.engine).served()
        options = SubmitOptions(assembly=AssemblyOptions(), environment="core")
        write(path, line("a"))
        with (
            store.transaction() as connection,
            loading(connection, "newrun", options) as load,
            preparing(options, known, processes=0) as prepare,
            opened(path) as read,
        ):
            load.open_manifest(path)
            for block in prepare(read, 0):
                load.add(block)
            load.close_manifest(read.fingerprint())
            assert callable(meanwhile)
            meanwhile()
        return "newrun"

    def test_a_verdict_to_be_shared_is_shared(
        self, store: Store, queries: Queries, tmp_path: Path, claim: Claim
    ) -> None:
        run_id = self.load_around(store, tmp_path / "b.jsonl", lambda: finished(store, claim))
        assert reasons(queries, run_id) == ["ok"]

    def test_a_verdict_by_chance_is_not(
        self, store: Store, queries: Queries, tmp_path: Path, claim: Claim
    ) -> None:
        run_id = self.load_around(store, tmp_path / "b.jsonl", lambda: finished(store, claim, limit="wall"))
        assert reasons(queries, run_id) == ["queued"]

    def test_what_is_cancelled_is_checked_all_the_same(
        self, store: Store, queries: Queries, tmp_path: Path, claim: Claim
    ) -> None:
        other = queries.run(None).id
        run_id = self.load_around(store, tmp_path / "b.jsonl", lambda: revise.cancel(store, other))
        assert not finished(store, claim)
        assert reasons(queries, run_id) == ["queued"]
        assert judge_all(store) == 1
        assert reasons(queries, run_id) == ["ok"]

    def test_two_loads_of_the_same_lines_at_once_make_one_check_of_each(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        entries = [line(f"t{number}") for number in range(300)]
        paths = [
            write(tmp_path / f"{name}.jsonl", *order)
            for name, order in (("a", entries), ("b", entries[::-1]))
        ]
        runs: list[str] = []
        threads = [
            threading.Thread(target=lambda path=path: runs.append(submitted(store, path).run_id))
            for path in paths
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sum(queries.tally(run_id).shared for run_id in runs) == 300
        assert len(claims(store, most=1000)) == 300


class TestTurns:
    def test_runs_of_a_class_take_turns(self, store: Store, tmp_path: Path) -> None:
        load(store, tmp_path / "a.jsonl", *(line(f"a{number}") for number in range(50)))
        assert words(claims(store, most=10)) == [f"a{number}" for number in range(10)]
        load(store, tmp_path / "b.jsonl", *(line(f"b{number}") for number in range(5)))
        load(store, tmp_path / "c.jsonl", *(line(f"c{number}") for number in range(5)))
        taken = Counter(word[0] for word in words(claims(store, most=15)))
        assert taken == {"a": 5, "b": 5, "c": 5}

    def test_a_class_comes_before_the_next(self, store: Store, tmp_path: Path) -> None:
        for name, priority in (("b", Priority.BATCH), ("o", Priority.ONLINE), ("i", Priority.INTERACTIVE)):
            load(store, tmp_path / name, *(line(f"{name}{n}") for n in range(2)), priority=priority)
        assert words(claims(store)) == ["i0", "i1", "o0", "o1", "b0", "b1"]

    def test_a_run_begins_where_the_others_are_whatever_came_back_meanwhile(
        self, store: Store, tmp_path: Path
    ) -> None:
        load(store, tmp_path / "a.jsonl", *(line(f"a{number}") for number in range(40)))
        first, *_rest = claims(store, most=20)
        store.give_back([Released(claim=first, outcome="returned", detail="", failed=False)])
        load(store, tmp_path / "b.jsonl", *(line(f"b{number}") for number in range(20)))
        taken = Counter(word[0] for word in words(claims(store, most=11)))
        assert taken == {"a": 6, "b": 5}

    def test_what_came_back_is_found_when_the_whole_queue_is_looked_through_again(
        self, store: Store, tmp_path: Path
    ) -> None:
        load(store, tmp_path / "a.jsonl", *(line(f"a{number}") for number in range(40)))
        seconds = itertools.count()
        front = Front(lambda: float(next(seconds)))  # every look seems to take long

        def take() -> Claim:
            (claim,) = store.claim(("core",), worker="w1", lease_seconds=60, front=front)
            return claim

        first, _second = take(), take()
        store.give_back([Released(claim=first, outcome="returned", detail="", failed=False)])
        load(store, tmp_path / "i.jsonl", line("i"), priority=Priority.INTERACTIVE)
        taken = words([take() for _ in range(30)])
        assert taken[:4] == ["i", "a2", "a3", "a4"]
        at = taken.index("a0")
        assert taken[1:at] + taken[at + 1 :] == [f"a{number}" for number in range(2, 30)]

    def test_what_another_run_waits_for_already_comes_as_early_as_ones_own(
        self, store: Store, tmp_path: Path
    ) -> None:
        load(store, tmp_path / "a.jsonl", *(line(f"a{number}") for number in range(50)))
        load(store, tmp_path / "b.jsonl", line("a49"))
        assert "a49" in words(claims(store, most=2))
        load(store, tmp_path / "c.jsonl", line("a48"), priority=Priority.INTERACTIVE)
        assert words(claims(store, most=1)) == ["a48"]

    def test_environments_take_turns_by_the_order_in_which_they_are_asked_for(
        self, store: Store, tmp_path: Path
    ) -> None:
        for name in ("core", "other"):
            load(store, tmp_path / name, *(line(f"{name}{n}") for n in range(3)), environment=name)
        assert words(claims(store, most=1, served=("core", "other"))) == ["core0"]
        assert words(claims(store, most=1, served=("other", "core"))) == ["other0"]


class TestCancel:
    def test_what_is_unfinished_is_cancelled_and_what_is_judged_stays(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"), line("b"), line("c"))
        done, running = claims(store, most=2)
        finished(store, done)
        assert revise.cancel(store, run_id) == 2
        assert reasons(queries, run_id) == ["ok", "cancelled", "cancelled"]
        assert not finished(store, running)
        assert store.lost([running.hold]) == [running.hold]
        assert claims(store) == []
        assert [attempt["outcome"] for attempt in queries.attempts(run_id, 0, 2)] == ["cancelled"]

    def test_what_another_run_waits_for_goes_on(self, store: Store, queries: Queries, tmp_path: Path) -> None:
        mine = load(store, tmp_path / "a.jsonl", line("a"), line("b"))
        theirs = load(store, tmp_path / "b.jsonl", line("a"))
        assert revise.cancel(store, mine) == 2
        assert judge_all(store) == 1
        assert reasons(queries, mine) == ["cancelled", "cancelled"]
        assert reasons(queries, theirs) == ["ok"]

    def test_what_was_cancelled_is_not_shared(self, store: Store, queries: Queries, tmp_path: Path) -> None:
        revise.cancel(store, load(store, tmp_path / "a.jsonl", line("a")))
        run_id = load(store, tmp_path / "b.jsonl", line("a"))
        assert judge_all(store) == 1
        assert reasons(queries, run_id) == ["ok"]

    def test_a_run_that_is_done_stays_what_it_was(self, store: Store, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", line("a"))
        first = submitted(store, path)
        judge_all(store)
        assert revise.cancel(store, first.run_id) == 0
        assert submitted(store, path).resumed

    def test_twice_changes_nothing(self, store: Store, tmp_path: Path) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"))
        assert (revise.cancel(store, run_id), revise.cancel(store, run_id)) == (1, 0)


class TestDeadlines:
    def test_what_has_not_begun_by_then_is_cancelled(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"), line("b"), deadline_seconds=3600)
        (running,) = claims(store, most=1)
        assert store.sweep(checker_version="1").past_deadline == 0
        with store.engine.begin() as connection:
            connection.execute(text("UPDATE runs SET deadline_at = now() - interval '1 second'"))
        assert store.sweep(checker_version="1").past_deadline == 1
        assert finished(store, running)
        assert reasons(queries, run_id) == ["ok", "cancelled"]

    def test_what_comes_back_later_is_cancelled_too(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"), deadline_seconds=1e-6)
        (running,) = claims(store)
        store.sweep(checker_version="1")
        store.give_back([Released(claim=running, outcome="returned", detail="", failed=False)])
        assert store.sweep(checker_version="1").past_deadline == 1
        assert reasons(queries, run_id) == ["cancelled"]


class TestGroups:
    def entries(self) -> list[dict[str, object]]:
        return [line(f"{group}{n}", name=f"{group}{n}", group=group) for group in "gh" for n in range(3)]

    def test_the_first_proof_ends_the_rest_of_its_group(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run_id = load(store, tmp_path / "a.jsonl", *self.entries(), stop_on_first_proof=True)
        wrong, right, running, *_ = claims(store, most=3)
        finished(store, wrong, limit="output")
        finished(store, right)
        assert reasons(queries, run_id)[:3] == ["output_limit", "ok", "cancelled"]
        assert reasons(queries, run_id)[3:] == ["queued"] * 3
        assert not finished(store, running)
        assert queries.line(run_id, 0, 3).cancelled == "group"

    def test_lines_without_a_group_are_grouped_by_name(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        entries = [line(f"t{n}", name="same") for n in range(3)]
        run_id = load(store, tmp_path / "a.jsonl", *entries, stop_on_first_proof=True)
        (claim,) = claims(store, most=1)
        finished(store, claim)
        assert reasons(queries, run_id) == ["ok", "cancelled", "cancelled"]

    def test_lines_without_group_and_name_are_no_group(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        load(store, tmp_path / "a.jsonl", line("t0", name=""))
        judge_all(store)
        entries = [line(f"t{n}", name="") for n in range(3)]
        run_id = load(store, tmp_path / "b.jsonl", *entries, stop_on_first_proof=True)
        assert reasons(queries, run_id) == ["ok", "queued", "queued"]
        (claim,) = claims(store, most=1)
        finished(store, claim)
        assert reasons(queries, run_id) == ["ok", "ok", "queued"]

    def test_a_group_may_have_a_name_of_any_length(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        long = "".join(map(str, range(5000)))
        entries = [line(f"t{n}", group=f"{long}{n % 2}") for n in range(4)]
        run_id = load(store, tmp_path / "a.jsonl", *entries, stop_on_first_proof=True)
        (claim,) = claims(store, most=1)
        finished(store, claim)
        assert reasons(queries, run_id) == ["ok", "queued", "cancelled", "queued"]

    def test_without_the_option_all_are_judged(self, store: Store, queries: Queries, tmp_path: Path) -> None:
        run_id = load(store, tmp_path / "a.jsonl", *self.entries())
        assert judge_all(store) == 6
        assert reasons(queries, run_id) == ["ok"] * 6

    def test_a_proof_that_is_known_wins_at_once(self, store: Store, queries: Queries, tmp_path: Path) -> None:
        load(store, tmp_path / "a.jsonl", line("g1"))
        judge_all(store)
        run_id = load(store, tmp_path / "b.jsonl", *self.entries(), stop_on_first_proof=True)
        assert reasons(queries, run_id) == ["cancelled", "ok", "cancelled", "queued", "queued", "queued"]

    def test_proofs_of_a_group_recorded_at_once_all_count(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        entries = [line(f"g{n}", group="g") for n in range(40)]
        run_id = load(store, tmp_path / "a.jsonl", *entries, stop_on_first_proof=True)
        taken = claims(store, most=30)
        with ThreadPoolExecutor(10) as pool:
            recorded = list(pool.map(lambda claim: finished(store, claim), taken))
        assert any(recorded)
        assert Counter(reasons(queries, run_id)) == {"ok": sum(recorded), "cancelled": 40 - sum(recorded)}

    def test_what_is_just_being_claimed_ends_as_well(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run_id = load(store, tmp_path / "a.jsonl", *self.entries()[:3], stop_on_first_proof=True)
        (first,) = claims(store, most=1)
        with store.engine.connect() as claiming:
            (other,) = claiming.scalars(
                text("SELECT id FROM checks WHERE status = 'queued' LIMIT 1 FOR UPDATE")
            )
            recording = threading.Thread(target=finished, args=(store, first))
            recording.start()
            eventually(lambda: reasons(queries, run_id)[0] == "ok")
            taken = text("""
                UPDATE checks SET status = 'running', attempt = 1, lease_until = now(), worker = 'w2',
                started_at = now() WHERE id = :id RETURNING started_at
            """)
            moment = claiming.scalar(taken, {"id": other})
            claiming.commit()
            recording.join(20)
        assert reasons(queries, run_id) == ["ok", "cancelled", "cancelled"]
        assert store.lost([(other, 1, moment)]) == [(other, 1, moment)]

    def test_another_run_that_waits_for_a_rival_gets_its_verdict(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        load(store, tmp_path / "a.jsonl", *self.entries()[:2], stop_on_first_proof=True)
        theirs = load(store, tmp_path / "b.jsonl", line("g1"))
        first, second = claims(store)
        finished(store, first)
        assert finished(store, second)
        assert reasons(queries, theirs) == ["ok"]


class TestRetry:
    def test_only_the_lines_of_that_reason_are_checked_anew_with_the_new_limit(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"), line("b"), line("c"))
        for claim, facts in zip(claims(store), ({}, {"limit": "wall"}, {"limit": "output"}), strict=True):
            finished(store, claim, **facts)
        assert revise.retry(store, run_id, Pick(verdict=("timeout",)), wall_seconds=120) == 1
        (claim,) = claims(store)
        assert (claim.check.limits.wall_seconds, claim.check.limits.cpu_seconds) == (120, 240)
        finished(store, claim)
        assert reasons(queries, run_id) == ["ok", "ok", "output_limit"]

    def test_what_was_cancelled_can_be_taken_up_again(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"), line("b"))
        revise.cancel(store, run_id)
        assert revise.retry(store, run_id, Pick(status=("cancelled",))) == 2
        assert judge_all(store) == 2
        assert reasons(queries, run_id) == ["ok", "ok"]

    def test_nothing_of_the_kind_changes_nothing(self, store: Store, tmp_path: Path) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"))
        assert revise.retry(store, run_id, Pick(verdict=("timeout",))) == 0
        assert len(claims(store)) == 1


class TestWhatASharedCheckCosts:
    """Each check costs 0.4 s of processor time, in one of the runs that have its verdict."""

    def costs(self, queries: Queries, *run_ids: str) -> list[float]:
        """Return what runs cost, as their reports and the views say."""
        reported = [report(queries, [queries.run(each)]).total.costs.cpu_seconds for each in run_ids]
        asked = text("SELECT cpu_seconds FROM report.runs WHERE run_id = :run")
        with queries.engine.connect() as connection:
            seen = [connection.scalar(asked, {"run": each}) for each in run_ids]
        assert seen == reported
        return [round(each, 3) for each in reported]

    def test_is_of_the_run_that_brought_it(self, store: Store, queries: Queries, tmp_path: Path) -> None:
        first = load(store, tmp_path / "a.jsonl", line("a"), line("b"))
        second = load(store, tmp_path / "b.jsonl", line("a"), line("b"), line("c"))
        judge_all(store)
        assert self.costs(queries, first, second) == [0.8, 0.4]

    def test_is_of_another_run_when_that_one_is_cancelled(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        first = load(store, tmp_path / "a.jsonl", line("a"), line("b"))
        others = [load(store, tmp_path / f"{n}.jsonl", line("a"), line("b")) for n in range(2)]
        revise.cancel(store, first)
        judge_all(store)
        gone, *left = self.costs(queries, first, *others)
        assert (gone, sorted(left)) == (0.0, [0.0, 0.8])

    def test_is_of_another_run_when_that_one_is_too_late(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        first = load(store, tmp_path / "a.jsonl", line("a"), deadline_seconds=0.001)
        second = load(store, tmp_path / "b.jsonl", line("a"))
        eventually(lambda: store.sweep(checker_version="1").past_deadline)
        judge_all(store)
        assert self.costs(queries, first, second) == [0.0, 0.4]

    def test_is_of_another_line_when_a_proof_cancels_the_one_that_brought_it(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        entries = [line("g0", group="g"), line("g1", group="g")]
        first = load(store, tmp_path / "a.jsonl", *entries, stop_on_first_proof=True)
        second = load(store, tmp_path / "b.jsonl", line("g1"))
        judge_all(store)
        assert reasons(queries, first) == ["ok", "cancelled"]
        assert self.costs(queries, first, second) == [0.4, 0.4]

    def test_is_of_another_run_when_the_line_that_brought_it_is_checked_anew(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        first = load(store, tmp_path / "a.jsonl", line("a"), line("a"))
        others = [load(store, tmp_path / f"{n}.jsonl", line("a")) for n in range(2)]
        judge_all(store)
        assert self.costs(queries, first, *others) == [0.4, 0.0, 0.0]
        assert revise.retry(store, first, Pick(verdict=("proved",))) == 2
        judge_all(store)
        again, *left = self.costs(queries, first, *others)
        assert (again, sorted(left)) == (0.8, [0.0, 0.4])
        revise.cancel(store, first)
        assert self.costs(queries, first, *others) == [again, *left]

    def test_is_of_nobody_when_nobody_has_its_verdict(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        runs = [load(store, tmp_path / f"{n}.jsonl", line("a")) for n in range(2)]
        judge_all(store)
        for run_id in runs:
            revise.retry(store, run_id, Pick(verdict=("proved",)))
        assert self.costs(queries, *runs) == [0.0, 0.0]
        judge_all(store)
        assert self.costs(queries, *runs) == [0.4, 0.4]

    def test_runs_that_share_checks_both_ways_are_checked_anew_at_once(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        for nth in range(5):
            entries = [line(f"t{nth}_{number}") for number in range(200)]
            runs = [
                load(store, tmp_path / f"{nth}{n}.jsonl", *entries[::way]) for n, way in enumerate((1, -1, 1))
            ]
            # Half of the checks are the first run's, and half the second's.
            with store.transaction() as connection:
                swap = text("""
                    UPDATE jobs SET shared = NOT shared
                    WHERE run_id = ANY(:runs) AND check_id % 2 = 0
                """)
                connection.execute(swap, {"runs": runs[:2]})
            judge_all(store, most=200)
            with ThreadPoolExecutor(2) as pool:
                retried = pool.map(lambda run: revise.retry(store, run, Pick(verdict=("proved",))), runs[:2])
                assert list(retried) == [200, 200]
            assert self.costs(queries, *runs) == [0.0, 0.0, 80.0]
            judge_all(store, most=400)


class TestTheSameManifestAgain:
    def test_is_the_same_run(self, store: Store, queries: Queries, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", line("a"))
        first, again = submitted(store, path), submitted(store, path)
        assert (again.run_id, again.resumed, first.resumed) == (first.run_id, True, False)
        assert len(queries.runs()) == 1

    def test_with_other_options_or_lines_or_on_demand_it_is_another(
        self, store: Store, tmp_path: Path
    ) -> None:
        path = write(tmp_path / "a.jsonl", line("a"))
        runs = {
            submitted(store, path).run_id,
            submitted(store, path, wall_seconds=31.0).run_id,
            submitted(store, path, new_run=True).run_id,
        }
        write(path, line("a"), line("b"))
        runs.add(submitted(store, path).run_id)
        assert len(runs) == 4

    def test_after_a_cancel_it_is_another(self, store: Store, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", line("a"))
        first = submitted(store, path)
        revise.cancel(store, first.run_id)
        assert not submitted(store, path).resumed

    def test_submitted_twice_at_once_is_one_run(self, store: Store, queries: Queries, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", *(line(f"t{number}") for number in range(200)))
        threads = [threading.Thread(target=submitted, args=(store, path)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(queries.runs()) == 1


def test_a_queue_that_is_full_takes_no_run_and_says_so(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    entries = [line(f"t{number}") for number in range(5)]
    path = write(tmp_path / "a.jsonl", *entries)
    with pytest.raises(QueueFull, match="more than 4 checks would wait") as refused:
        submitted(store, path, queue_limit=4)
    assert refused.value.exit_status == ExitStatus.TRY_AGAIN
    assert queries.runs() == []
    submitted(store, path, queue_limit=5)
    assert len(queries.runs()) == 1
    broken = tmp_path / "b.jsonl"
    broken.write_text("{")
    with pytest.raises(QueueFull):  # and is not even read
        submitted(store, broken, queue_limit=5)


def test_a_load_into_an_environment_that_is_forgotten_meanwhile_ends_and_stores_nothing(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", line("a"), line("b", environment="other"))
    options = SubmitOptions(assembly=AssemblyOptions(), environment="core")
    known = queries.served()
    with store.transaction() as connection:
        connection.execute(text("DELETE FROM environments WHERE name = 'other'"))
    with pytest.raises(FarmError, match=r"1 line could not be queued: .*farm environments.*submit again"):
        submit(store, [path], options, known=known)
    assert queries.runs() == []
    assert claims(store) == []
