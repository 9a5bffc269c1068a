"""A statement from which no program can be made is the fault of its line: all other lines are judged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from farm.datasets.catalogue import dataset
from farm.datasets.making import Wanted, lines, read_copy, write
from farm.judging.tiers import Tier
from farm.kinds import Kind
from farm.manifest.lines import opened
from farm.runs.prepare.manifests import preparing
from farm.store.environments import ServedEnvironment
from tests.binary_rows import OPTIONS, Row, rows_of
from tests.unit.test_datasets import CASES, COPIES, jsonl

#: A good statement of each system, and fields that make a line of it bad.
GOOD = {Kind.METAMATH: "good $p |- t = t $= ? $.", Kind.HOL_LIGHT: "`1 + 1 = 2`"}
BAD: list[tuple[Kind, dict[str, object]]] = [
    (Kind.METAMATH, {"formal_statement": "bad $a |- t = t $."}),
    (Kind.METAMATH, {"formal_statement": "bad $p |- t = t $= ? $. $."}),
    (Kind.METAMATH, {"formal_statement": "t $p |- t = t $= ? $."}),
    (Kind.METAMATH, {"formal_statement": "bad $p |- é $= ? $."}),
    (Kind.METAMATH, {"formal_statement": "theorem a : 1 = 1 := by"}),
    (Kind.METAMATH, {"formal_statement": ""}),
    (Kind.METAMATH, {"formal_statement": "\0"}),
    (Kind.METAMATH, {"header": "import Mathlib"}),
    (Kind.METAMATH, {"context": "$[ set.mm $]"}),
    (Kind.HOL_LIGHT, {"formal_statement": "!x. x = x"}),
    (Kind.HOL_LIGHT, {"formal_statement": "`T` `F`"}),
    (Kind.HOL_LIGHT, {"formal_statement": "` `"}),
    (Kind.HOL_LIGHT, {"formal_statement": ""}),
    (Kind.HOL_LIGHT, {"header": "needs 1"}),
]


def taken(path: Path, kind: str = Kind.LEAN) -> list[Row]:
    """Return the rows of a manifest that is submitted to an environment of a kind."""
    served = ServedEnvironment(
        name="core", digest="0" * 64, toolchain="1", silent_seconds=0.0, tiers=tuple(Tier), kind=kind
    )
    with preparing(OPTIONS, [served], processes=0) as prepare, opened(path) as found:
        return rows_of(prepare(found, 0))


@pytest.mark.parametrize(("kind", "bad"), BAD)
def test_one_bad_statement_is_bad_challenge_and_the_others_are_judged(
    kind: Kind, bad: dict[str, object], tmp_path: Path
) -> None:
    good = {"formal_statement": GOOD[kind], "generation": "x"}
    before, wrong, behind = taken(jsonl(tmp_path / "m.jsonl", good, {**good, **bad}, good), kind)
    assert before["verdict"] is behind["verdict"] is None
    assert (wrong["verdict"], wrong["reason"]) == ("judge_error", "bad_challenge")
    (field,) = bad
    assert f"The {field} cannot be used: " in str(wrong["detail"])
    assert "Remedy: " in str(wrong["detail"])
    assert wrong["identity"] is None


def test_a_program_that_a_line_brings_is_the_submissions_own_fault(tmp_path: Path) -> None:
    (row,) = taken(jsonl(tmp_path / "m.jsonl", {"predicted_proof": "x $a y $."}), Kind.METAMATH)
    assert (row["verdict"], row["reason"], row["challenge_sha256"]) == ("rejected", "invalid_text", None)


@pytest.mark.parametrize(("word", "place", "system"), [each[:3] for each in COPIES])
def test_what_is_written_of_a_benchmark_is_taken(word: str, place: str, system: str, tmp_path: Path) -> None:
    wanted = Wanted(dataset=dataset(word), system=system)
    made = [{**each, "generation": "x"} for each in lines(read_copy(CASES / place, wanted), wanted)]
    path = tmp_path / "made.jsonl"
    write(path, made)
    rows = taken(path, system)
    assert len(rows) == len(made)
    assert [row["detail"] for row in rows if row["verdict"]] == []


#: Blocks as copies have them that nobody would write again: the word of each note stands twice.
ODD: Mapping[str, str] = {
    "a note with its marks taken for ends": (
        "$(\n @{\n  a.1 @e |- ( ph -> X e. NN ) $@\n  $@ (Contributed by N. N., 1-Jan-2021.) $@\n"
        "  a @p |- ( ph -> X e. RR ) @=\n  ? @.\n @}\n$)\n"
    ),
    "a note as it should be": "$(\n @{\n  @( A note. @)\n  a @p |- t = t @= ? @.\n @}\n$)\n",
    "two notes": "$( @{ $@ one $@ $@ two $@ a @p |- t = t @= ? @. @} $)",
}


@pytest.mark.parametrize("name", ODD)
def test_notes_in_a_wrapped_block_are_no_statements(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "metamath" / "test"
    folder.mkdir(parents=True)
    (folder / "mathd-a.mm").write_text(ODD[name])
    wanted = Wanted(dataset=dataset("minif2f"), system="metamath")
    (line,) = lines(read_copy(tmp_path, wanted), wanted)
    (row,) = taken(jsonl(tmp_path / "m.jsonl", {**line, "generation": "x"}), Kind.METAMATH)
    assert row["verdict"] is None, row["detail"]
    assert "Contributed" not in json.dumps(line)


def test_a_statement_that_submit_will_blame_is_told_when_the_manifest_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "metamath" / "test"
    folder.mkdir(parents=True)
    (folder / "mathd-a.mm").write_text("${ mathd-a.1 $e |- ph $. $. mathd-a $p |- ph $= ? $. $}")
    found = read_copy(tmp_path, Wanted(dataset=dataset("minif2f"), system="metamath"))
    assert len(found.problems) == 1
    assert any("mathd-a.mm: its lines will be judged bad_challenge" in note for note in found.notes)
