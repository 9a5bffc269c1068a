"""What is old is deleted, and nothing that anybody needs or is about to need, on a real PostgreSQL."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from farm.assembly.program import AssemblyOptions
from farm.errors import UnknownRun
from farm.judging.submit_options import SubmitOptions
from farm.manifest.entry import Entry
from farm.reports.report import report
from farm.runs import revise
from farm.runs.batch import Items, store_batch
from farm.runs.export import export, export_to
from farm.runs.pick import Pick
from farm.runs.prune import Pruned, PrunePlan, look, prune
from farm.runs.recheck import Recheck, recheck
from farm.store import postgres, readings
from farm.store.batches import Batch, ItemKey
from farm.store.queries import Queries, StoredRun
from farm.store.transitions import Store
from tests.commands import lines, write
from tests.farms import CORE, finished, load
from tests.processes import eventually

DAY = 86_400.0
NEWER = replace(CORE, name="newer", digest="d" * 64)
OLDER = PrunePlan(older_than_seconds=30 * DAY)
_TABLES = (
    "runs",
    "manifests",
    "jobs",
    "item_keys",
    "checks",
    "attempts",
    "verdicts",
    "programs",
    "pruned_runs",
)


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE])
    return store


@pytest.fixture
def queries(database: Engine) -> Queries:
    return Queries(database)


def line(words: str, **more: object) -> dict[str, object]:
    return {"name": words, "predicted_proof": f"theorem {words} : True := trivial", **more}


def rechecked(store: Store, run: StoredRun) -> str:
    """Return the run that judges another again in the newer environment."""
    known = Queries(store.engine).served()
    return recheck(store, run, Recheck(environment=NEWER.name), known=known).run_id


def judge_all(store: Store, *, environment: str = "core", **facts: object) -> int:
    claims = store.claim([environment], worker="w", lease_seconds=60, most=1000)
    return sum(finished(store, claim, **facts) for claim in claims)


def export_all(store: Store, run_id: str) -> None:
    queries = Queries(store.engine)
    list(export(store, queries, queries.run(run_id), processes=0))


def judged_run(store: Store, path: Path, *words: str) -> str:
    """Return a run of such lines that was judged and exported."""
    run_id = load(store, path, *map(line, words))
    judge_all(store)
    export_all(store, run_id)
    return run_id


def ask(store: Store, statement: str, **values: object) -> None:
    with store.engine.begin() as connection:
        connection.execute(text(statement), values)


def age(store: Store, *, days: float = 60.0) -> None:
    """Let so many days pass since all that has happened."""
    for moment in (
        *("runs.created_at", "runs.cancelled_at", "manifests.exported_at"),
        *("verdicts.decided_at", "checks.queued_at"),
    ):
        table, column = moment.split(".")
        ask(store, f"UPDATE {table} SET {column} = {column} - :days * interval '1 day'", days=days)


def rows(store: Store) -> dict[str, int]:
    """Return how many rows each table has that has any."""
    with store.engine.connect() as connection:
        counts = {table: connection.scalar(text(f"SELECT count(*) FROM {table}")) for table in _TABLES}
    return {table: count for table, count in counts.items() if count}


def kept(found: Pruned) -> dict[str, list[str]]:
    return dict(found.kept)


@contextmanager
def locked(store: Store, table: str, mode: str = "EXCLUSIVE") -> Iterator[None]:
    """Have all who write to a table wait inside the block."""
    with store.engine.begin() as connection:
        connection.execute(text(f"LOCK TABLE {table} IN {mode} MODE"))
        yield


def waits_for(store: Store, table: str, *, many: int = 1) -> bool:
    """Whether so many wait for a lock on a table."""
    with store.engine.connect() as connection:
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = to_regclass(:table)"
        return int(connection.scalar(text(waiting), {"table": table}) or 0) >= many


class TestWhatGoes:
    def test_an_old_run_with_all_that_only_it_needed(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        old = judged_run(store, tmp_path / "a.jsonl", "a", "b", "c")
        age(store)
        new = judged_run(store, tmp_path / "b.jsonl", "d")
        found = prune(store, OLDER)
        assert (found.runs, found.lines, found.checks, found.programs) == (1, 3, 3, 3)
        with pytest.raises(UnknownRun):
            queries.run(old)
        assert queries.tally(new).verdicts == {("proved", "ok"): 1}
        assert rows(store) == dict.fromkeys(
            ("runs", "manifests", "jobs", "checks", "attempts", "verdicts", "programs"), 1
        )

    def test_what_was_counted_stays_counted(self, store: Store, tmp_path: Path) -> None:
        judged_run(store, tmp_path / "a.jsonl", "a", "b", "a")
        before = readings.read(store.engine)
        age(store)
        prune(store, OLDER)
        after = readings.read(store.engine)
        assert (after.attempts, after.lines) == (before.attempts, before.lines)
        assert after.lines == {"own": 2, "shared": 1}

    def test_a_cancelled_run_and_its_checks(self, store: Store, tmp_path: Path) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"), line("b"))
        assert revise.cancel(store, run_id) == 2
        age(store)
        assert prune(store, OLDER).checks == 2
        assert rows(store) == {}

    def test_the_checks_that_a_retry_left_behind(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run_id = judged_run(store, tmp_path / "a.jsonl", "a")
        revise.retry(store, run_id, Pick(verdict=("proved",)))
        age(store)
        found = prune(store, OLDER)
        assert (found.checks, kept(found)) == (1, {"unfinished": [run_id]})
        assert judge_all(store) == 1
        assert queries.tally(run_id).verdicts == {("proved", "ok"): 1}

    def test_more_runs_and_lines_than_one_step_deletes(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(1, 5):
            judged_run(
                store, tmp_path / f"{number}.jsonl", *(f"a{number}_{nth}" for nth in range(2 * number))
            )
        age(store)
        monkeypatch.setattr("farm.runs.prune._LINES", 3)
        monkeypatch.setattr("farm.runs.prune._CHECKS", 3)
        monkeypatch.setattr("farm.store.pruning._RUNS", 2)
        monkeypatch.setattr("farm.store.pruning._VERDICTS", 2)
        found = prune(store, OLDER)
        assert (found.runs, found.lines, found.checks, found.programs) == (4, 20, 20, 20)
        assert rows(store) == {}

    def test_a_look_tells_what_would_go_and_deletes_nothing(self, store: Store, tmp_path: Path) -> None:
        judged_run(store, tmp_path / "a.jsonl", "a", "b")
        load(store, tmp_path / "b.jsonl", line("c"))
        age(store)
        before = rows(store)
        found = look(store, OLDER)
        assert (found.runs, found.lines, list(found.kept)) == (1, 2, ["unfinished"])
        assert rows(store) == before


class TestWhatStays:
    def test_an_unfinished_run(self, store: Store, queries: Queries, tmp_path: Path) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"), line("b"))
        (claim,) = store.claim(["core"], worker="w", lease_seconds=60, most=1)
        age(store)
        assert kept(prune(store, OLDER)) == {"unfinished": [run_id]}
        assert finished(store, claim)
        assert queries.tally(run_id).statuses == {"done": 1, "queued": 1}

    def test_a_run_whose_verdicts_are_not_in_its_manifests(self, store: Store, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        run_id = load(store, path, line("a"))
        judge_all(store)
        age(store)
        assert kept(prune(store, OLDER)) == {"unexported": [run_id]}
        export_all(store, run_id)
        assert lines(path)[0]["farm"]["run_id"] == run_id

    def test_unless_that_is_asked_for(self, store: Store, tmp_path: Path) -> None:
        load(store, tmp_path / "a.jsonl", line("a"))
        judge_all(store)
        age(store)
        plan = PrunePlan(older_than_seconds=30 * DAY, unexported=True)
        assert prune(store, plan).runs == 1
        assert rows(store) == {}

    def test_a_run_of_which_one_manifest_was_exported_before_its_last_verdict(
        self, store: Store, tmp_path: Path
    ) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"), line("b"))
        (claim,) = store.claim(["core"], worker="w", lease_seconds=60, most=1)
        assert finished(store, claim)
        export_all(store, run_id)
        judge_all(store)
        age(store)
        assert kept(prune(store, OLDER)) == {"unexported": [run_id]}

    def test_a_run_whose_last_verdict_was_being_recorded_when_its_last_export_began(
        self, store: Store, tmp_path: Path
    ) -> None:
        run_id = load(store, tmp_path / "a.jsonl", line("a"))
        (claim,) = store.claim(["core"], worker="w", lease_seconds=60, most=1)
        worker = postgres.connect(
            store.engine.url.render_as_string(hide_password=False), application="farm-worker", works=True
        )
        with worker.begin() as connection:
            connection.execute(text("SELECT now()"))
            export_all(store, run_id)
            connection.execute(text(_RECORDED), {"id": claim.check_id})
        worker.dispose()
        age(store)
        assert kept(prune(store, OLDER)) == {"unexported": [run_id]}

    @pytest.mark.parametrize(
        "moment", ["verdicts.decided_at", "manifests.exported_at", "runs.cancelled_at", "runs.created_at"]
    )
    def test_a_run_to_which_something_happened_since(self, store: Store, tmp_path: Path, moment: str) -> None:
        judged_run(store, tmp_path / "a.jsonl", "a")
        age(store)
        table, column = moment.split(".")
        ask(store, f"UPDATE {table} SET {column} = now() - interval '1 day'")
        if moment == "verdicts.decided_at":
            ask(store, "UPDATE manifests SET exported_at = now()")
        assert prune(store, OLDER).runs == 0

    def test_what_a_younger_run_shares(self, store: Store, queries: Queries, tmp_path: Path) -> None:
        judged_run(store, tmp_path / "a.jsonl", "a", "b")
        age(store)
        young = load(store, tmp_path / "b.jsonl", line("b"))
        found = prune(store, OLDER)
        assert (found.runs, found.lines, found.checks, found.programs) == (1, 2, 1, 1)
        (job,) = queries.judged(young, 0)
        assert job.verdict is not None
        assert job.program == "theorem b : True := trivial"

    def test_a_text_that_another_check_refers_to(self, store: Store, tmp_path: Path) -> None:
        stated = {"header": "", "formal_statement": "theorem a : 1 = 1 := by", "name": "a"}
        for number, proof in enumerate(("rfl", "simp")):
            run_id = load(
                store, tmp_path / f"{number}.jsonl", stated | {"generation": f"```lean\n{proof}\n```"}
            )
            judge_all(store)
            export_all(store, run_id)
            age(store, days=60.0 * (1 - number))
        prune(store, OLDER)
        with store.engine.connect() as connection:
            missing = """
                SELECT count(*) FROM checks WHERE NOT EXISTS (
                    SELECT FROM programs WHERE sha256 IN (program_sha256, challenge_sha256)
                    HAVING count(*) = 1 + (challenge_sha256 IS NOT NULL)::integer)
            """
            assert connection.scalar(text(missing)) == 0
        assert rows(store)["checks"] == 1

    def test_a_verdict_where_verdicts_are_kept(self, store: Store, queries: Queries, tmp_path: Path) -> None:
        judged_run(store, tmp_path / "a.jsonl", "a", "b")
        age(store)
        plan = PrunePlan(older_than_seconds=30 * DAY, keep_verdicts=True)
        found = prune(store, plan)
        assert (found.runs, found.lines, found.checks, found.programs) == (1, 2, 0, 0)
        run_id = load(store, tmp_path / "b.jsonl", line("a"))
        assert queries.tally(run_id).statuses == {"done": 1}
        assert revise.retry(store, run_id, Pick(verdict=("proved",))) == 1
        assert judge_all(store) == 1  # its program is there
        assert prune(store, OLDER).checks == 2  # those of b, and of a before it was judged again


def item(words: str) -> Entry:
    return Entry(
        path="items",
        line=1,
        name=words,
        header="",
        formal_statement="",
        generation="",
        predicted_proof=f"theorem {words} : True := trivial",
    )


def batch(store: Store, *words: str) -> Batch:
    """Store a batch of such items, each of which has its words for its key."""
    entries = [Entry(**{**_fields(item(each)), "line": number}) for number, each in enumerate(words, 1)]
    options = SubmitOptions(assembly=AssemblyOptions(), environment="core")
    keys = [ItemKey(key=each, sha256=each.encode(), line=number) for number, each in enumerate(words, 1)]
    made = Items(entries, options, Queries(store.engine).served())
    return store_batch(store, made, keys=keys, owner="someone")


def _fields(entry: Entry) -> dict[str, object]:
    return {name: getattr(entry, name) for name in entry.__dataclass_fields__}


class TestBatches:
    def test_go_with_their_keys(self, store: Store) -> None:
        first = batch(store, "a", "b")
        judge_all(store)
        age(store)
        found = prune(store, OLDER)
        assert (found.runs, found.lines, found.checks) == (1, 2, 2)
        assert rows(store) == {}
        again = batch(store, "a", "b")
        assert again.id != first.id
        assert judge_all(store) == 2

    def test_one_stays_that_has_an_item_of_a_later_one(self, store: Store, queries: Queries) -> None:
        first = batch(store, "a", "b")
        judge_all(store)
        age(store)
        second = batch(store, "c", "b")
        judge_all(store)
        assert second.items == ((second.id, 1), (first.id, 2))
        assert kept(prune(store, OLDER)) == {"in_use": [first.id]}
        assert len(queries.told(second.items, "someone")[1]) == 2
        age(store)
        assert prune(store, OLDER).runs == 1
        assert prune(store, OLDER).runs == 1
        assert rows(store) == {}


class TestBeside:
    """What begins before a prune and ends after it, or the other way round."""

    @pytest.fixture
    def later(self) -> Iterator[ThreadPoolExecutor]:
        with ThreadPoolExecutor(4) as threads:
            yield threads

    def between(self, store: Store, table: str, doing: Future[object]) -> None:
        """Prune while somebody is at work, and has come to where he writes to a table."""
        eventually(lambda: waits_for(store, table) or doing.done())
        assert not doing.done(), doing.result()
        prune(store, OLDER)

    def test_a_load_that_has_found_the_verdict_of_a_line(
        self, store: Store, queries: Queries, tmp_path: Path, later: ThreadPoolExecutor
    ) -> None:
        judged_run(store, tmp_path / "a.jsonl", "a", "b")
        age(store)
        with locked(store, "tallies"):
            doing = later.submit(load, store, tmp_path / "b.jsonl", line("a"), line("c"))
            self.between(store, "tallies", doing)
        assert queries.tally(doing.result()).statuses == {"done": 1, "queued": 1}
        (job, _) = queries.judged(doing.result(), 0)
        assert job.program == "theorem a : True := trivial"

    def test_a_load_that_waits_for_a_check_that_is_cancelled_meanwhile(
        self, store: Store, queries: Queries, tmp_path: Path, later: ThreadPoolExecutor
    ) -> None:
        first = load(store, tmp_path / "a.jsonl", line("a"))
        with locked(store, "verdicts"):  # it has joined the check, and has not looked what became of it
            by_text = line("b") | {"predicted_proof": "a lone surrogate: \ud800"}  # its verdict is written
            doing = later.submit(load, store, tmp_path / "b.jsonl", line("a"), by_text)
            eventually(lambda: waits_for(store, "verdicts") or doing.done())
            assert not doing.done(), doing.result()
            assert revise.cancel(store, first) == 1
            ask(store, "UPDATE runs SET created_at = now() - interval '60 days', cancelled_at = NULL")
            pruning = later.submit(prune, store, OLDER)
            eventually(lambda: pruning.done() or waits_for(store, "verdicts", many=2))
        assert pruning.result().runs == 1
        assert queries.tally(doing.result()).statuses == {"queued": 1, "done": 1}
        assert judge_all(store) == 1

    def test_a_load_that_has_found_a_text(
        self, store: Store, queries: Queries, tmp_path: Path, later: ThreadPoolExecutor
    ) -> None:
        judged_run(store, tmp_path / "a.jsonl", "a")
        age(store)
        with locked(store, "tallies"):
            doing = later.submit(load, store, tmp_path / "b.jsonl", line("a"), wall_seconds=7.0)
            self.between(store, "tallies", doing)
        run_id = doing.result()
        assert rows(store)["checks"] == 1  # the old one went
        assert judge_all(store) == 1
        assert queries.tally(run_id).statuses == {"done": 1}

    def test_a_batch_that_has_found_an_item_of_before(
        self, store: Store, queries: Queries, later: ThreadPoolExecutor
    ) -> None:
        first = batch(store, "a")
        judge_all(store)
        age(store)
        with locked(store, "tallies"):
            doing = later.submit(batch, store, "c", "a")
            self.between(store, "tallies", doing)
        assert doing.result().items[1] == (first.id, 1)
        assert len(queries.told(doing.result().items, "someone")[1]) == 2
        assert kept(prune(store, OLDER)) == {"in_use": [first.id]}
        assert len(queries.told(doing.result().items, "someone")[1]) == 2

    def test_a_batch_whose_item_of_before_is_being_deleted(
        self, store: Store, queries: Queries, later: ThreadPoolExecutor
    ) -> None:
        first = batch(store, "a")
        with store.engine.begin() as connection:
            connection.execute(text("SELECT FROM runs FOR UPDATE"))
            doing = later.submit(batch, store, "a")
            eventually(lambda: _someone_waits(store))
            connection.execute(text("DELETE FROM runs"))
        again = doing.result()
        assert again.id != first.id
        assert batch(store, "a").id == again.id

    def test_a_batch_that_has_found_verdict_and_text(
        self, store: Store, queries: Queries, later: ThreadPoolExecutor
    ) -> None:
        batch(store, "a")
        judge_all(store)
        ask(store, "DELETE FROM item_keys")
        age(store)
        with locked(store, "tallies"):
            doing = later.submit(batch, store, "a", "b")
            self.between(store, "tallies", doing)
        found = doing.result()
        assert judge_all(store) == 1
        told = queries.told(found.items, "someone")[1]
        assert [job.verdict is not None for job in told] == [True, True]

    def test_a_retry(self, store: Store, queries: Queries, tmp_path: Path, later: ThreadPoolExecutor) -> None:
        run_id = judged_run(store, tmp_path / "a.jsonl", "a", "b")
        age(store)
        with locked(store, "tallies"):
            doing = later.submit(revise.retry, store, run_id, Pick(verdict=("proved",)))
            self.between(store, "tallies", doing)
        assert doing.result() == 2
        assert queries.run(run_id).id == run_id
        assert judge_all(store) == 2
        assert queries.tally(run_id).verdicts == {("proved", "ok"): 2}

    def test_a_retry_of_a_run_that_is_gone_says_so(self, store: Store, tmp_path: Path) -> None:
        run_id = judged_run(store, tmp_path / "a.jsonl", "a")
        age(store)
        prune(store, OLDER)
        with pytest.raises(UnknownRun, match="was deleted by another process"):
            revise.retry(store, run_id, Pick(verdict=("proved",)))
        assert rows(store) == {}

    def test_a_recheck(
        self, store: Store, queries: Queries, tmp_path: Path, later: ThreadPoolExecutor
    ) -> None:
        run_id = judged_run(store, tmp_path / "a.jsonl", "a", "b")
        store.register([NEWER])
        age(store)
        with locked(store, "tallies"):
            doing = later.submit(rechecked, store, queries.run(run_id))
            self.between(store, "tallies", doing)
        again = doing.result()
        prune(store, OLDER)  # the old run goes, and the texts stay
        assert judge_all(store, environment=NEWER.name) == 2
        with pytest.raises(UnknownRun):
            queries.run(run_id)
        assert queries.tally(again).verdicts == {("proved", "ok"): 2}
        (job, _) = queries.judged(again, 0)
        assert job.program == "theorem a : True := trivial"
        age(store)
        assert prune(store, OLDER).runs == 1  # it was for looking at, and never to be exported
        assert rows(store) == {}

    def test_a_recheck_of_a_run_that_is_gone_says_so(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run = queries.run(judged_run(store, tmp_path / "a.jsonl", "a"))
        store.register([NEWER])
        age(store)
        prune(store, OLDER)
        with pytest.raises(UnknownRun, match="was deleted by another process"):
            rechecked(store, run)
        assert rows(store) == {}

    def test_an_export_whose_run_goes_leaves_the_manifest_as_it_was(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        path = tmp_path / "a.jsonl"
        run = queries.run(judged_run(store, path, "a", "b"))
        before = path.read_bytes()
        age(store)
        with pytest.raises(UnknownRun, match=f"run {run.id} was deleted by another process"):
            list(export(_PrunesFirst(store.engine), queries, run, processes=0))
        assert path.read_bytes() == before

    def test_an_export_elsewhere_whose_run_goes_writes_nothing(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run = queries.run(judged_run(store, tmp_path / "a.jsonl", "a"))
        (manifest,) = queries.manifests(run.id)
        age(store)
        prune(store, OLDER)
        with pytest.raises(UnknownRun):
            export_to(queries, run, manifest, tmp_path / "b.jsonl")
        assert not (tmp_path / "b.jsonl").exists()

    def test_a_report_on_a_run_that_goes_is_none(
        self, store: Store, queries: Queries, tmp_path: Path
    ) -> None:
        run = queries.run(judged_run(store, tmp_path / "a.jsonl", "a", "b"))
        ask(store, "DELETE FROM runs")  # as a prune begins
        with pytest.raises(UnknownRun):
            report(queries, [run])
        with pytest.raises(UnknownRun):
            list(queries.judged(run.id, 0))


class _PrunesFirst(Store):
    """The run is deleted when all of it was read, and before the file is put in place."""

    def exporting(self, run_id: str, number: int, *, sha256: str, size: int) -> None:
        prune(Store(self.engine), OLDER)
        super().exporting(run_id, number, sha256=sha256, size=size)


def _someone_waits(store: Store) -> bool:
    with store.engine.connect() as connection:
        return bool(connection.scalar(text("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")))


_RECORDED = """
    WITH done AS (UPDATE checks SET status = 'done', lease_until = NULL WHERE id = :id RETURNING id)
    INSERT INTO verdicts (
        check_id, attempt, verdict, reason, detail, messages, hits, wall_seconds, cpu_seconds,
        peak_memory_kib, isolation, environment_digest, toolchain, checker_version)
    SELECT id, 1, 'proved', 'ok', '', '[]', '[]', 1, 1, 1, '', '', '', '' FROM done
