"""Public benchmarks as they are published: every problem is read, and no statement is taken for another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from farm.datasets.catalogue import dataset
from farm.datasets.making import Wanted, lines, read_copy
from tests.published import FILES, file
from tests.unit.test_datasets import assert_in_programs, assert_one_theorem, copy, made

pytestmark = pytest.mark.whole


def test_every_statement_is_in_its_program_and_its_challenge() -> None:
    copies = [copy(word, file(name)) for name, (word, _) in FILES.items()]
    assert_in_programs(copies)
    assert_one_theorem(copies)


@pytest.mark.parametrize("name", FILES)
def test_a_benchmark_as_it_is_published_gives_all_its_problems_without_a_word_on_their_number(
    name: str,
) -> None:
    word, splits = FILES[name]
    found = copy(word, file(name))
    assert found.splits == splits
    assert found.left_out == ()
    assert not any("published" in note for note in found.notes)


@pytest.mark.parametrize("name", FILES)
def test_the_lines_say_what_the_benchmark_said(name: str) -> None:
    before = [json.loads(line) for line in file(name).read_text().splitlines()]
    wanted = Wanted(dataset=dataset(FILES[name][0]))
    after = list(lines(read_copy(file(name), wanted), wanted))
    for old, new in zip(before, after, strict=True):
        for field in ("name", "split", "header", "formal_statement", "informal_prefix"):
            assert new.get(field) == old[field]
        assert "generation" not in new


def written_as_file(fields: dict[str, str]) -> str:
    told = fields["informal_prefix"]
    statement = fields["formal_statement"].rstrip()
    return f"{fields['header']}{told}{statement}{'' if statement.endswith('by') else ' by'}\n  sorry\n"


def same_text(found: dict[str, object], fields: dict[str, str]) -> bool:
    bare = fields["formal_statement"].rstrip().removesuffix("by").rstrip()
    before = fields["header"] + fields["informal_prefix"]
    return f"{found['header']}{found['formal_statement']}" == before + bare


@pytest.mark.parametrize(
    ("name", "word", "folder"),
    [
        ("minif2f-test.jsonl", "minif2f", "MiniF2F/Test"),
        ("minif2f-valid.jsonl", "minif2f", "MiniF2F/Valid"),
        ("putnam-test.jsonl", "putnam-bench", "lean4/src"),
    ],
)
def test_published_problems_in_a_file_each_give_the_same_statements(
    name: str, word: str, folder: str, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in file(name).read_text().splitlines()]
    (tmp_path / folder).mkdir(parents=True)
    for row in rows:
        (tmp_path / folder / f"{row['name']}.lean").write_text(written_as_file(row))
    found = made(word, tmp_path)
    # One has its solution open, with the answer in a comment, which takes its place.
    odd = [row["name"] for row in rows if not same_text(found[row["name"]], row)]
    assert odd == (["putnam_1968_b1"] if word == "putnam-bench" else [])
    assert len(found) == len(rows)


@pytest.mark.parametrize("name", ["minif2f-test.jsonl", "minif2f-valid.jsonl"])
def test_published_problems_in_one_file_give_the_same_statements(name: str, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in file(name).read_text().splitlines()]
    header = rows[0]["header"]
    path = tmp_path / f"{rows[0]['split'].capitalize()}.lean"
    path.write_text(header + "\n".join(written_as_file({**row, "header": ""}) for row in rows))
    found = made("minif2f", tmp_path)
    assert list(found) == [row["name"] for row in rows]
    other = [row["name"] for row in rows if not same_text(found[row["name"]], row)]
    assert other == []


def test_problems_of_one_name_are_told_apart_by_their_group() -> None:
    found = copy("proofnet", file("proofnet-valid.jsonl"))
    groups = [each.group or each.name for each in found.problems]
    assert len(set(groups)) == len(groups) == 185
    assert sum(each.group is not None for each in found.problems) == 5
