"""Any other benchmark: rows whose fields are named, folders of Lean, and fields that nobody asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from farm.assembly.program import AssemblyOptions, assemble
from farm.datasets.catalogue import Dataset, dataset, of_folder, of_rows
from farm.datasets.generic import Columns
from farm.datasets.layouts import named
from farm.datasets.making import Copy, Wanted, lines, read_copy, write
from farm.errors import ManifestError, UsageError
from farm.manifest.entries import read
from tests.unit.test_datasets import CASES, copy, jsonl, made

Line = Mapping[str, object]


def made_of(known: Dataset, path: Path, system: str = "lean") -> list[Line]:
    wanted = Wanted(dataset=known, system=system)
    return list(lines(read_copy(path, wanted), wanted))


def rows(path: Path, statement: str, name: str = "", header: str = "", system: str = "lean") -> list[Line]:
    columns = Columns(statement=statement, name=name, header=header, system=system)
    return made_of(of_rows(path.name, columns), path, system)


def folder(path: Path, match: str = "") -> Copy:
    return read_copy(path, Wanted(dataset=of_folder(path.name, match)))


# Rows, as public benchmarks have them: statement, name and header of the first line that is made

WHOLE = "import Mathlib\n\nopen Nat\n\n/-- Words. -/\ntheorem one_1 (n : ℕ) : n = n := by\n  sorry\n"
STATED = "/-- Words. -/\ntheorem one_1 (n : ℕ) : n = n :="
OPENED = "import Mathlib\n\nopen Nat\n\n"
BARE = "theorem one_1 (n : ℕ) : n = n := by sorry"

LAYOUTS: dict[str, tuple[dict[str, object], Columns, str, str]] = {
    "CombiBench": (
        {
            "theorem_name": "one_1",
            "natural_language": "Words.",
            "answer": 3,
            "tag": "x",
            "formal_statement": WHOLE,
        },
        Columns(statement="formal_statement"),
        "one_1",
        OPENED,
    ),
    "FormalMATH": (
        {"theorem_names": "one_1_0", "autoformalization": WHOLE, "domain": ["Algebra"], "source": "omni"},
        Columns(statement="autoformalization", name="theorem_names"),
        "one_1_0",
        OPENED,
    ),
    "ProverBench": (
        {"name": "one_1", "area": "calculus", "header": OPENED, "formal_statement": BARE, "goal": "⊢"},
        Columns(statement="formal_statement", header="header"),
        "one_1",
        OPENED,
    ),
    "a header that nobody names": (
        {"problem_id": "one_1", "lean4_src_header": OPENED, "code": BARE},
        Columns(statement="code"),
        "one_1",
        OPENED,
    ),
    "Lean-workbook": (
        {
            "id": "lean_workbook_1",
            "formal_statement": BARE,
            "tags": ["a"],
            "status": "proved",
            "proof": ["simp"],
        },
        Columns(statement="formal_statement", header="import Mathlib"),
        "lean_workbook_1",
        "import Mathlib\n\n",
    ),
    "NuminaMath-LEAN": (
        {
            "uuid": "0-1",
            "problem": "Words.",
            "formal_statement": WHOLE,
            "ground_truth_type": None,
            "exam": "x",
        },
        Columns(statement="formal_statement", name="uuid"),
        "0-1",
        OPENED,
    ),
    "a nameless benchmark": ({"code": WHOLE}, Columns(statement="code"), "one_1", OPENED),
    "fields that a manifest gives a meaning to": (
        {"code": WHOLE, "generation": 3, "group": ["g"], "timeout": "no", "farm": 1, "predicted_proof": 0},
        Columns(statement="code"),
        "one_1",
        OPENED,
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("suffix", ["jsonl", "json"])
def test_rows_become_lines_that_keep_every_other_field(layout: str, suffix: str, tmp_path: Path) -> None:
    row, columns, name, header = LAYOUTS[layout]
    path = tmp_path / f"some.{suffix}"
    path.write_text(json.dumps(row) + "\n" if suffix == "jsonl" else json.dumps([row]))
    (line,) = made_of(of_rows("some", columns), path)
    assert (line["name"], line["header"], line["source"]) == (name, header, "some (Lean)")
    assert str(line["formal_statement"]).startswith((STATED, "theorem one_1 (n : ℕ) : n = n :="))
    renamed = {
        "header",
        "lean4_src_header",
        "problem_id",
        "name",
        "theorem_name",
        "theorem_names",
        "id",
        "uuid",
        columns.statement,
    }
    for field in row.keys() - renamed:
        assert (
            line["original_source" if field == "source" else field if field in line else f"original_{field}"]
            == row[field]
        )


def program_of(line: Line, tmp_path: Path) -> str:
    """Return the program that is made of a line with an answer."""
    write(tmp_path / "m.jsonl", [{**line, "generation": "```lean4\nANSWER\n```"}])
    (entry,) = read(tmp_path / "m.jsonl")
    return assemble(entry, AssemblyOptions())[0].text


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_line_of_rows_is_taken_and_its_header_stands_on_lines_of_its_own(
    layout: str, tmp_path: Path
) -> None:
    row, columns, _, header = LAYOUTS[layout]
    (line,) = made_of(of_rows("some", columns), jsonl(tmp_path / "some.jsonl", row))
    text = program_of(line, tmp_path)
    assert text.startswith(header)
    assert "\ntheorem one_1" in text
    assert "ANSWER" in text


def test_a_table_is_read_whatever_its_cells_hold(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text(
        '\ufeffid,code,note\n7,"theorem a : 1 = 1 :=\n  by ""x""","a, b"\n8,theorem b : 2 = 2 := sorry\n'
    )
    first, second = rows(path, "code")
    assert (first["name"], first["note"], second["note"]) == ("7", "a, b", None)
    assert str(second["formal_statement"]) == "theorem b : 2 = 2 :="
    tabs = tmp_path / "some.tsv"
    tabs.write_text("code\ntheorem a : 1 = 1 :=\n")
    assert len(rows(tabs, "code")) == 1


