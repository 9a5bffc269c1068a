"""Copies of public benchmarks become manifests: every layout, every statement whole, and what is refused."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from farm.assembly.challenge import challenge_to
from farm.assembly.declaration import find_like
from farm.assembly.program import AssemblyOptions, assemble
from farm.datasets.catalogue import DATASETS, dataset
from farm.datasets.lean_files import only_theorem
from farm.datasets.making import Copy, Wanted, lines, read_copy, require_writable, write
from farm.errors import ManifestError, UsageError
from farm.manifest.entries import entries

CASES = Path(__file__).parents[1] / "cases" / "datasets"
#: A made copy of each benchmark: its word, its place among the cases, the system, and its splits.
COPIES = [
    ("minif2f", "miniF2F-lean4", "lean", {"test": 4, "valid": 2}),
    ("minif2f", "miniF2F-lean4/MiniF2F", "lean", {"test": 4, "valid": 2}),
    ("minif2f", "miniF2F-lean4/MiniF2F/Test.lean", "lean", {"test": 4}),
    ("minif2f", "miniF2F-lean4/MiniF2F/Valid", "lean", {"valid": 2}),
    ("minif2f", "miniF2F", "metamath", {"test": 2, "valid": 1}),
    ("minif2f", "miniF2F/metamath", "metamath", {"test": 2, "valid": 1}),
    ("minif2f", "miniF2F/metamath/valid", "metamath", {"valid": 1}),
    ("minif2f", "miniF2F", "hol-light", {"test": 1, "valid": 1}),
    ("proofnet", "proofnet", "lean", {"test": 1, "valid": 3}),
    ("proofnet", "proofnet/valid.jsonl", "lean", {"valid": 3}),
    ("putnam-bench", "PutnamBench", "lean", {"test": 3}),
    ("putnam-bench", "PutnamBench/lean4/src", "lean", {"test": 3}),
    ("minictx", "minictx", "lean", {"shop": 2, "toolkit": 1}),
    ("minictx", "minictx/toolkit.jsonl", "lean", {"toolkit": 1}),
    ("mobench", "mobench.jsonl", "lean", {"test": 1}),
]
BODY = "  norm_num [h₀]\n  exact this"


def copy(word: str, path: Path, system: str = "lean", split: str = "") -> Copy:
    return read_copy(path, Wanted(dataset=dataset(word), system=system, split=split))


def made(word: str, path: Path, system: str = "lean") -> dict[str, dict[str, object]]:
    wanted = Wanted(dataset=dataset(word), system=system)
    return {str(each["name"]): each for each in lines(read_copy(path, wanted), wanted)}


def lean_copies() -> Iterator[Copy]:
    for word, place, system, _ in COPIES:
        if system == "lean":
            yield copy(word, CASES / place)


def refused(word: str, path: Path, system: str = "lean", split: str = "") -> str:
    with pytest.raises(UsageError) as caught:
        copy(word, path, system, split)
    assert caught.value.exit_status == 2
    return str(caught.value)


# What is read


@pytest.mark.parametrize(("word", "place", "system", "splits"), COPIES)
def test_a_layout_gives_its_problems_by_split(
    word: str, place: str, system: str, splits: dict[str, int]
) -> None:
    assert copy(word, CASES / place, system).splits == splits


def statements(copies: Iterable[Copy]) -> Iterator[tuple[str, str, str]]:
    """Yield header, statement and name of the theorem of all problems in copies."""
    for found in copies:
        for each in found.problems:
            if each.context is None:
                yield each.header, each.statement, each.name


def test_every_statement_is_in_its_program_as_it_is_and_is_followed_by_the_proof() -> None:
    assert_in_programs(lean_copies())


def assert_in_programs(copies: Iterable[Copy]) -> None:
    for header, statement, name in statements(copies):
        is_open = statement.rstrip().endswith(":=")
        body = (" by\n" if is_open else "") + BODY
        (entry,) = entries("made", [(1, json.dumps(_line(header, statement, statement + body)).encode())])
        assert not isinstance(entry, ManifestError)
        program = assemble(replace(entry, predicted_proof=""), AssemblyOptions())[0].text
        assert program == header + statement + body, name


def _line(header: str, statement: str, generation: str) -> dict[str, str]:
    answer = f"```lean4\n{generation}\n```"
    return {"name": "n", "header": header, "formal_statement": statement, "generation": answer}


def test_every_challenge_states_exactly_one_theorem_of_the_problems_name() -> None:
    assert_one_theorem(lean_copies())


def assert_one_theorem(copies: Iterable[Copy]) -> None:
    for header, statement, name in statements(copies):
        challenge = challenge_to(header, statement)
        assert challenge is not None
        assert challenge.name == name.rpartition("|")[2]
        pattern = rf"^[^\n]*\b(?:theorem|lemma|def)\s+{re.escape(challenge.name)}(?![\w'])"
        assert len(re.findall(pattern, challenge.program, re.MULTILINE)) == 1
        found = find_like(challenge.program, 0, len(challenge.program), "theorem")
        if found is not None:
            assert found.name == challenge.name
        assert challenge.program.startswith(header)
        assert challenge.program.endswith("sorry\n")


# Files of Lean


def test_neither_comments_nor_strings_nor_proofs_are_taken_for_theorems() -> None:
    found = made("minif2f", CASES / "miniF2F-lean4" / "MiniF2F" / "Test.lean")
    assert list(found) == ["mathd_algebra_1", "mathd_algebra_2", "amc12_2000_p1", "imo_1959_p1"]
    for each in found.values():
        assert str(each["formal_statement"]).endswith(" :=")
        assert "-- a proof" not in str(each["formal_statement"])


def test_a_statement_begins_with_its_doc_comment_and_with_what_is_opened_for_it() -> None:
    found = made("minif2f", CASES / "miniF2F-lean4")
    assert str(found["mathd_algebra_2"]["formal_statement"]).startswith("/-- A doc comment")
    assert str(found["amc12_2000_p1"]["formal_statement"]).startswith("open Nat in\n@[simp] theorem")


def test_what_stands_between_theorems_holds_for_those_that_follow() -> None:
    found = made("minif2f", CASES / "miniF2F-lean4")
    definition = "def twice (n : ℕ) : ℕ := 2 * n\n"
    assert definition in str(found["imo_1959_p1"]["header"])
    assert definition not in str(found["amc12_2000_p1"]["header"])


def test_an_answer_in_a_comment_takes_the_place_of_its_sorry() -> None:
    found = made("putnam-bench", CASES / "PutnamBench")["putnam_1963_b3"]
    answer = "{(fun u : ℝ => A * u) | A : ℝ}"
    statement = str(found["formal_statement"])
    assert f"noncomputable abbrev putnam_1963_b3_solution : Set (ℝ → ℝ) := {answer}\n" in statement
    assert "sorry" not in statement
    assert found["answer"] == answer
    assert found["header"] == ("import Mathlib\nopen BigOperators\n\nopen Topology Filter Polynomial\n\n")


@pytest.mark.parametrize(
    ("behind", "answer"),
    [
        ("\n-- fun n => n\n", "fun n => n"),
        ("\n--fun n => n", "fun n => n"),
        (" -- 3\n", "3"),
        ("\n-- fun n =>\n--   n + 1\n\n", "fun n =>\n    n + 1"),
        ("\n-- 3\n\n-- Another comment.\n", "3"),
        ("\n-- 3\n-- Note: the numbers differ.\n", "3"),
        ("\n\n-- Another comment.\n", "sorry"),
        ("\n-- Note: this is no answer.\n", "sorry"),
        ("\n/- no answer -/\n", "sorry"),
    ],
)
def test_only_the_comment_right_behind_a_sorry_is_an_answer(behind: str, answer: str) -> None:
    head = "abbrev putnam_1_solution : ℕ → ℕ := "
    stated = only_theorem(f"import Mathlib\n\n{head}sorry{behind}\ntheorem putnam_1 : 1 = 1 := sorry\n")
    assert stated.statement.startswith(f"{head}{answer}")
    assert stated.statement[len(head + answer)] in "\n "
    assert bool(stated.open_answers) == (answer == "sorry")


def test_an_answer_that_nothing_tells_stays_open_and_a_note_says_so() -> None:
    found = copy("putnam-bench", CASES / "PutnamBench")
    assert any("a sorry in their statement: 1, such as putnam_1964_a2" in note for note in found.notes)
    (problem,) = (each for each in found.problems if each.name == "putnam_1964_a2")
    assert problem.statement.startswith("abbrev putnam_1964_a2_solution : ℕ := sorry\n\ntheorem helper")
    assert problem.more["open_answer"] == "putnam_1964_a2_solution"


def test_solutions_are_left_open_and_the_known_ones_expected() -> None:
    wanted = Wanted(dataset=dataset("putnam-bench"), open_answers=True)
    found = {each["name"]: each for each in lines(read_copy(CASES / "PutnamBench", wanted), wanted)}
    known, unknown = found["putnam_1963_b3"], found["putnam_1964_a2"]
    answer = "{(fun u : ℝ => A * u) | A : ℝ}"
    head = "noncomputable abbrev putnam_1963_b3_solution : Set (ℝ → ℝ) := "
    statement = str(known["formal_statement"])
    assert f"{head}sorry\n" in statement
    assert answer not in statement
    assert (known["expected_answer"], known.get("answer"), known.get("answers")) == (answer, None, None)
    assert str(unknown["formal_statement"]).startswith("abbrev putnam_1964_a2_solution : ℕ := sorry\n")
    assert (unknown["answers"], unknown.get("open_answer")) == (True, None)
    assert "expected_answer" not in found["putnam_1962_a1"]
    whole = only_theorem(
        "abbrev a_solution : ℕ := sorry\n-- 3\nabbrev b_solution : ℕ := sorry\n-- 4\n"
        "theorem putnam_1 : a_solution = b_solution := sorry\n"
    )
    assert (whole.answered, whole.answers) == (("a_solution", "b_solution"), ("3", "4"))
    assert whole.unanswered.count("sorry\n") == 2
    assert "--" not in whole.unanswered


def test_the_words_of_a_problem_come_along() -> None:
    putnam = made("putnam-bench", CASES / "PutnamBench")["putnam_1962_a1"]
    assert (putnam["informal_statement"], putnam["tags"]) == ("Given five points.", ["geometry"])
    metamath = made("minif2f", CASES / "miniF2F", "metamath")["mathd-algebra-5"]
    assert metamath["informal_statement"] == "Show what is given."
    assert made("mobench", CASES / "mobench.jsonl")["imo_2020_p2"]["difficulty"] == "hard"


def test_a_whole_program_in_a_field_is_taken_apart() -> None:
    found = made("mobench", CASES / "mobench.jsonl")["imo_2020_p2"]
    assert found["header"] == "import Mathlib\n\nopen Real\n\n"
    assert found["formal_statement"] == "theorem imo_2020_p2 (x : ℝ) : x = x :="


# Files of other systems


def test_a_block_of_metamath_is_unwrapped_and_its_proof_left_open() -> None:
    found = made("minif2f", CASES / "miniF2F", "metamath")
    assert found["amc12-2000-p1"]["formal_statement"] == (
        "${\n    amc12-2000-p1.0 $e |- ( ph -> X e. NN ) $.\n"
        "    amc12-2000-p1 $p |- ( ph -> ( X + 1 ) e. NN ) $= ? $.\n  $}"
    )
    assert found["mathd-algebra-5"]["formal_statement"] == (
        "${\n  mathd-algebra-5.0 $e |- ph $.\n  mathd-algebra-5 $p |- ph $= ? $.\n$}"
    )
    assert "header" not in found["amc12-2000-p1"]


def test_a_theorem_with_the_label_of_its_hypothesis_gets_its_files_name() -> None:
    found = made("minif2f", CASES / "miniF2F", "metamath")["aime-1994-p3"]
    assert "aime-1994-p3 $p |- ( ph -> Y e. RR ) $= ? $." in str(found["formal_statement"])
    assert found["label_mended"] is True


def test_a_file_that_states_nothing_is_left_out_and_named() -> None:
    found = copy("minif2f", CASES / "miniF2F", "metamath")
    (left,) = found.left_out
    assert left.place.path.name == "mathd-algebra-6.mm"
    assert any("mathd-algebra-6.mm: left out" in note for note in found.notes)


def test_a_term_of_hol_light_is_what_stands_between_the_backquotes() -> None:
    found = made("minif2f", CASES / "miniF2F", "hol-light")
    assert found["amc12-2000-p6"]["formal_statement"] == "`!p q. prime p /\\ prime q ==> ~(p * q = 194)`"


# Contexts


def test_a_line_of_minictx_has_a_context_and_no_header() -> None:
    found = made("minictx", CASES / "minictx")["price_pos"]
    assert "header" not in found
    assert str(found["context"]).endswith("def price : Nat := 3\n\n")
    assert found["formal_statement"] == "theorem price_pos : 0 < price"
    assert (found["file"], found["commit"]) == ("Shop/Basic.lean", "85a47191ab")


def test_a_theorem_without_a_name_is_called_by_its_place() -> None:
    assert "Shop/Basic.lean:8" in made("minictx", CASES / "minictx")


def test_the_fields_of_ntp_toolkit_are_known() -> None:
    found = made("minictx", CASES / "minictx")["Shop.more"]
    assert (found["context"], found["formal_statement"]) == ("import Mathlib\n\n", "theorem more : 1 = 1")


def test_a_context_that_lean_refuses_and_one_that_is_there_twice_are_left_out() -> None:
    found = copy("minictx", CASES / "minictx")
    assert [each.why.partition(" ")[0] for each in found.left_out] == ["its", "the"]
    assert [each.place.line for each in found.left_out] == [3, 4]


# What lines say besides


def test_a_line_names_its_benchmark_and_its_system() -> None:
    assert {each["source"] for each in made("minif2f", CASES / "miniF2F", "hol-light").values()} == {
        "miniF2F (HOL Light)"
    }


def test_a_number_of_samples_repeats_each_line_with_its_number() -> None:
    wanted = Wanted(dataset=dataset("mobench"), samples=3, environment="mathlib")
    found = list(lines(read_copy(CASES / "mobench.jsonl", wanted), wanted))
    assert [(each["name"], each["sample"], each["environment"]) for each in found] == [
        ("imo_2020_p2", number, "mathlib") for number in range(3)
    ]


def test_a_split_is_chosen() -> None:
    assert copy("proofnet", CASES / "proofnet", split="test").splits == {"test": 1}


def test_a_copy_of_another_size_is_told_and_not_refused() -> None:
    found = copy("proofnet", CASES / "proofnet", split="test")
    assert "ProofNet has 186 problems in test as published; this copy has 1" in found.notes


def test_a_later_version_of_a_benchmark_that_grows_says_so(tmp_path: Path) -> None:
    rows = [
        {
            "name": f"putnam_{1900 + n // 12}_{'ab'[n // 6 % 2]}{n % 6 + 1}",
            "formal_statement": f"theorem t{n} : 1 = 1 :=",
        }
        for n in range(672)
    ]
    found = copy("putnam-bench", jsonl(tmp_path / "putnam.jsonl", *rows))
    assert found.notes == ("PutnamBench was published with 660 problems in test; this later copy has 672",)


# What is refused


def jsonl(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


GOOD = {"name": "mathd_algebra_1", "split": "test", "formal_statement": "theorem mathd_algebra_1 : 1 = 1 :="}


def test_a_split_that_is_not_there_is_refused_with_those_that_are() -> None:
    assert "it has test, valid" in refused("proofnet", CASES / "proofnet", split="train")


def test_a_system_that_a_benchmark_does_not_have_is_refused_with_those_that_it_has() -> None:
    assert "ProofNet is read in lean" in refused("proofnet", CASES / "proofnet", "metamath")


def test_an_unknown_benchmark_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UsageError, match="minif2f, proofnet, putnam-bench, minictx, mobench"):
        dataset("gsm8k")


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "nothing is downloaded" in refused("minif2f", tmp_path / "nothing")


@pytest.mark.parametrize("word", DATASETS)
def test_an_empty_folder_is_refused(word: str, tmp_path: Path) -> None:
    assert "holds no problem of" in refused(word, tmp_path)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    assert "holds no problem of" in refused("minif2f", jsonl(tmp_path / "a.jsonl"))


@pytest.mark.parametrize(
    ("word", "place", "told"),
    [
        ("minif2f", "proofnet", "farm dataset proofnet reads ProofNet"),
        ("putnam-bench", "proofnet/valid.jsonl", "is no name of PutnamBench"),
        ("proofnet", "PutnamBench/lean4/src", "holds no problem of ProofNet"),
        ("minictx", "proofnet", "has no statement"),
        ("mobench", "minictx", "has no name"),
    ],
)
def test_a_copy_of_another_benchmark_is_refused(word: str, place: str, told: str) -> None:
    assert told in refused(word, CASES / place)


def test_malformed_json_is_refused_with_its_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(GOOD) + "\n{broken\n")
    assert f"{path}:2: malformed JSON at column 2" in refused("minif2f", path)


def test_malformed_json_of_one_value_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[\n{},\n{broken\n]")
    assert f"{path}:3: malformed JSON" in refused("minif2f", path)


def test_text_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    lines_path = tmp_path / "a.jsonl"
    lines_path.write_bytes(json.dumps(GOOD).encode() + b'\n{"name": "\xff"}\n')
    assert f"{lines_path}:2: invalid UTF-8 at byte 11 of the line" in refused("minif2f", lines_path)
    folder = tmp_path / "Test"
    folder.mkdir()
    (folder / "mathd_1.lean").write_bytes(b"import Mathlib\n-- \xff\n")
    assert "mathd_1.lean:2: invalid UTF-8 at byte 4 of the line" in refused("minif2f", tmp_path)


def test_two_problems_of_one_name_are_refused_with_both_places(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", GOOD, GOOD)
    said = refused("minif2f", path)
    assert f"{path}:2: two problems are called mathd_algebra_1; the first is at {path}:1" in said


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ([1], "is not an object"),
        ({"name": "mathd_1"}, "has no Lean 4 statement; the line has name"),
        ({"formal_statement": "theorem a : 1 = 1 :="}, "has no name"),
        ({"name": 3, "formal_statement": "theorem a : 1 = 1 :="}, 'field "name": is not a string'),
        ({"name": "mathd_1", "formal_statement": "1 = 1"}, "the statement declares no theorem"),
        ({"name": "mathd_1", "formal_statement": "theorem a : \ud800 :="}, "half of a character"),
        ({"name": "mathd_1", "lean4_code": "import Mathlib\n#eval 1\n"}, "states no theorem"),
    ],
)
def test_a_line_that_states_nothing_is_refused_with_its_place(row: object, told: str, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", row)
    said = refused("minif2f", path)
    assert said.startswith(f"{path}:1: ")
    assert told in said


@pytest.mark.parametrize("theorem", ["", "theorem mathd_1 : ∀ n : ℕ, n = n\n  | 0 => rfl\n"])
def test_a_file_of_lean_without_a_statement_is_refused_by_its_name(theorem: str, tmp_path: Path) -> None:
    (tmp_path / "Test").mkdir()
    path = tmp_path / "Test" / "mathd_1.lean"
    path.write_text(f"import Mathlib\n\n{theorem}")
    assert str(path) in refused("minif2f", tmp_path)


# What is written


def test_a_manifest_is_written_as_its_name_says_and_the_same_each_time(tmp_path: Path) -> None:
    wanted = Wanted(dataset=dataset("minif2f"))
    found = list(lines(read_copy(CASES / "miniF2F-lean4", wanted), wanted))
    for name in ("a.jsonl", "b.jsonl.gz", "c.jsonl.gz"):
        write(tmp_path / name, found)
    plain = (tmp_path / "a.jsonl").read_bytes()
    assert gzip.decompress((tmp_path / "b.jsonl.gz").read_bytes()) == plain
    assert (tmp_path / "b.jsonl.gz").read_bytes() == (tmp_path / "c.jsonl.gz").read_bytes()
    assert "ℝ" in plain.decode()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl.gz", "c.jsonl.gz"]


def test_a_compressed_data_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "minif2f.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode()))
    assert copy("minif2f", path).splits == {"test": 1}


def test_a_file_that_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("mine")
    with pytest.raises(UsageError, match="add --force"):
        require_writable(path, CASES, force=False)
    require_writable(path, CASES, force=True)


def test_the_copy_itself_is_never_replaced(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", GOOD)
    with pytest.raises(UsageError, match="this is the copy that is read"):
        require_writable(path, path, force=True)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("missing/a.jsonl", "there is no folder"),
        (".", "no regular file"),
        ("a.json", "a manifest's name ends in"),
    ],
)
def test_a_place_where_no_manifest_can_be_is_refused(name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=told):
        require_writable(tmp_path / name, CASES, force=False)


def test_a_manifest_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    with pytest.raises(UsageError, match="cannot be written"):
        write(folder / "a.jsonl", [])
    assert list(tmp_path.iterdir()) == []


def test_the_made_copies_are_not_changed_by_reading_them(tmp_path: Path) -> None:
    shutil.copytree(CASES, tmp_path / "cases")
    before = {each: each.read_bytes() for each in (tmp_path / "cases").rglob("*") if each.is_file()}
    for word, place, system, _ in COPIES:
        copy(word, tmp_path / "cases" / place, system)
    assert {each: each.read_bytes() for each in (tmp_path / "cases").rglob("*") if each.is_file()} == before


def test_every_benchmark_has_a_row_in_the_documents() -> None:
    text = (Path(__file__).parents[2] / "docs" / "use" / "datasets.md").read_text()
    for each in DATASETS.values():
        assert re.search(rf"^\| `{each.word}` \| {each.title}", text, re.MULTILINE)
    for field in ("sample", "source", "split", "group", "answer", "open_answer", "label_mended"):
        assert f"`{field}`" in text
