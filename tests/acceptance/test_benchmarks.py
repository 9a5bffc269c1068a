"""Copies of benchmarks through the whole farm: manifests are made, tried, answered, judged, reported."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import Command, lines, verdicts, write

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "benchmark"
CASES = ROOT / "tests" / "cases" / "datasets"
HEADER = "prelude\nimport Core\n\n"


def problem(name: str, statement: str, **more: object) -> dict[str, object]:
    return {"name": name, "header": HEADER, "formal_statement": f"theorem {statement} := sorry", **more}


@pytest.fixture(scope="module")
def answered(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The run of the worked example, and its manifest with the verdicts."""
    path = tmp_path_factory.mktemp("benchmark") / "benchmark.jsonl"
    said = farm(
        *("dataset", "minif2f", EXAMPLE / "miniF2F", "-o", path),
        *("--split", "test", "--samples", 3, "--environment", "core"),
    )
    assert said.returncode == 0, said.stderr
    subprocess.run([sys.executable, EXAMPLE / "answer.py", path], check=True)
    return str(farm.json("submit", path)["run"]), path


def test_the_worked_example_is_judged_as_its_page_says(answered: tuple[str, Path]) -> None:
    _, path = answered
    assert verdicts(path) == [
        *(("rejected", "error"), ("rejected", "error"), ("rejected", "error")),  # amc12_2000_p1
        *(("proved", "ok"), ("rejected", "error"), ("rejected", "error")),  # mathd_algebra_1
        *(("rejected", "error"), ("proved", "ok"), ("rejected", "error")),  # mathd_algebra_2
    ]
    assert {line["farm"]["environment"] for line in lines(path)} == {"core"}
    assert [line["sample"] for line in lines(path)] == [0, 1, 2] * 3


def test_a_report_has_a_row_for_each_benchmark_across_runs(
    farm: Command, answered: tuple[str, Path], tmp_path: Path
) -> None:
    other = tmp_path / "other.jsonl"
    source = write(tmp_path / "copy.jsonl", problem("imo_2020_p2", "imo_2020_p2 : True"))
    assert farm("dataset", "mobench", source, "-o", other).returncode == 0
    (line,) = lines(other)
    write(other, {**line, "generation": "```lean4\nTrue.intro\n```"})
    second = str(farm.json("submit", other)["run"])
    report = farm.json("report", answered[0], second, "--by", "source")
    rows = {
        each["value"]: (each["figures"]["problems"], each["figures"]["solved"])
        for each in report["by"]["values"]
    }
    assert rows == {"miniF2F (Lean)": (3, 2), "MathOlympiadBench (Lean)": (1, 1)}
    shown = farm("report", answered[0], second, "--by", "source").stdout
    assert "miniF2F (Lean)" in shown
    assert "MathOlympiadBench (Lean)" in shown


def test_a_manifest_is_made_for_scripts_with_what_it_holds(farm: Command, tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl"
    facts = farm.json("dataset", "minif2f", CASES / "miniF2F", "--system", "metamath", "-o", path)
    assert facts["splits"] == {"test": 2, "valid": 1}
    assert (facts["lines"], facts["problems"]) == (3, 3)
    assert [Path(each["place"]).name for each in facts["left_out"]] == ["mathd-algebra-6.mm"]
    assert facts["notes"]
    assert [line["name"] for line in lines(path)] == ["aime-1994-p3", "amc12-2000-p1", "mathd-algebra-5"]


def test_a_note_is_said_on_stderr_and_nothing_on_stdout(farm: Command, tmp_path: Path) -> None:
    said = farm("dataset", "proofnet", CASES / "proofnet", "-o", tmp_path / "made.jsonl")
    assert said.returncode == 0
    assert "Note: ProofNet has 186 problems in test as published; this copy has 1" in said.stderr
    assert "Wrote 4 lines (1 test, 3 valid)" in said.stderr
    assert said.stdout == ""


def test_what_is_there_stays_unless_it_is_to_be_replaced(farm: Command, tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl"
    path.write_text("mine")
    refused = farm("dataset", "proofnet", CASES / "proofnet", "-o", path)
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert path.read_text() == "mine"
    assert farm("dataset", "proofnet", CASES / "proofnet", "-o", path, "--force").returncode == 0
    assert len(lines(path)) == 4


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("gsm8k", CASES), "gsm8k: no such dataset; choose one of"),
        (("minif2f", CASES / "nothing"), "no such file or folder"),
        (("minif2f", CASES / "proofnet"), "farm dataset proofnet reads ProofNet"),
        (("proofnet", CASES / "proofnet", "--split", "train"), "it has test, valid"),
    ],
)
def test_a_copy_that_cannot_be_read_leaves_no_manifest(
    farm: Command, words: tuple[object, ...], told: str, tmp_path: Path
) -> None:
    said = farm("dataset", *words, "-o", tmp_path / "made.jsonl")
    assert said.returncode == 2
    assert told in said.stderr
    assert list(tmp_path.iterdir()) == []


