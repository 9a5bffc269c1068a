"""Submitting, coming back later, and writing verdicts into manifests of every kind."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest
import zstandard
from sqlalchemy import text

from tests.commands import ADMITTED, HEADER, PROVED, WRONG, Command, entry, lines, verdicts, write
from tests.farms import Quiet, wait_for_run
from tests.processes import eventually

KINDS = [PROVED, WRONG, ADMITTED]


def submitted(quiet: Quiet, *arguments: object) -> str:
    """Submit to a farm where nobody works, and return the run's id."""
    said = quiet.farm("submit", *arguments, "--no-wait")
    assert said.returncode == 0, said.stderr
    return quiet.queries.run(None).id


def three(path: Path) -> Path:
    return write(path, *(entry(kind, number) for number, kind in enumerate(KINDS)))


@pytest.mark.newcomer
def test_one_can_leave_a_run_and_come_back_for_its_verdicts(farm: Command, tmp_path: Path) -> None:
    path = three(tmp_path / "three.jsonl")
    before = path.read_bytes()
    said = farm("submit", path, "--no-wait")
    assert said.returncode == 0, said.stderr
    (run_id,) = set(re.findall(r"farm (?:status|export) (\w+)", said.stderr))
    assert farm("status", run_id, "--wait").returncode == 0
    assert path.read_bytes() == before
    assert farm("export", run_id).returncode == 0
    assert verdicts(path) == KINDS


def test_a_run_is_found_by_how_its_id_begins(quiet: Quiet, tmp_path: Path) -> None:
    run_id = submitted(quiet, three(tmp_path / "three.jsonl"))
    assert quiet.farm.json("status", run_id[:4])["run"] == run_id


def test_without_export_the_manifest_stays_byte_for_byte(farm: Command, tmp_path: Path) -> None:
    path = three(tmp_path / "three.jsonl")
    before = path.read_bytes()
    said = farm("submit", path, "--no-export")
    assert said.returncode == 0, said.stderr
    assert "3 of 3 lines judged" in said.stdout
    assert path.read_bytes() == before


def test_a_submit_for_scripts_prints_one_object_and_nothing_else(farm: Command, tmp_path: Path) -> None:
    facts = farm.json("submit", three(tmp_path / "three.jsonl"))
    assert facts["schema"] == 1
    assert facts["lines"] == 3
    assert {(v["verdict"], v["reason"]): v["lines"] for v in facts["verdicts"]} == dict.fromkeys(KINDS, 1)


def test_not_waiting_for_scripts_prints_the_run(quiet: Quiet, tmp_path: Path) -> None:
    facts = quiet.farm.json("submit", three(tmp_path / "three.jsonl"), "--no-wait")
    assert facts == {"schema": 1, "run": quiet.queries.run(None).id}


def test_a_waiting_user_who_interrupts_is_told_how_to_come_back_and_the_run_goes_on(
    quiet: Quiet, tmp_path: Path
) -> None:
    path = three(tmp_path / "three.jsonl")
    with quiet.farm.started(tmp_path / "submit", "submit", path) as submit:
        run_id = wait_for_run(quiet.queries, path, "queued")
        eventually(quiet.redis.dbsize)
        submit.process.send_signal(signal.SIGINT)
        assert submit.ended() == 130
        assert f"farm status {run_id} --wait" in submit.said
        assert f"farm export {run_id}" in submit.said
        assert "Traceback" not in submit.said
    assert quiet.queries.tally(run_id).statuses == {"queued": 3}


def test_an_interrupt_as_soon_as_the_run_is_stored_is_answered_the_same(quiet: Quiet, tmp_path: Path) -> None:
    path = three(tmp_path / "three.jsonl")
    with quiet.farm.started(tmp_path / "submit", "submit", path) as submit:
        run_id = wait_for_run(quiet.queries, path, "queued")
        submit.process.send_signal(signal.SIGINT)
        assert submit.ended() == 130
        assert f"farm status {run_id} --wait" in submit.said
        assert "Traceback" not in submit.said


