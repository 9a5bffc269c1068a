"""Round trip over public benchmarks: a statement repeated with a body gives header, statement and body.

The statements are read from the folder in FARM_TEST_DATA, by default ``shared/data`` beside the repository.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.manifest import Entry
from farm.program import AssemblyOptions, assemble

DATA = Path(os.environ.get("FARM_TEST_DATA") or Path(__file__).parents[3] / "shared" / "data")
FILES = {
    "minif2f-test.jsonl": 244,
    "minif2f-valid.jsonl": 244,
    "proofnet-valid.jsonl": 185,
    "putnam-test.jsonl": 660,
}
BODY = "  norm_num [h₀]\n  exact this"
SHAPES = {
    "in a fence": "Proof:\n```lean4\n{}\n```\nDone.",
    "in a fence that never closes": "```lean\n{}",
    "in a tilde fence": "~~~ Lean4\n{}\n~~~\n",
    "with a closing fence only": "{}\n```\n",
    "without a fence": "{}",
}


def entries(name: str) -> Iterator[Entry]:
    path = DATA / name
    if not path.exists():
        missing = f"no {path}: set FARM_TEST_DATA to the folder with the benchmarks' statements"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            fields = json.loads(line)
            yield Entry(
                path=name,
                line=number,
                name=fields["name"],
                header=fields["header"],
                formal_statement=fields["formal_statement"],
                generation="",
                predicted_proof="",
            )


def program(entry: Entry, generation: str) -> str:
    whole = Entry(
        path=entry.path,
        line=entry.line,
        name=entry.name,
        header=entry.header,
        formal_statement=entry.formal_statement,
        generation=generation,
        predicted_proof="",
    )
    return assemble(whole, AssemblyOptions()).text


def body(entry: Entry) -> str:
    return BODY if entry.formal_statement.rstrip().endswith("by") else " by\n" + BODY


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("with_header", [False, True])
def test_a_repeated_statement_with_a_body_comes_out_whole(name: str, shape: str, with_header: bool) -> None:
    wrong, number = [], 0
    for number, entry in enumerate(entries(name), 1):  # noqa: B007 (the count is asserted below)
        expected = entry.header + entry.formal_statement + body(entry)
        answer = SHAPES[shape].format(expected if with_header else expected[len(entry.header) :])
        if program(entry, answer) != expected:
            wrong.append(entry.name)
    assert wrong == []
    assert number == FILES[name]


@pytest.mark.parametrize("name", FILES)
def test_tactics_alone_are_joined_to_every_statement(name: str) -> None:
    for entry in entries(name):
        joint = "" if entry.formal_statement.rstrip().endswith("by") else " by\n"
        expected = entry.header + entry.formal_statement + joint + BODY
        assert program(entry, BODY.lstrip() + "\n```") == expected


@pytest.mark.parametrize("name", FILES)
def test_every_statement_is_known_with_its_whitespace_changed(name: str) -> None:
    for entry in entries(name):
        reflowed = "\n   ".join(entry.formal_statement.split())
        answer = f"```lean4\n{reflowed}{'' if reflowed.endswith('by') else ' by'}\n{BODY}\n```"
        expected = entry.header + entry.formal_statement + body(entry)
        assert program(entry, answer).split() == expected.split()
