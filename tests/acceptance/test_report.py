"""`farm report`: what it tells of runs that were judged, and what it says to those who ask amiss."""

from __future__ import annotations

import gzip
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tests.commands import ADMITTED, ENDLESS, PROVED, WRONG, Command, entry, lines, write
from tests.evaluations import JUDGE_ERROR, REJECTED, TIMEOUT, Given, give
from tests.evaluations import PROVED as YES
from tests.farms import Quiet, submitted

HOSTILE = '</style><script>alert(1)</script>\x1b[31m\u202e"onmouseover=x'


@pytest.fixture(scope="module")
def run(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run that a real Lean judged: four problems, two samples each, one endless."""
    kinds = [(PROVED, WRONG), (WRONG, ADMITTED), (PROVED, PROVED), (ENDLESS, WRONG)]
    path = tmp_path_factory.mktemp("run") / "judged.jsonl"
    made = [
        entry(kind, 2 * number + place, name=f"p{number}", difficulty=number % 2, given={"at": place})
        for number, pair in enumerate(kinds)
        for place, kind in enumerate(pair)
    ]
    return str(farm.json("submit", write(path, *made), "--no-share")["run"])


def judged(
    quiet: Quiet,
    path: Path,
    verdicts: Sequence[Given | None],
    *,
    per_problem: int = 2,
    fields: Sequence[dict[str, object]] = (),
    **options: Any,
) -> str:
    """Submit a manifest with so many lines for each problem, record their verdicts, and return the run."""
    made = [
        entry(PROVED, number, name=f"p{number // per_problem}", **(fields[number] if fields else {}))
        for number in range(len(verdicts))
    ]
    run_id = submitted(quiet.store, write(path, *made), share=False, **options).run_id
    give(quiet.engine, run_id, verdicts)
    return run_id


# what is told


@pytest.mark.newcomer
def test_a_judged_run_is_reported(farm: Command, run: str) -> None:
    facts = farm.json("report", run, "--by", "difficulty")
    total = facts["total"]
    assert facts["schema"] == 1
    assert (total["lines"], total["judged"], total["proved"]) == (8, 8, 3)
    assert (total["problems"], total["solved"]) == (4, 2)
    assert [(each["k"], each["value"], each["problems"]) for each in total["pass_at"]] == [
        (1, pytest.approx((0.5 + 0 + 1 + 0) / 4), 4),
        (2, pytest.approx(0.5), 4),
    ]
    assert {(each["verdict"], each["reason"]) for each in total["verdicts"]} == {
        *(PROVED, WRONG, ADMITTED, ENDLESS)
    }
    timeouts = total["timeouts"]
    assert (timeouts["lines"], timeouts["problems"], timeouts["all_samples"]) == (1, 4, 0.0)
    assert timeouts["mean_share"] == pytest.approx(1 / 8)
    assert total["limits"][0]["ended"] == 1
    assert total["costs"]["cpu_seconds"] > 0.05
    assert total["slowest"][0]["problem"] == "p3"
    assert facts["by"]["field"] == "difficulty"
    found = {each["value"]: each["figures"] for each in facts["by"]["values"]}
    assert {value: (each["lines"], each["solved"]) for value, each in found.items()} == {
        "0": (4, 2),
        "1": (4, 0),
    }


def test_the_tables_say_what_json_says(farm: Command, run: str) -> None:
    said = farm("report", run)
    assert said.returncode == 0, said.stderr
    assert "2 of 4 problems solved" in said.stdout
    for words in ("pass@k", "37.5%", "wall time", "has_sorry", "p3", "processor time"):
        assert words in said.stdout


def test_the_newest_run_is_reported_without_a_word(farm: Command, run: str) -> None:
    newest = farm.json("status", "--runs", "-n", 1)["runs"][0]["run"]
    assert farm.json("report")["runs"][0]["run"] == newest


def test_values_that_are_no_text_are_json(farm: Command, run: str) -> None:
    facts = farm.json("report", run, "--by", "given")
    assert [each["value"] for each in facts["by"]["values"]] == ['{"at": 0}', '{"at": 1}']


def test_an_exported_manifest_still_tells_its_fields(farm: Command, run: str) -> None:
    path = Path(farm.json("status", run)["manifests"][0])
    assert all("farm" in line for line in lines(path))
    assert farm("report", run, "--by", "difficulty").returncode == 0


def test_the_proofs_of_a_run_are_measured(quiet: Quiet, tmp_path: Path) -> None:
    run = judged(quiet, tmp_path / "a.jsonl", [YES, YES, YES, REJECTED, YES, REJECTED])
    ends, lengths = {1: 10, 2: 20, 3: 30, 5: 100}, list[int]()
    with quiet.engine.begin() as connection:  # two proofs of p0 are one, p2's has another length
        for (line, end), digest in zip(ends.items(), "aabb", strict=True):
            place = "FROM jobs WHERE run_id = :run AND line = :line AND"
            connection.execute(
                text(
                    "UPDATE verdicts SET audit = jsonb_build_object('sealed_sha256', CAST(:digest AS text)) "
                    f"{place} verdicts.check_id = jobs.check_id"
                ),
                {"run": run, "line": line, "digest": digest},
            )
            connection.execute(
                text(
                    "UPDATE checks SET submitted = json_build_array(json_build_array(0, 5), "
                    f"json_build_array(10, CAST(:end AS integer) + 5)) {place} checks.id = check_id"
                ),
                {"run": run, "line": line, "end": end},
            )
            (program,) = connection.execute(
                text(
                    "SELECT convert_from(source, 'UTF8') FROM jobs JOIN checks ON checks.id = check_id "
                    "JOIN programs ON sha256 = program_sha256 WHERE run_id = :run AND line = :line"
                ),
                {"run": run, "line": line},
            ).scalars()
            own = program[:5], program[10 : end + 5]
            lengths.append(sum(bool(row.strip()) for part in own for row in part.split("\n")))
    (found,) = quiet.farm.json("report", run)["runs"]
    assert found["proofs"] == {
        "proofs": 4,
        "solved": 3,
        "sealed": 4,
        "sealed_problems": 3,
        "distinct_proofs": 3,  # one of each problem
        "mean_characters": 40.0,  # 10, 20, 30 and 100
        "median_characters": 25.0,
        "mean_lines": statistics.mean(lengths),
        "median_lines": statistics.median(lengths),
    }
    row = quiet.farm("report", run, "--format", "csv", "--table", "proofs").stdout.splitlines()[1]
    # Six lines of a second each, four proofs, three problems.
    mean, median = statistics.mean(lengths), statistics.median(lengths)
    assert row == f"{run},4,40.0,25.0,{mean},{median},3,1.0,1.5,2.0"


def test_several_runs_are_one_pool_and_stand_side_by_side(quiet: Quiet, tmp_path: Path) -> None:
    first = judged(quiet, tmp_path / "a.jsonl", [YES, REJECTED, REJECTED, REJECTED])
    second = judged(quiet, tmp_path / "b.jsonl", [REJECTED, REJECTED, YES, YES])
    facts = quiet.farm.json("report", first, second)
    assert [each["figures"]["solved"] for each in facts["runs"]] == [1, 1]
    total = facts["total"]
    assert (total["lines"], total["problems"], total["solved"], total["samples_most"]) == (8, 2, 2, 4)
    assert [each["value"] for each in total["pass_at"]] == pytest.approx(
        [3 / 8, (1 - 3 / 6 + 1 - 1 / 6) / 2, 1.0]
    )
    said = quiet.farm("report", first, second).stdout
    assert "together" in said


def test_two_runs_are_compared_over_their_common_problems(quiet: Quiet, tmp_path: Path) -> None:
    before = judged(quiet, tmp_path / "a.jsonl", [YES, YES, REJECTED, REJECTED, REJECTED, REJECTED])
    after = judged(quiet, tmp_path / "b.jsonl", [REJECTED, REJECTED, YES, REJECTED])
    facts = quiet.farm.json("report", after, "--against", before)["against"]
    assert (facts["problems"], facts["only_here"], facts["only_there"]) == (2, 0, 1)
    assert (facts["gained"], facts["lost"]) == (["p1"], ["p0"])
    first = facts["pass_at"][0]
    assert (first["value"], first["against"], first["difference"]) == (0.25, 0.5, -0.25)
    assert (first["low"], first["high"]) == (None, None)
    again = quiet.farm.json("report", after, "--against", before)["against"]
    assert again == facts
    said = quiet.farm("report", after, "--against", before).stdout
    assert "Gained (1): p1." in said
    assert "too few problems" in said
    page = tmp_path / "few.html"
    assert quiet.farm("report", after, "--against", before, "--html", page).returncode == 0
    assert "too few problems" in page.read_text()


def test_runs_of_enough_problems_have_an_interval(quiet: Quiet, tmp_path: Path) -> None:
    before = judged(quiet, tmp_path / "a.jsonl", [REJECTED] * 20, per_problem=1)
    after = judged(quiet, tmp_path / "b.jsonl", [*[YES] * 10, *[REJECTED] * 10], per_problem=1)
    page = tmp_path / "enough.html"
    for here, there, word in ((after, before, "better"), (before, after, "worse")):
        said = quiet.farm("report", here, "--against", there, "--html", page)
        assert f" {word} " in said.stdout
        assert f">{word}</td>" in page.read_text()
        (first,) = quiet.farm.json("report", here, "--against", there)["against"]["pass_at"]
        assert first["low"] < first["difference"] < first["high"]


def test_a_group_is_a_problem_and_a_line_without_a_name_another(quiet: Quiet, tmp_path: Path) -> None:
    made = [entry(PROVED, 1, group="g"), entry(PROVED, 2, group="g"), entry(PROVED, 3, name="g")]
    made += [entry(PROVED, number, name="") for number in (4, 5)]
    run_id = submitted(quiet.store, write(tmp_path / "a.jsonl", *made)).run_id
    give(quiet.engine, run_id, [REJECTED, YES, YES, REJECTED, Given(wall_seconds=9.0)])
    total = quiet.farm.json("report", run_id)["total"]
    summary = quiet.farm.json("status", run_id)
    assert (total["problems"], total["solved"]) == (4, 3)
    assert (summary["problems"], summary["problems_solved"]) == (4, 3)
    assert total["slowest"][0]["problem"] == "a.jsonl:5"


# what is unknown


def test_a_run_in_progress_is_reported_and_said_to_be(quiet: Quiet, tmp_path: Path) -> None:
    run_id = judged(quiet, tmp_path / "a.jsonl", [YES, None, REJECTED, None])
    said = quiet.farm("report", run_id)
    assert said.returncode == 0, said.stderr
    assert f"Run {run_id} is not over: 2 lines of 4 without a verdict yet." in said.stdout
    total = quiet.farm.json("report", run_id)["total"]
    assert total["unknown"] == {"judge_error": 0, "cancelled": 0, "unfinished": 2}
    first = total["pass_at"][0]
    assert (first["value"], first["at_least"], first["at_most"]) == (0.5, 0.25, 0.75)


def test_what_the_farm_could_not_judge_is_no_failure(quiet: Quiet, tmp_path: Path) -> None:
    run_id = judged(quiet, tmp_path / "a.jsonl", [YES, JUDGE_ERROR, TIMEOUT, JUDGE_ERROR])
    said = quiet.farm("report", run_id)
    assert said.returncode == 3
    assert f"farm show {run_id} --verdict judge_error" in said.stdout
    total = quiet.farm.json("report", run_id, status=3)["total"]
    assert total["pass_at"][0]["value"] == 0.5
    assert total["timeouts"]["mean_share"] == 0.5


@pytest.fixture
def stopped(quiet: Quiet, tmp_path: Path) -> str:
    """A run that stops on the first proof: one of two problems, four samples each, has it at once."""
    made = [entry(PROVED, number, name=f"p{number // 4}") for number in range(8)]
    run_id = submitted(quiet.store, write(tmp_path / "s.jsonl", *made), stop_on_first_proof=True).run_id
    quiet.judge(run_id, 1)
    quiet.judge(run_id, 5, 6, 7, 8, limit="wall")
    return run_id


def test_lines_cancelled_at_the_first_proof_are_said_to_bias_the_estimate(quiet: Quiet, stopped: str) -> None:
    total = quiet.farm.json("report", stopped)["total"]
    assert (total["unknown"]["cancelled"], total["solved"]) == (3, 1)
    assert [(at["k"], at["value"], at["at_least"], at["at_most"]) for at in total["pass_at"]] == [
        (1, 0.5, 0.125, 0.5),
        (2, None, 0.25, 0.5),
        (4, 0.5, 0.5, 0.5),
    ]
    said = quiet.farm("report", stopped).stdout
    assert "pass@1 over its judged lines is too high" in said
    assert "given only if the cancelled lines cannot change it" in said


def test_a_run_that_stops_on_the_first_proof_is_not_worse_than_the_same_judged_to_the_end(
    quiet: Quiet, tmp_path: Path, stopped: str
) -> None:
    whole = judged(quiet, tmp_path / "w.jsonl", [YES, *[REJECTED] * 7], per_problem=4)
    for here, there in ((stopped, whole), (whole, stopped)):
        found = quiet.farm.json("report", here, "--against", there)["against"]["pass_at"]
        assert [(each["k"], each["problems"], each["difference"]) for each in found] == [(4, 2, 0.0)]


def test_without_a_single_verdict_there_is_a_report_without_estimates(quiet: Quiet, tmp_path: Path) -> None:
    run_id = judged(quiet, tmp_path / "a.jsonl", [None, None])
    page = tmp_path / "a.html"
    said = quiet.farm("report", run_id, "--html", page)
    assert said.returncode == 0, said.stderr
    assert "0 of 1 problem solved, 1 undecided" in said.stdout
    assert "is not over" in page.read_text()


def test_a_page_is_written_through_no_link_that_somebody_planted(quiet: Quiet, tmp_path: Path) -> None:
    run_id = judged(quiet, tmp_path / "a.jsonl", [YES])
    page, precious = tmp_path / "a.html", tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / ".a.html.part").symlink_to(precious)
    assert quiet.farm("report", run_id, "--html", page).returncode == 0
    assert precious.read_text() == "precious"
    assert page.is_file() and not page.is_symlink()


# the fields of manifests


def test_lines_without_the_field_stand_by_themselves(quiet: Quiet, tmp_path: Path) -> None:
    fields: list[dict[str, object]] = [{"d": 10}, {"d": 9}, {}, {"d": 9}]
    run_id = judged(quiet, tmp_path / "a.jsonl", [YES] * 4, fields=fields)
    found = quiet.farm.json("report", run_id, "--by", "d")["by"]["values"]
    assert [(each["value"], each["figures"]["lines"]) for each in found] == [("9", 2), ("10", 1), (None, 1)]
    assert "(without the field)" in quiet.farm("report", run_id, "--by", "d").stdout


def test_the_fields_of_compressed_manifests_and_of_blank_lines_are_found(
    quiet: Quiet, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl.gz"
    made = "\n\n".join(json.dumps(entry(PROVED, number, d=f"v{number}")) for number in range(3))
    path.write_bytes(gzip.compress(f"\n{made}\n\n".encode()))
    run_id = submitted(quiet.store, path).run_id
    found = quiet.farm.json("report", run_id, "--by", "d")["by"]["values"]
    assert sorted(each["value"] for each in found) == ["v0", "v1", "v2"]


def _changed(path: Path) -> None:
    path.write_text(path.read_text().replace('"d": 1', '"d": 2'))


def _cut(path: Path) -> None:
    path.write_text(path.read_text().splitlines(keepends=True)[0])


def _broken(path: Path) -> None:
    path.write_text("{\n" * 9)


@pytest.mark.parametrize("change", [_changed, _cut, _broken, Path.unlink])
def test_a_manifest_that_is_another_now_is_one_clear_message(
    quiet: Quiet, tmp_path: Path, change: Any
) -> None:
    path = tmp_path / "a.jsonl"
    run_id = judged(quiet, path, [YES, YES], fields=[{"d": 1}, {"d": 1}])
    change(path)
    said = quiet.farm("report", run_id, "--by", "d")
    assert (said.returncode, said.stdout) == (2, "")
    (message,) = said.stderr.strip().splitlines()
    assert message.startswith(f"farm: {path}")
    assert "leave out --by" in message
    assert quiet.farm("report", run_id).returncode == 0


def test_a_field_that_no_line_has_is_answered_with_those_that_there_are(quiet: Quiet, tmp_path: Path) -> None:
    run_id = judged(quiet, tmp_path / "a.jsonl", [YES], fields=[{"subject": "algebra", HOSTILE: 1}])
    said = quiet.farm("report", run_id, "--by", "colour")
    assert (said.returncode, said.stdout) == (2, "")
    assert "no line has this field; the lines have name, predicted_proof, subject" in said.stderr
    assert "\x1b" not in said.stderr


def test_a_field_with_a_value_for_each_line_splits_nothing(quiet: Quiet, tmp_path: Path) -> None:
    fields: list[dict[str, object]] = [{"d": number} for number in range(1001)]
    run_id = judged(quiet, tmp_path / "a.jsonl", [YES] * 1001, fields=fields)
    said = quiet.farm("report", run_id, "--by", "d")
    assert said.returncode == 2
    assert "more than 1000 different values" in said.stderr


# bad usage

BAD = {
    "an unknown run": (("nosuch",), "no run begins with 'nosuch'"),
    "an unknown run to compare with": (("RUN", "--against", "nosuch"), "no run begins with 'nosuch'"),
    "a run twice": (("RUN", "RUN"), "is given twice"),
    "a run against itself": (("RUN", "--against", "RUN"), "is given twice"),
    "a page in a missing folder": (("RUN", "--html", "FOLDER/no/a.html"), "there is no folder"),
    "a page that is a folder": (("RUN", "--html", "FOLDER"), "no regular file"),
    "a page over the manifest": (("RUN", "--html", "FOLDER/a.jsonl"), "a manifest of the run"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_reported_is_bad_usage(quiet: Quiet, tmp_path: Path, what: str) -> None:
    run_id = judged(quiet, tmp_path / "a.jsonl", [YES])
    arguments, says = BAD[what]
    words = [word.replace("RUN", run_id).replace("FOLDER", str(tmp_path)) for word in arguments]
    said = quiet.farm("report", *words)
    assert (said.returncode, said.stdout) == (2, "")
    assert len(said.stderr.strip().splitlines()) == 1
    assert says in said.stderr


def test_a_run_without_lines_is_bad_usage(quiet: Quiet) -> None:
    with quiet.engine.begin() as connection:
        connection.execute(text("INSERT INTO runs (id, options, farm_version) VALUES ('e', '{}', '')"))
        connection.execute(
            text("INSERT INTO manifests (run_id, number, path, sha256, size) VALUES ('e', 0, '/a', '', 0)")
        )
    said = quiet.farm("report", "e")
    assert (said.returncode, said.stdout) == (2, "")
    assert "run e has no lines" in said.stderr


def test_runs_without_a_common_problem_are_bad_usage(quiet: Quiet, tmp_path: Path) -> None:
    first = judged(quiet, tmp_path / "a.jsonl", [YES])
    write(tmp_path / "b.jsonl", entry(PROVED, 9, name="other"))
    second = submitted(quiet.store, tmp_path / "b.jsonl").run_id
    said = quiet.farm("report", first, "--against", second)
    assert said.returncode == 2
    assert "no problem in common" in said.stderr


# the page


def test_the_page_is_one_file_that_names_nothing_else(quiet: Quiet, tmp_path: Path) -> None:
    first = judged(quiet, tmp_path / "a.jsonl", [YES, REJECTED], fields=[{"d": HOSTILE}, {"d": "b"}])
    page = tmp_path / "report.html"
    said = quiet.farm("report", first, "--by", "d", "--html", page)
    assert said.returncode == 0, said.stderr
    assert str(page) in said.stderr
    told = page.read_text()
    assert "<script" not in told
    assert told.count("</style>") == 1
    assert "\x1b" not in told
    assert "&lt;script&gt;alert(1)" in told
    assert "http://" not in told
    assert "https://" not in told
    assert list(tmp_path.glob(".*")) == []


def test_hostile_names_reach_no_terminal(quiet: Quiet, tmp_path: Path) -> None:
    made = entry(PROVED, 1, name=HOSTILE, d=HOSTILE)
    run_id = submitted(quiet.store, write(tmp_path / "a.jsonl", made)).run_id
    quiet.judge(run_id, 1)
    said = quiet.farm("report", run_id, "--by", "d")
    assert said.returncode == 0, said.stderr
    assert "\x1b[31m" not in said.stdout
    assert "\u202e" not in said.stdout
    assert "\\x1b[31m" in said.stdout