def test_an_interrupt_before_the_run_is_stored_leaves_nothing(quiet: Quiet, tmp_path: Path) -> None:
    path = three(tmp_path / "three.jsonl")
    waiting = (
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name LIKE 'farm %'"
    )
    with quiet.engine.connect() as connection:
        connection.execute(text("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE"))
        with quiet.farm.started(tmp_path / "submit", "submit", path) as submit:
            eventually(lambda: quiet.ask(waiting))
            submit.process.send_signal(signal.SIGINT)
            assert submit.ended() == 130
            assert "Traceback" not in submit.said
            assert "Nothing was stored" in submit.said
        connection.rollback()
    assert quiet.rows() == {}
    assert quiet.redis.dbsize() == 0


def test_a_submit_whose_transaction_postgresql_ended_begins_again_by_itself(
    quiet: Quiet, tmp_path: Path
) -> None:
    path = three(tmp_path / "three.jsonl")
    waiting = (
        "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name LIKE 'farm %'"
    )
    with quiet.engine.connect() as connection:
        connection.execute(text("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE"))
        with quiet.farm.forked(tmp_path / "submit", "submit", path, "--no-wait") as submit:
            eventually(lambda: quiet.ask(waiting))
            quiet.ask(f"SELECT pg_terminate_backend(pid) FROM ({waiting}) AS one")
            eventually(lambda: "begins again" in submit.said)
            connection.rollback()
            assert submit.ended() == 0
    assert [quiet.queries.tally(run.id).statuses for run in quiet.queries.runs()] == [{"queued": 3}]