"""

_PRUNE = """
import sys
from farm.runs.recheck import Recheck, recheck
from farm.runs.prune import PrunePlan, prune
from farm.store import postgres
from farm.store.transitions import Store
store = Store(postgres.connect(sys.argv[1], application="farm-prune"))
print(prune(store, PrunePlan(older_than_seconds=86400.0)).runs)
"""


@pytest.mark.parametrize("table", ["jobs", "checks", "verdicts", "programs", "pruned_runs"])
def test_a_prune_that_is_killed_at_any_point_is_ended_by_the_next(
    store: Store, queries: Queries, tmp_path: Path, table: str
) -> None:
    judged_run(store, tmp_path / "a.jsonl", *(f"a{number}" for number in range(20)))
    judged_run(store, tmp_path / "b.jsonl", "b")
    age(store)
    young = load(store, tmp_path / "c.jsonl", line("b"), line("c"))
    url = store.engine.url.render_as_string(hide_password=False)
    with locked(store, table):
        killed = subprocess.Popen([sys.executable, "-c", _PRUNE, url])
        eventually(lambda: waits_for(store, table))
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    eventually(lambda: not _connected(store, "farm-prune"))
    prune(store, OLDER)
    assert queries.tally(young).statuses == {"done": 1, "queued": 1}
    assert rows(store) == {
        "runs": 1,
        "manifests": 1,
        "jobs": 2,
        "checks": 2,
        "attempts": 1,
        "verdicts": 1,
    } | {"programs": 2}


def test_lines_of_a_run_that_was_half_deleted_go_with_the_next_prune(store: Store, tmp_path: Path) -> None:
    run_id = judged_run(store, tmp_path / "a.jsonl", "a", "b")
    age(store)
    ask(store, "DELETE FROM runs")
    ask(store, "INSERT INTO pruned_runs VALUES (:run)", run=run_id)
    assert prune(store, OLDER).lines == 2
    assert rows(store) == {}


def _connected(store: Store, application: str) -> int:
    with store.engine.connect() as connection:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = :name"
        return int(connection.scalar(text(asked), {"name": application}) or 0)


def test_two_prunes_at_once_delete_everything_once(store: Store, tmp_path: Path) -> None:
    for number in range(12):
        judged_run(store, tmp_path / f"{number}.jsonl", f"a{number}", f"b{number}")
    age(store)
    with ThreadPoolExecutor(2) as threads:
        both = list(threads.map(lambda plan: prune(store, plan), (OLDER, OLDER)))
    prune(store, OLDER)
    assert sum(each.runs for each in both) == 12
    assert sum(each.lines for each in both) == 24
    assert rows(store) == {}


def test_nothing_is_lost_or_judged_twice_while_a_farm_is_pruned_all_the_time(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    """Runs share lines, are judged, exported and pruned, all at once; verdicts are kept for what comes."""
    plan = PrunePlan(older_than_seconds=0.05, keep_verdicts=True)
    over, judged, pruned = threading.Event(), list[str](), list[int]()

    def judge() -> None:
        while not over.is_set():
            for claim in store.claim(["core"], worker="w", lease_seconds=60, most=4):
                assert finished(store, claim)
                judged.append(claim.check.program)

    def keep_pruning() -> None:
        while not over.is_set():
            pruned.append(prune(store, plan).runs)

    def submit(number: int) -> None:
        choice = random.Random(number)
        path = tmp_path / f"{number}.jsonl"
        words = [f"a{choice.randrange(40)}" for _ in range(6)]
        run_id = load(store, path, *map(line, words))
        eventually(lambda: not queries.tally(run_id).unfinished)
        assert queries.tally(run_id).total == len(words)
        export_all(store, run_id)
        assert [each["verdict"] for each in map(_farm, lines(path))] == ["proved"] * len(words)

    with ThreadPoolExecutor(8) as threads:
        others = [threads.submit(each) for each in (judge, judge, keep_pruning, keep_pruning)]
        runs = [threads.submit(submit, number) for number in range(60)]
        try:
            for each in runs:
                each.result()
        finally:
            over.set()
        for each in others:
            each.result()
    assert len(judged) == len(set(judged))
    assert sum(pruned) > 0
    ask(store, "SELECT pg_sleep(0.06)")
    prune(store, PrunePlan(older_than_seconds=0.05))
    assert rows(store) == {}


def _farm(entry: dict[str, object]) -> dict[str, object]:
    found = entry["farm"]
    assert isinstance(found, dict)
    return found


def test_a_manifest_can_be_submitted_again_when_its_run_is_gone(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", line("a"))
    judged_run(store, path, "a")
    age(store)
    prune(store, OLDER)
    run_id = load(store, path, line("a"))
    assert queries.tally(run_id).statuses == {"queued": 1}