# Any other benchmark

WHOLE = f"{HEADER}/-- Words. -/\ntheorem sound : True := by\n  sorry\n"


def test_rows_and_folders_of_any_other_benchmark_are_made_tried_and_judged(
    farm: Command, tmp_path: Path
) -> None:
    rows = write(tmp_path / "Some.jsonl", {"uuid": "0-1", "code": WHOLE, "exam": "x"})
    (tmp_path / "Files").mkdir()
    (tmp_path / "Files" / "9.lean").write_text(WHOLE)
    made = [tmp_path / "rows.jsonl", tmp_path / "files.jsonl"]
    of_rows = ("dataset", "lines", rows, "--statement", "code", "--name", "uuid", "-o", made[0], "--check")
    assert farm(*of_rows).returncode == 0
    assert farm("dataset", "folder", tmp_path / "Files", "-o", made[1], "--check").returncode == 0
    for path, name in zip(made, ("0-1", "sound"), strict=True):
        (line,) = lines(path)
        assert line["name"] == name
        write(path, {**line, "generation": "```lean4\nTrue.intro\n```"})
        farm.json("submit", path)
        assert verdicts(path) == [("proved", "ok")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("lines", EXAMPLE), "farm dataset lines needs --statement FIELD"),
        (
            ("lines", EXAMPLE, "--statement", "code", "--match", "*"),
            "--match belongs to `farm dataset folder`",
        ),
        (("folder", EXAMPLE, "--name", "x"), "--name belongs to `farm dataset lines`"),
        (("minif2f", EXAMPLE, "--header", "x"), "--header belongs to `farm dataset lines`"),
    ],
)
def test_an_option_of_another_reader_is_refused(
    farm: Command, words: tuple[object, ...], told: str, tmp_path: Path
) -> None:
    said = farm("dataset", *words, "-o", tmp_path / "made.jsonl")
    assert said.returncode == 2
    assert told in said.stderr


# Statements tried


def test_statements_that_compile_are_all_that_is_wanted(farm: Command, tmp_path: Path) -> None:
    said = farm("dataset", "minif2f", EXAMPLE / "miniF2F", "-o", tmp_path / "made.jsonl", "--check")
    assert said.returncode == 0, said.stderr
    assert said.stdout == "4 of 4 statements compile; 0 do not\n"


WRONG = [
    problem("sound", "sound : True"),
    problem("unknown", "unknown : Missing.Thing"),
    problem("no_type", "no_type : True.intro"),
    {**problem("no_module", "no_module : True"), "header": "prelude\nimport Nowhere\n\n"},
]


def test_statements_that_do_not_compile_are_listed_with_their_first_error(
    farm: Command, tmp_path: Path
) -> None:
    source = write(tmp_path / "copy.jsonl", *WRONG)
    made = tmp_path / "made.jsonl"
    facts = farm.json("dataset", "mobench", source, "-o", made, "--check", status=4)
    assert facts["tried"] == 4
    assert [each["name"] for each in facts["wrong"]] == ["unknown", "no_type", "no_module"]
    assert "Missing" in facts["wrong"][0]["detail"]
    assert "Nowhere" in facts["wrong"][2]["detail"]
    assert facts["unjudged"] == []
    assert len(lines(made)) == 4


def test_the_wrong_statements_are_shown_in_a_table(farm: Command, tmp_path: Path) -> None:
    source = write(tmp_path / "copy.jsonl", *WRONG)
    said = farm("dataset", "mobench", source, "-o", tmp_path / "made.jsonl", "--check")
    assert said.returncode == 4
    assert "1 of 4 statements compile; 3 do not" in said.stdout
    assert "unknown" in said.stdout


def test_statements_of_another_system_are_not_tried_in_lean(farm: Command, tmp_path: Path) -> None:
    said = farm(
        *("dataset", "minif2f", CASES / "miniF2F", "--system", "metamath"),
        *("-o", tmp_path / "made.jsonl", "--check"),
    )
    assert said.returncode == 2
    assert "'core' is an environment of Lean, and the statements are of Metamath" in said.stderr


def test_the_example_of_the_help_can_be_followed(farm: Command, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE / "miniF2F", tmp_path / "miniF2F-lean4")
    example = farm.having(COLUMNS="300")("dataset", "--help").stdout.partition("Example: farm ")[2]
    words = example.split("\n")[0].split()
    words = [str(tmp_path / word) if "miniF2F" in word or word.endswith(".jsonl") else word for word in words]
    assert farm(*words).returncode == 0
    assert len(lines(tmp_path / "minif2f.jsonl")) == 3
