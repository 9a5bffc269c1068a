"""`farm rejudge`: what a newer library breaks and mends is told line by line, and nothing else is touched."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.judging.assurance import Assurance
from farm.store.environments import Served
from farm.store.readings import read
from tests.bench.checks.bare import launched
from tests.commands import PROVED, WRONG, entry, lines, verdicts, write
from tests.evaluations import JUDGE_ERROR, REJECTED, TIMEOUT, Given, give
from tests.evaluations import PROVED as YES
from tests.farms import CORE, Quiet, a_worker, load
from tests.processes import eventually
from tests.services import serving_http
from tests.toolchains import toolchain

LIBRARY = "prelude\nimport Core\n\ntheorem {name} : True := True.intro\n"


def _library(folder: Path, core: LeanEnvironment, lemma: str) -> Path:
    """Compile a library whose one lemma is called so, beside the core library."""
    shutil.copytree(core.lean_path[0], folder)
    source = folder / "Library.lean"
    source.write_text(LIBRARY.format(name=lemma))
    subprocess.run(
        launched([*core.lean, "-j1", "-o", str(source.with_suffix(".olean")), str(source)]),
        cwd=folder,
        env={"PATH": os.defpath, "LEAN_PATH": str(folder)},
        capture_output=True,
        timeout=60,
        check=True,
    )
    return folder


@pytest.fixture(scope="module")
def libraries(core: LeanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environments file with two versions of a library, between which a lemma was renamed."""
    folder = tmp_path_factory.mktemp("libraries")
    made, tables = toolchain(folder / "toolchain", core), []
    for name, lemma in (("before", "old_lemma"), ("next", "new_lemma")):
        modules = _library(folder / name, core, lemma)
        tables.append(made.table(name, f'lean_path = ["{modules}"]', r'header = "prelude\nimport Core"'))
    file = folder / "farm.toml"
    file.write_text("\n".join(tables))
    return file


@pytest.fixture(scope="module")
def at_work(
    shared_quiet: Quiet, libraries: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Quiet]:
    """A farm whose worker serves both libraries, in which equal lines are judged once for all tests."""
    with a_worker(shared_quiet, tmp_path_factory.mktemp("worker"), FARM_ENVIRONMENTS=str(libraries)):
        yield shared_quiet


def using(lemma: str, number: int) -> dict[str, object]:
    statement = f"theorem t{number} : True :="
    return {
        "name": f"t{number}",
        "header": "prelude\nimport Library\n\n",
        "formal_statement": statement,
        "generation": f"So it is:\n\n```lean4\n{statement} {lemma}\n```\n",
    }


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    return write(
        tmp_path / "a.jsonl",
        using("old_lemma", 1),
        using("new_lemma", 2),
        entry(PROVED, 3),
        entry(WRONG, 4),
        using("no_lemma", 5),
    )