def test_files_and_globs_of_every_kind_make_one_run(quiet: Quiet, tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "results", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    plain = write(folder / "a.jsonl", entry(PROVED, 1), entry(PROVED, 2))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    (folder / "c.jsonl.zst").write_bytes(zstandard.compress(plain.read_bytes()))
    target = write(elsewhere / "target.jsonl", entry(PROVED, 3))
    target.chmod(0o640)
    (folder / "d.jsonl").symlink_to(target)
    single = write(tmp_path / "single.jsonl", entry(PROVED, 4))
    run_id = submitted(quiet, single, folder / "*.jsonl*", plain)
    names = [manifest.path.name for manifest in quiet.queries.manifests(run_id)]
    assert names == ["single.jsonl", "a.jsonl", "b.jsonl.gz", "c.jsonl.zst", "d.jsonl"]

    for manifest in range(5):
        quiet.judge(run_id, 1, manifest=manifest)
    assert quiet.farm("export").returncode == 0
    unpacked = {
        "a": plain.read_bytes(),
        "b": gzip.decompress((folder / "b.jsonl.gz").read_bytes()),
        "c": zstandard.ZstdDecompressor().decompressobj().decompress((folder / "c.jsonl.zst").read_bytes()),
    }
    for content in unpacked.values():
        first, second = map(json.loads, content.splitlines())
        assert first["proof_status"] == "completed"
        assert "proof_status" not in second
    assert (folder / "d.jsonl").readlink() == target
    assert lines(target)[0]["proof_status"] == "completed"
    assert target.stat().st_mode & 0o777 == 0o640
    assert lines(single)[0]["farm"]["run_id"] == run_id


@pytest.mark.newcomer
def test_lines_without_a_verdict_yet_stay_byte_for_byte(quiet: Quiet, tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    odd = b'{ "predicted_proof" : "p%d",\t"score": 1.00e2, "name":"\\u00e9\xc3\xa9" }'
    before = [odd % 1, b"", odd % 2, b"  ", odd % 3 + b"\r", odd % 4]
    path.write_bytes(b"\n".join(before))
    run_id = submitted(quiet, path)
    quiet.judge(run_id, 3)
    said = quiet.farm("export", run_id)
    assert said.returncode == 0, said.stderr
    after = path.read_bytes().split(b"\n")
    assert after[:2] + after[3:] == before[:2] + before[3:]
    assert after[2].startswith(odd[:-1].rstrip() % 2)
    assert json.loads(after[2])["proof_status"] == "completed"

    quiet.judge(run_id, 1, 5, 6)
    assert quiet.farm("export", run_id).returncode == 0
    assert len(verdicts(path)) == 4


def test_a_manifest_that_changed_is_left_as_it_is_and_the_advice_given_works(
    quiet: Quiet, tmp_path: Path
) -> None:
    path = three(tmp_path / "three.jsonl")
    run_id = submitted(quiet, path)
    quiet.judge(run_id, 1, 2, 3)
    path.write_bytes(path.read_bytes() + b'{"name": "mine"}\n')
    changed = path.read_bytes()
    said = quiet.farm("export", run_id)
    assert said.returncode == 5
    assert f"{path}: has changed since it was submitted" in said.stderr
    assert re.search(r"farm export \S+ -o \S+", said.stderr)
    assert path.read_bytes() == changed

    other = tmp_path / "other.jsonl"
    said = quiet.farm("export", run_id, "-o", other)
    assert said.returncode == 0, said.stderr
    assert verdicts(other) == [PROVED] * 3
    assert [line["name"] for line in lines(other)] == ["t0", "t1", "t2"]
    assert path.read_bytes() == changed


def test_all_answers_to_a_problem_count_as_one_problem(quiet: Quiet, tmp_path: Path) -> None:
    groups = [{"group": "a"}, {"group": "a"}, {"group": "b"}, {}, {"name": "", "group": None}, {"name": ""}]
    path = write(tmp_path / "a.jsonl", *(entry(PROVED, n) | group for n, group in enumerate(groups)))
    run_id = submitted(quiet, path)
    quiet.judge(run_id, 1, 2, 5)
    facts = quiet.farm.json("status", run_id)
    assert (facts["problems_solved"], facts["problems"]) == (2, 5)
    assert "3 of 6 lines judged; 2 of 5 problems solved." in quiet.farm("status", run_id).stdout


def test_an_export_for_scripts_names_the_files_and_their_verdicts(quiet: Quiet, tmp_path: Path) -> None:
    path, other = three(tmp_path / "three.jsonl"), tmp_path / "other.jsonl"
    run_id = submitted(quiet, path)
    quiet.judge(run_id, 1, 3)
    for flags, file in (((), path), (("-o", other), other)):
        assert quiet.farm.json("export", run_id, *flags) == {
            "schema": 1,
            "run": run_id,
            "written": [{"path": str(file), "verdicts": 2}],
        }


def test_lines_are_found_by_name_and_counted_with_n(quiet: Quiet, tmp_path: Path) -> None:
    run_id = submitted(quiet, three(tmp_path / "three.jsonl"))
    shown = quiet.farm("show", run_id, "--name", "t1").stdout
    assert [name for name in ("t0", "t1", "t2") if name in shown] == ["t1"]
    assert "t1" not in quiet.farm("show", run_id, "-n", 1).stdout
    assert len(quiet.farm.json("status", "--runs", "-n", 1)["runs"]) == 1


def test_a_retry_can_change_the_processor_time_and_picks_lines_with_the_word_that_show_has(
    quiet: Quiet, tmp_path: Path
) -> None:
    run_id = submitted(quiet, three(tmp_path / "three.jsonl"))
    quiet.judge(run_id, 1, 2)
    said = quiet.farm("rejudge", run_id, "--in-place", "--verdict", "proved", "--cpu", 7, "--no-wait")
    assert said.returncode == 0, said.stderr
    asked = "SELECT cpu_seconds FROM jobs JOIN checks ON checks.id = check_id ORDER BY line"
    assert quiet.ask(asked) == [7.0, 7.0, 60.0]
    assert quiet.farm("rejudge", run_id, "--in-place", "--verdict", "proved", "--cpu", -1).returncode == 2


@pytest.mark.parametrize("count", [-2, 0])
def test_a_worker_without_checks_at_once_is_bad_usage(quiet: Quiet, count: int) -> None:
    said = quiet.farm("worker", "--concurrency", count)
    assert said.returncode == 2
    assert "--concurrency" in said.stderr
    assert "Traceback" not in said.stderr


# --- a manifest that cannot be written

#: Without the capability to write and to give away what is others', root is a user like others.
AS_OTHERS = ("setpriv", "--inh-caps=-all", "--bounding-set=-all") if os.geteuid() == 0 else ()


def _unwritable(path: Path, why: str) -> str:
    """Make it so that a manifest cannot be replaced, and return what the message must say of it."""
    if why == "folder":
        path.parent.chmod(0o555)
        return "Permission denied"
    os.chown(path, 65534, 65534)
    return "belongs to another user"


@pytest.mark.parametrize(
    "why",
    [
        "folder",
        pytest.param(
            "owner", marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
        ),
    ],
)
def test_a_manifest_that_could_not_be_written_is_refused_before_anything_is_checked(
    quiet: Quiet, tmp_path: Path, why: str
) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    path = three(folder / "three.jsonl")
    problem = _unwritable(path, why)
    try:
        with quiet.farm.started(tmp_path / "submit", "submit", path, prefix=AS_OTHERS) as submit:
            assert submit.ended() == 2
        (message,) = submit.said.strip().splitlines()
        for words in (str(path), problem, "--no-export"):
            assert words in message
        assert quiet.rows() == {}
        assert sorted(folder.iterdir()) == [path]
        with quiet.farm.started(
            tmp_path / "later", "submit", path, "--no-export", "--no-wait", prefix=AS_OTHERS
        ) as submit:
            assert submit.ended() == 0
    finally:
        folder.chmod(0o755)


def test_a_retry_whose_verdicts_could_not_be_written_is_refused_before_it_begins(
    quiet: Quiet, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    run_id = submitted(quiet, three(folder / "three.jsonl"))
    quiet.judge(run_id, 1, 2, 3)
    folder.chmod(0o555)
    try:
        asked = ("rejudge", run_id, "--in-place", "--verdict", "proved")
        with quiet.farm.started(tmp_path / "retry", *asked, prefix=AS_OTHERS) as retry:
            assert retry.ended() == 2
        assert "--no-export" in retry.said
    finally:
        folder.chmod(0o755)
    assert quiet.queries.tally(run_id).statuses == {"done": 3}


@pytest.mark.parametrize(("what", "flags"), [("changed", ()), ("folder gone", ("--json",))])
def test_an_export_that_fails_at_the_end_takes_neither_the_table_nor_the_run_along(
    quiet: Quiet, tmp_path: Path, what: str, flags: tuple[str, ...]
) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    path = three(folder / "three.jsonl")
    with quiet.farm.forked(tmp_path / "submit", "submit", path, *flags) as submit:
        run_id = wait_for_run(quiet.queries, path, "queued")
        if what == "changed":
            path.write_bytes(path.read_bytes() + b"\n")
        else:
            shutil.rmtree(folder)
        quiet.judge(run_id, 1, 2)
        quiet.judge(run_id, 3, box_error="no more processes")
        assert submit.ended() == 5
        assert f"farm export {run_id} -o OTHER.jsonl" in submit.said
        assert str(path) in submit.said
        assert "1 line could not be judged" in submit.said
        printed = submit.out.read_text()
    if flags:
        assert (json.loads(printed)["run"], json.loads(printed)["lines"]) == (run_id, 3)
    else:
        assert "3 of 3 lines judged" in printed


def test_every_manifest_that_could_not_be_written_is_named_and_the_others_are_written(
    quiet: Quiet, tmp_path: Path
) -> None:
    paths = [write(tmp_path / f"{name}.jsonl", entry(PROVED, n)) for n, name in enumerate("abc")]
    run_id = submitted(quiet, *paths)
    for manifest in range(3):
        quiet.judge(run_id, 1, manifest=manifest)
    paths[0].unlink()
    paths[2].write_bytes(paths[2].read_bytes() + b"\n")
    said = quiet.farm("export", run_id)
    assert said.returncode == 5
    for number, problem in ((0, "no such file"), (2, "has changed since it was submitted")):
        (told,) = (line for line in said.stderr.splitlines() if str(paths[number]) in line)
        assert problem in told
        assert f"farm export {run_id} --manifest {number} -o OTHER.jsonl" in told
    assert verdicts(paths[1]) == [PROVED]


#: Runs what follows it where no file may grow beyond this: to who writes it, another error of a full disk.
NO_ROOM = ("sh", "-c", 'ulimit -f 64; exec "$@"', "sh")


def test_a_disk_that_is_full_at_the_export_leaves_the_manifest_whole_and_its_verdicts_stored(
    quiet: Quiet, tmp_path: Path
) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    large = write(folder / "large.jsonl", entry(PROVED, 1, notes="x" * 200_000))
    small = write(folder / "small.jsonl", entry(PROVED, 2))
    before = large.read_bytes()
    run_id = submitted(quiet, large, small)
    for manifest in range(2):
        quiet.judge(run_id, 1, manifest=manifest)
    with quiet.farm.started(tmp_path / "export", "export", run_id, prefix=NO_ROOM) as export:
        assert export.ended() == 5, export.said
    assert f"{large}: cannot be written: File too large" in export.said
    assert f"`farm export {run_id}` writes them when that is mended" in export.said
    assert large.read_bytes() == before
    assert sorted(folder.iterdir()) == [large, small]
    assert verdicts(small) == [PROVED]
    assert quiet.farm("export", run_id).returncode == 0
    assert verdicts(large) == verdicts(small) == [PROVED]


def test_a_manifest_that_was_removed_still_has_its_verdicts_in_another_file(
    quiet: Quiet, tmp_path: Path
) -> None:
    path = three(tmp_path / "three.jsonl")
    run_id = submitted(quiet, path)
    quiet.judge(run_id, 1, 2, 3)
    path.unlink()
    said = quiet.farm("export", run_id)
    assert said.returncode == 5
    assert str(path) in said.stderr
    other = tmp_path / "other.jsonl"
    said = quiet.farm("export", run_id, "-o", other)
    assert said.returncode == 0, said.stderr
    assert verdicts(other) == [PROVED] * 3


def test_an_export_to_another_file_leaves_the_manifest_alone(quiet: Quiet, tmp_path: Path) -> None:
    first, second = three(tmp_path / "a.jsonl"), write(tmp_path / "b.jsonl", entry(PROVED, 9))
    before = first.read_bytes(), second.read_bytes()
    run_id = submitted(quiet, first, second)
    quiet.judge(run_id, 1, manifest=1)
    other = tmp_path / "other.jsonl.gz"
    said = quiet.farm("export", run_id, "--manifest", 1, "-o", other)
    assert said.returncode == 0, said.stderr
    (line,) = map(json.loads, gzip.decompress(other.read_bytes()).splitlines())
    assert (line["name"], line["proof_status"]) == ("t9", "completed")
    assert (first.read_bytes(), second.read_bytes()) == before


def test_a_manifest_that_was_moved_is_written_whole_where_its_new_place_is_named(
    quiet: Quiet, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", {**entry(PROVED, 1), "note": "mine"})
    run_id = submitted(quiet, path)
    quiet.judge(run_id, 1)
    moved, other = path.rename(tmp_path / "moved.jsonl"), tmp_path / "other.jsonl"
    said = quiet.farm("export", run_id, "-o", other)
    assert said.returncode == 0, said.stderr
    assert f"farm export {run_id} -o {other} --source ITS-NEW-PLACE" in said.stderr
    assert "note" not in lines(other)[0]
    refused = quiet.farm("export", run_id, "-o", other)
    assert (refused.returncode, "is there already; add --force" in refused.stderr) == (2, True)
    again = quiet.farm.json("export", run_id, "-o", other, "--force")
    assert again["written"][0]["partial"] is True
    facts = quiet.farm.json("export", run_id, "-o", other, "--source", moved, "--force")
    assert facts["written"] == [{"path": str(other), "verdicts": 1}]
    (line,) = lines(other)
    assert (line["note"], line["proof_status"]) == ("mine", "completed")
    write(moved, entry(PROVED, 2))
    said = quiet.farm("export", run_id, "-o", other, "--source", moved, "--force")
    assert said.returncode == 2
    assert "has changed since it was submitted" in said.stderr
    assert quiet.farm("export", run_id, "--source", moved).returncode == 2
    assert lines(other) == [line]


def test_a_manifest_number_that_is_not_there_is_named(quiet: Quiet, tmp_path: Path) -> None:
    submitted(quiet, three(tmp_path / "a.jsonl"))
    said = quiet.farm("export", "--manifest", 1, "-o", tmp_path / "other.jsonl")
    assert said.returncode == 2
    assert "no manifest 1" in said.stderr
    assert not (tmp_path / "other.jsonl").exists()


def test_a_run_can_be_exported_again_and_again(quiet: Quiet, tmp_path: Path) -> None:
    path = three(tmp_path / "three.jsonl")
    run_id = submitted(quiet, path)
    quiet.judge(run_id, 1, 2, 3)
    assert quiet.farm("export").returncode == 0
    once = path.read_bytes()
    assert quiet.farm("export").returncode == 0
    assert path.read_bytes() == once


def test_lines_that_could_not_be_judged_have_an_exit_status_of_their_own(
    quiet: Quiet, tmp_path: Path
) -> None:
    run_id = submitted(quiet, three(tmp_path / "three.jsonl"))
    quiet.judge(run_id, 1, 2)
    quiet.judge(run_id, 3, box_error="no more processes")
    said = quiet.farm("status", run_id, "--wait")
    assert said.returncode == 3
    assert f"farm show {run_id} --verdict judge_error" in said.stderr
    shown = quiet.farm("show", run_id, "--verdict", "judge_error")
    assert "no more processes" in shown.stdout
    assert "t2" in shown.stdout
    assert "t1" not in shown.stdout


def test_a_lines_own_limits_win_over_the_runs(quiet: Quiet, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", entry(PROVED, 1, timeout=7), entry(PROVED, 2))
    submitted(quiet, path, "--timeout", 9, "--memory-mib", 300)
    assert quiet.ask("SELECT wall_seconds FROM checks ORDER BY id") == [7.0, 9.0]
    assert set(quiet.ask("SELECT memory_mib FROM checks")) == {300}


def test_without_options_a_check_has_thirty_seconds(quiet: Quiet, tmp_path: Path) -> None:
    submitted(quiet, three(tmp_path / "a.jsonl"))
    assert set(quiet.ask("SELECT wall_seconds FROM checks")) == {30.0}


def test_a_program_that_is_there_is_used_unless_it_is_to_be_assembled_again(
    quiet: Quiet, tmp_path: Path
) -> None:
    made = {
        "header": "import A\n",
        "formal_statement": "theorem t : True := by\n",
        "generation": "```lean4\ntheorem t : True := by\n  trivial\n```",
    }
    path = write(tmp_path / "a.jsonl", entry(PROVED, 1) | made)
    used, assembled = (
        quiet.queries.line(submitted(quiet, path, *flags), 0, 1).program for flags in ((), ("--reassemble",))
    )
    assert used == entry(PROVED, 1)["predicted_proof"]
    assert assembled.rstrip() == "import A\ntheorem t : True := by\n  trivial"


def test_an_answer_edited_after_an_export_is_judged_and_programs_that_were_brought_are_counted(
    farm: Command, tmp_path: Path
) -> None:
    made = {
        "name": "t",
        "header": HEADER,
        "formal_statement": "theorem t : 1 = 1 := by\n",
        "generation": "```lean4\ntheorem t : 1 = 1 := by\n  rfl\n```",
    }
    path = write(tmp_path / "a.jsonl", made, entry(PROVED, 2))
    assert farm.json("submit", path)["predicted_proof_brought"] == 1
    answered, brought = lines(path)
    assert (answered["proof_status"], brought["proof_status"]) == ("completed", "completed")
    write(path, answered | {"generation": "I could not solve it."}, brought)
    said = farm("submit", path)
    assert said.returncode == 0, said.stderr
    assert "1 line was judged by the predicted_proof that it brought" in said.stdout
    answered, brought = lines(path)
    assert (answered["proof_status"], brought["proof_status"]) == ("error", "completed")


def test_a_file_named_in_several_ways_is_judged_once(quiet: Quiet, tmp_path: Path) -> None:
    path = three(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").symlink_to(path)
    run_id = submitted(quiet, path, tmp_path / "*.jsonl", os.path.relpath(path))
    assert quiet.queries.tally(run_id).total == 3


def test_nothing_is_judged_twice_when_the_same_file_is_submitted_twice_at_once(
    farm: Command, tmp_path: Path
) -> None:
    path = three(tmp_path / "a.jsonl")
    before = len(farm.json("status", "--runs", "--most", 1000)["runs"])
    with (
        farm.forked(tmp_path / "one", "submit", path) as one,
        farm.forked(tmp_path / "two", "submit", path) as two,
    ):
        statuses = {one.ended(), two.ended()}
    # It is one run; the later export finds a file that the other has written, with the same verdicts.
    assert statuses <= {0, 5}
    assert len(farm.json("status", "--runs", "--most", 1000)["runs"]) == before + 1
    assert verdicts(path) == KINDS
