"""Long lines: no step in submitter or service takes more work than the line is long."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from farm.assembly.challenge import challenge_to
from farm.assembly.program import AssemblyOptions, assemble
from farm.manifest.entry import Entry
from farm.manifest.splice import changed
from farm.runs.batch import Items
from farm.runs.children.pieces import ManifestPiece
from farm.runs.prepare.blocks import preparer
from farm.runs.writeback.fields import Marking, fields
from farm.service.json_body import parsed
from farm.service.requests import Batch, Item
from tests.binary_rows import CORE, OPTIONS
from tests.counted import assert_linear
from tests.unit.test_answers import judged, verdict

CHARACTERS, PART = 5_000_000, 4000
STATEMENT = "theorem t (p q : Prop) (h : p ∧ q) : q ∧ p := by\n"
PROOF = f"{STATEMENT}  exact ⟨h.2, h.1⟩\n"
UNITS = {
    "open in": "open A in\n",
    "theorems": "theorem a : 1 = 1 := by sorry\n",
    "theorems of the name": PROOF,
    "definitions": "def a := 1\n",
    "one line": "x",
    "one line of words": "x sorry ",
    "open brackets": "(",
    "nested comments": "/-",
    "comments": "-- sorry\n",
    "doc comments": "/-- x -/\n",
    "strings": '"a" ',
    "strings and names": 'x"a"',
    "strings on lines": '"a"\n',
    "characters": "'a' \"b\" ",
    "quoted names": '«a» "b" ',
    "raw strings": 'r"a" ',
    "raw strings with marks": 'r#"a"# ',
    "interpolated strings": 's!"a{b}c" ',
    "closed comments": '/-a-/ "b" ',
    "comments that nest": '/-/-/-/-/-/-a-/-/-/-/-/-/"b"',
    "line comments": "--\n",
    "comments before theorems": "/--/theorem a\n",
    "opaque text of all kinds": '"a" \'b\' «c» /-d-/ r"e" s!"f{g}" --h\n',
    "fences": "```\n",
    "blocks": "```lean4\nx\n```\n",
    "blocks with the target": f"```lean4\n{STATEMENT}  sorry\n```\n",
    "namespaces": "namespace A\n",
    "assignments": ":= ",
    "equations": "\n| x",
    "bound variables": "let x := 1\n",
}
#: Where the text stands: what the fields of the line are.
PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "before the target": lambda text: line(generation=f"```lean4\n{text}\n{PROOF}```"),
    "as a term": lambda text: line(formal_statement=STATEMENT.replace(" by\n", ""), generation=text),
    "in the statement": lambda text: line(formal_statement=f"{text}\n{STATEMENT}"),
    "behind the statement": lambda text: line(formal_statement=f"{STATEMENT}  sorry\n{text}"),
    "in both": lambda text: line(
        formal_statement=f"{text}\n{STATEMENT}", generation=f"```lean4\n{text}\n{PROOF}```"
    ),
}
MESSAGES = [{"severity": "error", "text": "no", "line": at * 100, "column": 0} for at in range(1, 50)]


def line(**more: str) -> dict[str, Any]:
    usual = {"header": "import Mathlib\n\n", "formal_statement": STATEMENT, "generation": PROOF}
    return {"name": "t", **usual, **more}


def entry(said: dict[str, Any]) -> Entry:
    return Entry(path="", line=1, predicted_proof="", **said)


def steps(said: dict[str, Any]) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what submitter and service do with a line."""
    text = json.dumps(said, ensure_ascii=False)
    yield (
        "submit",
        partial(
            preparer(OPTIONS, {"core": CORE}), ManifestPiece(path="", manifest=0, first=1, text=text.encode())
        ),
    )
    body = b'{"items": [' + text.encode() + b"]}"
    yield "read", lambda: Batch.model_validate(parsed(body))
    yield "prepare", partial(Items, [entry(said)], OPTIONS, [CORE])
    job, told = judged(Item(**said), verdict(*MESSAGES)), verdict(*MESSAGES)
    marking = Marking(run_id="r", profile="farm")
    yield "export", lambda: changed(text, lambda fresh: fields(job, told, fresh, marking))


@pytest.mark.parametrize("place", ["in the statement", "behind the statement", "in both"])
@pytest.mark.parametrize(
    "unit",
    [
        *("open in", "theorems", "open brackets", "blocks", "nested comments", "strings"),
        *("strings and names", "comments before theorems"),
        *("comments that nest", "opaque text of all kinds"),
    ],
)
def test_no_step_of_a_line_takes_more_work_than_its_length(unit: str, place: str) -> None:
    characters = CHARACTERS // 2 if place == "in both" else CHARACTERS
    for name in dict(steps(line())):

        def working(size: int, name: str = name) -> Callable[[], object]:
            return dict(steps(PLACES[place](UNITS[unit] * (size // len(UNITS[unit])))))[name]

        assert_linear(working, PART, timed=characters)


def assembled(said: dict[str, Any]) -> None:
    assemble(entry(said), AssemblyOptions())
    challenge_to(said["header"], said["formal_statement"])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("unit", UNITS)
def test_assembly_takes_work_that_grows_with_the_line(unit: str, place: str) -> None:
    def assembling(size: int) -> Callable[[], object]:
        return partial(assembled, PLACES[place](UNITS[unit] * (size // len(UNITS[unit]))))

    assert_linear(assembling, PART, timed=100_000)
