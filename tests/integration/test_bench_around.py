"""The contest around Lean: a simulated cluster judges real runs, and nothing is left of the bench's farm."""

from __future__ import annotations

import json

import pytest
from farm_workers.bench.measure import programs

from tests.bench.around.answers import write_answers
from tests.bench.around.judging import judged
from tests.bench.around.loading import Lines, loaded
from tests.bench.around.rising import rising
from tests.bench.around.serving import served
from tests.bench.around.site import farm_at_work
from tests.bench.around.waiting import waiting_at_once
from tests.bench.around.workers import SIMULATED, stand_ins
from tests.bench.checks.command import planned_around
from tests.bench.pruning import beside

pytestmark = pytest.mark.long


def test_stand_ins_judge_every_check_once_and_end_with_the_block() -> None:
    with farm_at_work(connections=30) as farm, stand_ins(farm, 2, at_once=2, check_seconds=0.01) as workers:
        found = judged(farm, workers, SIMULATED, programs("", 0, 50), truly=False)
        tally = farm.queries.tally(found.run_id)
    assert tally.total == 50
    assert tally.statuses == {"done": 50}
    assert set(tally.verdicts) == {("proved", "ok"), ("rejected", "error")}
    assert found.seconds > 50 * 0.01 / 4
    assert found.used.transactions > 0
    assert workers.process.poll() is not None
    assert not farm.folder.exists()


def test_what_comes_before_and_after_the_worker_is_measured() -> None:
    with farm_at_work() as farm:
        found = {figure.key: figure for figure in loaded(farm, Lines(count=200), times=1, say=lambda _: None)}
    assert set(found) == {
        *("submit_200", "submit_called_200", "submit_memory_200", "submit_memory_200_children"),
        *("known_200", "export_200", "export_memory_200", "export_memory_200_children"),
    }
    assert all(figure.measured > 0 for key, figure in found.items() if "children" not in key)


def test_the_answers_are_valid_lines_and_no_two_are_the_same(tmp_path) -> None:
    lines = write_answers(tmp_path / "answers.jsonl", 7_000, brief=True).read_text().splitlines()
    assert len(set(lines)) == 7_000
    assert {"name", "generation", "formal_statement"} <= json.loads(lines[-1]).keys()


def test_a_quick_bench_looks_at_everything_with_fewer_lines() -> None:
    quick, whole = (planned_around(100_000, million=False, quick=quick) for quick in (True, False))
    assert quick.lines < whole.lines
    assert {size.check_seconds > 0 for size in quick.sizes} == {True, False}


def test_many_clients_wait_at_once_and_all_are_answered() -> None:
    with farm_at_work() as farm, served(farm, without_worker=True) as service:
        found = {figure.key: figure for figure in waiting_at_once(service, lambda _: None, clients=200)}
    assert found["serve_waiting_memory"].reached
    assert found["serve_waiting_answered"].measured > 0


def test_a_rising_load_is_carried_and_its_cost_is_told() -> None:
    idle, row = rising(2, 3, [0.5], lambda _: None, idle_seconds=1.0)
    assert idle["workers"] == row["workers"] == 2
    assert row["threads"] == 6
    assert row["offered_per_second"] == 12
    assert 0.3 < float(str(row["share"])) <= 1.5
    assert row["transactions_verdict"] and row["wal_bytes_verdict"] and row["redis_commands_verdict"]


def test_a_prune_is_measured_beside_a_worker() -> None:
    found = {figure.key: figure for figure in beside(3000, queued=2000, alone_seconds=1.0)}
    assert found["prune"].measured > 0
    assert found["prune_beside_most"].measured >= found["prune_beside_p50"].measured > 0