def test_statements_of_other_systems_are_taken_as_they_are(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "hol.jsonl", {"name": "a", "goal": "`1 + 1 = 2`", "header": "x"})
    (line,) = rows(path, "goal", system="hol-light")
    assert (line["formal_statement"], line["source"]) == ("`1 + 1 = 2`", "hol.jsonl (HOL Light)")
    assert (line["original_header"], "header" in line) == ("x", False)


def test_rows_that_state_nothing_are_left_out_with_their_reasons(tmp_path: Path) -> None:
    odd = [
        {"code": None},
        {"code": 3},
        {"other": 1},
        {"code": "example : 1 = 1 := sorry"},
        {"code": "import A\n"},
    ]
    path = jsonl(tmp_path / "some.jsonl", *odd, {"code": BARE})
    found = read_copy(path, Wanted(dataset=of_rows("some", Columns(statement="code"))))
    assert [each.place.line for each in found.left_out] == [1, 2, 3, 4, 5]
    assert len(found.problems) == 1


def test_many_rows_that_are_left_out_are_told_by_their_number(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "some.jsonl", *[{"code": ""}] * 25, {"code": BARE})
    found = read_copy(path, Wanted(dataset=of_rows("some", Columns(statement="code"))))
    assert len(found.notes) == 11
    assert found.notes[-1] == "15 more problems were left out; --json lists all"


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (Columns(statement="cod"), "--statement cod: no row of"),
        (Columns(statement="code", name="nam"), "--name nam: no row of"),
        (Columns(statement="code", header="head"), "the rows have code, id. Choose one"),
    ],
)
def test_a_field_that_no_row_has_is_refused_with_those_that_there_are(
    columns: Columns, told: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=told):
        made_of(of_rows("some", columns), jsonl(tmp_path / "some.jsonl", {"code": BARE, "id": 1}))


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.parquet", b"PAR1", "to_json"),
        ("a.txt", b"x", "give a .jsonl, .json, .csv or .tsv file"),
        ("a.csv", b"a,a\n1,2\n", "names the field a twice"),
        ("a.csv", b"code\n1,2\n", "has 2 fields, the first line 1"),
        ("a.csv", b"code\n\xff\n", "invalid UTF-8"),
        ("a.jsonl", b'{"code": ""}\n', "its code is no text, or blank"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_a_remedy(
    name: str, content: bytes, told: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ManifestError, match=told):
        rows(tmp_path / name, "code")
    with pytest.raises(ManifestError, match="farm dataset folder"):
        rows(tmp_path, "code")


# Folders of Lean

FATE = "import Mathlib\n\n/-- Words. -/\ntheorem A.b_c {n : ℕ} : n = n := by\n  sorry"
COMBI = (
    "import Mathlib\n\nnamespace Imo\n\ndef f (n : ℕ) := n\n\nlemma f_zero : f 0 = 0 := rfl\n\n"
    "abbrev imo_solution : ℕ := sorry\n\ntheorem imo : f 3 = imo_solution := by sorry\n\nend Imo\n"
)
VERINA = (
    "-- !benchmark @start import\n\n@[reducible, simp]\ndef F_precond (a : Int) : Prop :=\n  True\n\n"
    "theorem F_spec_satisfied (a : Int) : F_precond a := by\n  -- !benchmark @start proof\n  simp\n"
)
CLEVER = (
    "import Imports.AllImports\n\ndef spec (n : Nat) : Prop := n = n\n\ntheorem spec_isomorphism:\n"
    "∀ n, spec n"
    " :=\nsorry\n\ndef implementation (n : Nat) : Nat := n\n\n"
    "theorem correctness (n : Nat) : implementation n = n :=\n"
    "by\nsorry\n"
)
CONJECTURES = (
    "/-\nCopyright.\n-/\n\nimport FormalConjecturesUtil\n\nopen Filter\n\nnamespace Erdos1\n\n"
    "abbrev P (n : ℕ) := n = n\n\n"
    "@[category research open, AMS 5]\ntheorem erdos_1 : P 1 := by\n  sorry\n\n"
    "@[category textbook]\ntheorem erdos_1.variants.weaker : P 2 := by\n  rfl\n\n"
    "theorem erdos_1.variants.strong : P 3 := by\n  sorry\n\nend Erdos1\n"
)


def test_a_folder_gives_the_theorems_that_its_files_leave_open(tmp_path: Path) -> None:
    for place, text in {
        "lakefile.lean": "import Lake\n",
        "FATE/9.lean": FATE,
        "Combi/imo.lean": COMBI,
        "Clever/problem_0.lean": CLEVER,
        "Conjectures/1.lean": CONJECTURES,
        "Lib/Basic.lean": "theorem proved : 1 = 1 := rfl\n",
        ".lake/packages/a.lean": FATE,
    }.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    found = folder(tmp_path)
    assert [(each.more["file"], each.name) for each in found.problems] == [
        ("Clever/problem_0.lean", "spec_isomorphism"),
        ("Clever/problem_0.lean", "correctness"),
        ("Combi/imo.lean", "imo"),
        ("Conjectures/1.lean", "erdos_1"),
        ("Conjectures/1.lean", "erdos_1.variants.strong"),
        ("FATE/9.lean", "A.b_c"),
    ]
    by_name = {each.name: each for each in found.problems}
    assert by_name["imo"].statement.startswith("def f (n : ℕ) := n\n\nlemma f_zero")
    assert by_name["imo"].header.endswith("namespace Imo\n\n")
    assert by_name["imo"].more["open_answer"] == "Imo.imo_solution"
    strong = by_name["erdos_1.variants.strong"]
    assert "erdos_1.variants.weaker : P 2 := by\n  rfl" in strong.header
    assert "theorem erdos_1 :" not in strong.header
    assert by_name["erdos_1"].statement.startswith("@[category research open, AMS 5]\ntheorem")
    assert "def implementation" in by_name["correctness"].header


def test_files_that_a_glob_chooses_state_a_problem_each_solved_or_not(tmp_path: Path) -> None:
    for number, text in enumerate((VERINA, VERINA.replace("  simp", "  sorry").replace("F_", "G_"))):
        place = tmp_path / f"verina_{number}"
        place.mkdir()
        (place / "task.lean").write_text(text)
        (place / "task-bak.lean").write_text(FATE)
    found = folder(tmp_path, "**/task.lean")
    assert [each.name for each in found.problems] == ["F_spec_satisfied", "G_spec_satisfied"]
    assert found.problems[0].statement.endswith("F_precond a :=")


def test_one_file_is_a_folder_of_one(tmp_path: Path) -> None:
    (tmp_path / "9.lean").write_text(FATE)
    assert [each.name for each in folder(tmp_path / "9.lean").problems] == ["A.b_c"]


@pytest.mark.parametrize("match", ["**/*.txt", "/etc/*.lean", ""])
def test_a_folder_without_such_files_is_refused(match: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"another --match|give a glob|holds no file"):
        folder(tmp_path, match)


# Copies of ProofNet

PROOF_ROW = {"header": "import Mathlib\n", "informal_stmt": "Words.", "formal_proof": None}


def test_proofnet_is_known_where_its_copies_have_it(tmp_path: Path) -> None:
    named_row = {"name": "Rudin_exercise_1_2", "source": "Rudin.lean", **PROOF_ROW}
    path = jsonl(
        tmp_path / "proofnet_lean4.jsonl",
        {**named_row, "formal_statement": "theorem Rudin_exercise_1_2 : 1 = 1 :="},
    )
    (tmp_path / "lake-manifest.json").write_text('{"version": 7, "packages": []}')
    (line,) = made("proofnet", tmp_path).values()
    assert (line["original_source"], line["informal_prefix"]) == ("Rudin.lean", "Words.")
    assert line["formal_proof"] is None
    path.unlink()
    helped = {
        "index": "1",
        "helper": "def f := 1",
        "formal_stmt": "theorem Artin_exercise_2 : f = 1 := sorry",
    }
    jsonl(tmp_path / "verified.jsonl", {"name": "Artin_exercise_2", **PROOF_ROW, **helped})
    (line,) = made("proofnet", tmp_path).values()
    assert line["formal_statement"] == "def f := 1\n\ntheorem Artin_exercise_2 : f = 1 :="


def test_proofnet_is_read_from_files_of_problems_and_of_textbooks(tmp_path: Path) -> None:
    (tmp_path / "proofnet-1.lean").write_text(
        "import Mathlib\n\ntheorem exercise_1_1 : 1 = 1 := by\n  sorry\n"
    )
    (tmp_path / "Rudin.lean").write_text(
        "import Mathlib\nopen Nat\n\ntheorem exercise_1_1 : 2 = 2 :=\nsorry\n\n"
        "theorem exercise_1_2 : 3 = 3 :=\nsorry\n"
    )
    found = copy("proofnet", tmp_path)
    assert [(each.name, each.group, each.more["file"]) for each in found.problems] == [
        ("exercise_1_1", None, "Rudin.lean"),
        ("exercise_1_2", None, "Rudin.lean"),
        ("exercise_1_1", "exercise_1_1#2", "proofnet-1.lean"),
    ]


# What rows say besides


def test_what_minictx_says_of_a_theorem_survives(tmp_path: Path) -> None:
    row = {
        "srcContext": "import Mathlib\n\n",
        "theoremStatement": "theorem a : 1 = 1",
        "theoremName": "a",
        "fileCreated": {"commit": "c1", "date": "2024-05-01"},
        "theoremCreated": {"commit": "c2", "date": "2024-06-01"},
        "file": "A/B.lean",
        "module": "A.B",
        "jsonFile": "A.B.jsonl",
        "positionMetadata": {"lineInFile": 3, "theoremPositionInFile": 0},
        "dependencyMetadata": {"inFilePremises": True, "numRepositoryPremises": 2},
        "proofMetadata": {"hasProof": True, "proof": "by rfl", "proofType": "tactic"},
        "split": "test",
        "header": "x",
        "note": None,
    }
    (line,) = made("minictx", jsonl(tmp_path / "a.jsonl", row)).values()
    used = {"srcContext", "theoremStatement", "theoremName", "header"}
    assert {field: line[field] for field in row.keys() - used} == {
        field: row[field] for field in row.keys() - used
    }
    assert (line["original_header"], line["commit"], line["proof_type"]) == ("x", "c2", "tactic")
    assert "header" not in line


def test_half_of_a_character_in_a_field_that_nobody_reads_is_kept(tmp_path: Path) -> None:
    row = {"name": "mathd_1", "formal_statement": "theorem mathd_1 : 1 = 1 :=", "note": "\ud800é"}
    (line,) = made("minif2f", jsonl(tmp_path / "a.jsonl", row)).values()
    write(tmp_path / "made.jsonl", [dict(line)])
    assert json.loads((tmp_path / "made.jsonl").read_text())["note"] == "\ud800é"


@pytest.mark.parametrize(
    ("name", "category", "level", "source", "year"),
    [
        ("mathd_algebra_478", "algebra", None, "MATH", None),
        ("mathd_numbertheory_1124", "number theory", None, "MATH", None),
        ("mathd-algebra-478", "algebra", None, "MATH", None),
        ("amc12a_2019_p21", "olympiad", "AMC 12", "AMC", 2019),
        ("amc12-2000-p6", "olympiad", "AMC 12", "AMC", 2000),
        ("amc8_2010_p1", "olympiad", "AMC 8", "AMC", 2010),
        ("aime_1983_p1", "olympiad", "AIME", "AIME", 1983),
        ("aimeII_2001_p3", "olympiad", "AIME", "AIME", 2001),
        ("imo_1959_p1", "olympiad", "IMO", "IMO", 1959),
        ("imosl_2007_algebra_p6", "olympiad", "IMO", "IMO", 2007),
        ("algebra_2varlineareq_fp3zeq11", "algebra", None, "custom", None),
        ("numbertheory_2dvd4expn", "number theory", None, "custom", None),
        ("induction_nfactltnexpnm1ngt3", "induction", None, "custom", None),
        ("something_else", None, None, None, None),
    ],
)
def test_a_name_of_minif2f_says_category_level_and_source(
    name: str, category: str | None, level: str | None, source: str | None, year: int | None
) -> None:
    found = named(name)
    told = [found.get(field) for field in ("category", "level", "problem_source", "year")]
    assert told == [category, level, source, year]


@pytest.mark.parametrize(
    ("place", "system"), [("miniF2F-lean4", "lean"), ("miniF2F", "metamath"), ("miniF2F", "hol-light")]
)
def test_lines_of_minif2f_have_a_category_in_every_system(place: str, system: str) -> None:
    found = made("minif2f", CASES / place, system)
    assert all(line["category"] and line["problem_source"] for line in found.values())


def test_what_a_row_of_minif2f_says_itself_wins_over_its_name(tmp_path: Path) -> None:
    row = {"name": "mathd_algebra_1", "formal_statement": "theorem mathd_algebra_1 : 1 = 1 :=", "level": 5}
    (line,) = made("minif2f", jsonl(tmp_path / "a.jsonl", {**row, "category": "mine"})).values()
    assert (line["level"], line["difficulty"], line["category"]) == (5, 5, "mine")


def test_an_unknown_benchmark_is_pointed_to_the_readers_of_any() -> None:
    with pytest.raises(UsageError, match="farm dataset lines"):
        dataset("gsm8k")