def rechecked(quiet: Quiet, *words: object, status: int = 0) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Recheck, and return what is told of the changed lines, and of all together."""
    said = quiet.farm("rejudge", *words, "--json")
    assert said.returncode == status, said.stderr
    *changed, whole = map(json.loads, said.stdout.splitlines())
    assert {each["schema"] for each in (*changed, whole)} == {1}
    return changed, whole


class TestAcrossTwoLibraries:
    @pytest.fixture
    def run(self, at_work: Quiet, manifest: Path) -> str:
        said = at_work.farm("submit", manifest, "--environment", "before", "--tier", "audit")
        assert said.returncode == 0, said.stderr
        assert verdicts(manifest) == [PROVED, WRONG, PROVED, WRONG, WRONG]
        return str(lines(manifest)[0]["farm"]["run_id"])

    def test_what_breaks_and_what_is_mended_is_told_and_the_manifest_stays(
        self, at_work: Quiet, manifest: Path, run: str
    ) -> None:
        before = manifest.read_bytes(), at_work.queries.tally(run)
        changed, whole = rechecked(at_work, run, "--environment", "next", status=6)
        assert [(each["change"], each["line"], each["name"]) for each in changed] == [
            ("broken", 1, "t1"),
            ("mended", 2, "t2"),
        ]
        assert changed[0]["before"] == {"status": "done", "verdict": "proved", "reason": "ok"}
        assert changed[0]["now"] == {"status": "done", "verdict": "rejected", "reason": "error"}
        assert changed[0]["manifest"] == str(manifest)
        assert "old_lemma" in str(changed[0]["detail"])
        assert "of the answer (line" in str(changed[0]["detail"])
        assert whole["changes"]["same"] == 3
        assert whole["rechecks"] == run
        assert (manifest.read_bytes(), at_work.queries.tally(run)) == before

    def test_typed_again_it_is_the_same_run_and_nothing_is_judged_twice(
        self, at_work: Quiet, run: str
    ) -> None:
        first, whole = rechecked(at_work, run, "--environment", "next", status=6)
        rows = at_work.rows()
        again, same = rechecked(at_work, run, "--environment", "next", status=6)
        assert (again, same) == (first, whole)
        assert at_work.rows() == rows
        _, other = rechecked(at_work, run, "--environment", "next", "--new-run", status=6)
        assert other["run"] != whole["run"]
        assert at_work.rows()["attempts"] == rows["attempts"]

    def test_it_is_told_to_people_as_a_table_with_how_to_write_the_new_verdicts(
        self, at_work: Quiet, manifest: Path, run: str
    ) -> None:
        said = at_work.farm("rejudge", run, "--environment", "next")
        assert said.returncode == 6
        found = at_work.queries.run(None)
        for words in ("a.jsonl:1", "broken", "mended", "unchanged", "rejected error"):
            assert words in said.stdout, said.stdout
        assert f"farm export {found.id}" in said.stderr
        assert f"recheck of {run} in next: a.jsonl" in at_work.farm("status", "--runs").stdout
        assert at_work.farm("export", found.id).returncode == 0
        assert verdicts(manifest) == [WRONG, PROVED, PROVED, WRONG, WRONG]
        assert {line["farm"]["environment"] for line in lines(manifest)} == {"next"}

    def test_the_files_may_be_gone_and_lines_are_shown_by_the_place_they_had(
        self, at_work: Quiet, manifest: Path, run: str
    ) -> None:
        manifest.unlink()
        changed, whole = rechecked(at_work, run, "--environment", "next", status=6)
        assert len(changed) == 2
        shown = at_work.farm.json("show", whole["run"], "--line", 1)
        assert (shown["name"], shown["farm"]["environment"]) == ("t1", "next")

    def test_what_gets_no_worse_ends_well(self, at_work: Quiet, tmp_path: Path) -> None:
        path = write(tmp_path / "b.jsonl", using("new_lemma", 7), entry(WRONG, 8))
        assert at_work.farm("submit", path, "--environment", "before", "--tier", "audit").returncode == 0
        run = str(lines(path)[0]["farm"]["run_id"])
        changed, _ = rechecked(at_work, run, "--environment", "next")
        assert [each["change"] for each in changed] == ["mended"]

    def test_a_later_submit_of_the_same_to_the_new_library_has_the_verdicts(
        self, at_work: Quiet, manifest: Path, run: str
    ) -> None:
        rechecked(at_work, run, "--environment", "next", status=6)
        attempts = at_work.rows()["attempts"]
        words = "--environment", "next", "--tier", "audit", "--no-export"
        assert at_work.farm("submit", manifest, *words).returncode == 0
        assert at_work.rows()["attempts"] == attempts

    def test_a_batch_is_rechecked_by_its_id(self, at_work: Quiet, tmp_path: Path) -> None:
        with serving_http(at_work.farm, tmp_path / "service") as service:
            library = "prelude\nimport Library\n\n"
            items = [
                {"program": f"{library}theorem t1 : True := old_lemma"},
                {"program": entry(PROVED, 3)["predicted_proof"]},
            ]
            batch = service.post(*items, environment="before", tier="audit", wait_seconds=60)["batch"]
        changed, whole = rechecked(at_work, batch, "--environment", "next", status=6)
        assert [(each["change"], each["line"], each["manifest"]) for each in changed] == [("broken", 1, None)]
        shown = at_work.farm("show", whole["run"]).stdout
        assert "rejected" in shown
        assert f"recheck of {batch} in next" in at_work.farm("status", "--runs").stdout
        said = at_work.farm("export", whole["run"])
        assert (said.returncode, "has no manifests" in said.stderr) == (2, True)


NEXT = replace(CORE, name="next", digest="d2")


@pytest.fixture
def served(quiet: Quiet) -> Served:
    quiet.store.register([NEXT])
    return NEXT


def begun(quiet: Quiet, run: str, *words: object) -> str:
    return str(quiet.farm.json("rejudge", run, "--environment", "next", "--no-wait", *words)["run"])


@pytest.mark.usefixtures("served")
class TestWithoutAWorker:
    """What is said of verdicts that are invented here."""

    @pytest.fixture
    def run(self, quiet: Quiet, tmp_path: Path) -> str:
        """A run with a proof, a failure and a line that the farm could not judge."""
        path = tmp_path / "a.jsonl"
        run_id = load(quiet.store, path, *(entry(PROVED, number) for number in (1, 2, 3)), share=False)
        give(quiet.engine, run_id, [YES, REJECTED, JUDGE_ERROR])
        return run_id

    @pytest.mark.parametrize(
        ("now", "status", "changes"),
        [
            ([YES, REJECTED, YES], 0, {"same": 2, "unknown": 1}),
            ([JUDGE_ERROR, REJECTED, YES], 3, {"same": 1, "unknown": 2}),
            ([YES, JUDGE_ERROR, JUDGE_ERROR], 3, {"same": 1, "unknown": 2}),
            ([TIMEOUT, YES, YES], 6, {"over_limit": 1, "mended": 1, "unknown": 1}),
            ([REJECTED, JUDGE_ERROR, YES], 6, {"broken": 1, "unknown": 2}),
        ],
    )
    def test_only_what_was_judged_is_a_change_and_the_exit_status_says_the_worst(
        self, quiet: Quiet, run: str, now: list[Given], status: int, changes: dict[str, int]
    ) -> None:
        give(quiet.engine, begun(quiet, run), now)
        changed, whole = rechecked(quiet, run, "--environment", "next", status=status)
        assert {change: number for change, number in whole["changes"].items() if number} == changes
        assert len(changed) == 3 - changes.get("same", 0)

    def test_lines_that_were_cancelled_are_left_out(self, quiet: Quiet, tmp_path: Path) -> None:
        made = [entry(PROVED, number) for number in range(3)]
        run_id = load(quiet.store, tmp_path / "a.jsonl", *made)
        quiet.judge(run_id, 2)
        assert quiet.farm("cancel", run_id).returncode == 0
        again = begun(quiet, run_id)
        assert quiet.ask("SELECT line FROM jobs WHERE run_id = :run", run=again) == [2]

    def test_limits_and_tier_of_each_line_stay_unless_they_are_given(
        self, quiet: Quiet, tmp_path: Path
    ) -> None:
        made = entry(PROVED, 1), entry(PROVED, 2, timeout=7.5)
        run_id = load(quiet.store, tmp_path / "a.jsonl", *made, assurance=Assurance(tier="audit"))
        asked = """
            SELECT wall_seconds || ' ' || cpu_seconds || ' ' || memory_mib || ' ' || tier
            FROM jobs JOIN checks ON checks.id = check_id WHERE run_id = :run ORDER BY line
        """
        before = quiet.ask(asked, run=run_id)
        assert (
            quiet.ask(asked, run=begun(quiet, run_id)) == before == ["30 60 4096 audit", "7.5 15 4096 audit"]
        )
        other = begun(quiet, run_id, "--timeout", 60, "--tier", "kernel", "--memory-mib", 512)
        assert quiet.ask(asked, run=other) == ["60 120 512 kernel"] * 2

    def test_without_another_environment_each_line_is_judged_once_more_where_it_was(
        self, quiet: Quiet, tmp_path: Path
    ) -> None:
        run_id = load(quiet.store, tmp_path / "a.jsonl", entry(PROVED, 1), entry(PROVED, 2))
        give(quiet.engine, run_id, [YES, YES])
        again = str(quiet.farm.json("rejudge", run_id, "--no-wait")["run"])
        asked = "SELECT environment FROM jobs JOIN checks ON checks.id = check_id WHERE run_id = :run"
        assert quiet.ask(asked, run=again) == ["core", "core"]
        assert quiet.queries.tally(again).unfinished == 2
        assert quiet.farm.json("rejudge", run_id, "--no-wait")["run"] == again
        assert quiet.farm.json("rejudge", run_id, "--no-wait", "--new-run")["run"] != again

    def test_of_a_run_in_several_environments_the_one_to_replace_is_named(
        self, quiet: Quiet, tmp_path: Path
    ) -> None:
        quiet.store.register([replace(CORE, name="plain")])
        made = entry(PROVED, 1), entry(PROVED, 2, environment="plain"), entry(PROVED, 3)
        run_id = load(quiet.store, tmp_path / "a.jsonl", *made)
        said = quiet.farm("rejudge", run_id, "--environment", "next")
        assert said.returncode == 2
        assert "core (2), plain (1); name the one to replace, such as --from core" in said.stderr
        again = begun(quiet, run_id, "--from", "plain")
        assert quiet.ask("SELECT line FROM jobs WHERE run_id = :run", run=again) == [2]

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--environment", "nowhere"), "no environment is called 'nowhere'"),
            (("--environment", "soon"), "no worker has served the environment 'soon' yet"),
            (("--environment", "next", "--from", "other"), "--from other: no line of run"),
            (("--environment", "next", "--tier", "best"), "no tier is called 'best'"),
            (("--environment", "next", "--timeout", "0"), "a timeout of 0 s is out of range"),
            (("--environment", "next", "--priority", "now"), "--priority now: no such class"),
            (("--verdict", "timeout"), "--verdict, --reason and --status pick lines of the run itself"),
            (("--in-place", "--environment", "next"), "--environment is for another run, --in-place for"),
            (("--in-place", "--verdict", "proved", "--new-run"), "--new-run is for another run"),
        ],
    )
    def test_what_cannot_be_is_refused_and_stores_nothing(
        self, quiet: Quiet, run: str, words: tuple[str, ...], said: str
    ) -> None:
        quiet.store.declare("soon")
        before = quiet.rows()
        found = quiet.farm("rejudge", run, *words)
        assert (found.returncode, said in found.stderr) == (2, True), found.stderr
        assert quiet.rows() == before

    def test_another_library_under_the_same_name_is_another_recheck(self, quiet: Quiet, run: str) -> None:
        first = begun(quiet, run)
        quiet.store.register([replace(NEXT, digest="d3")])
        second = begun(quiet, run)
        assert first != second
        quiet.store.register([NEXT])
        assert begun(quiet, run) == first

    def test_of_two_that_begin_together_one_joins_the_other(self, quiet: Quiet, run: str) -> None:
        with ThreadPoolExecutor(3) as pool:
            assert len(set(pool.map(lambda _: begun(quiet, run), range(3)))) == 1

    def test_a_retry_of_a_recheck_writes_into_no_manifest(
        self, quiet: Quiet, run: str, tmp_path: Path
    ) -> None:
        again, before = begun(quiet, run), (tmp_path / "a.jsonl").read_bytes()
        give(quiet.engine, again, [TIMEOUT, REJECTED, YES])
        with quiet.farm.forked(
            tmp_path / "retry", "rejudge", again, "--in-place", "--verdict", "timeout"
        ) as running:
            eventually(lambda: quiet.queries.tally(again).unfinished, seconds=60)
            give(quiet.engine, again, [YES, None, None])
            assert running.ended() == 0, running.said
        assert (tmp_path / "a.jsonl").read_bytes() == before

    def test_an_export_that_is_due_is_not_told_of_a_recheck(self, quiet: Quiet, run: str) -> None:
        again = begun(quiet, run)
        give(quiet.engine, again, [YES, YES, YES])
        assert again not in read(quiet.engine).lags

    def test_an_interrupt_says_how_to_come_back(self, quiet: Quiet, run: str, tmp_path: Path) -> None:
        with quiet.farm.started(tmp_path / "said", "rejudge", run, "--environment", "next") as running:
            eventually(quiet.redis.dbsize, seconds=60)  # nothing is imported any more, so it is heard
            running.process.send_signal(signal.SIGINT)
            assert running.ended() == 130
            assert f"farm rejudge {run} --environment next" in running.said
        (again,) = (each.id for each in quiet.queries.runs() if each.rechecks == run)
        assert begun(quiet, run) == again
