"""Declarations of compiled modules, found by parts of their names, and programs that show their types."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from farm_workers.audit import listing

from farm.agents import declared
from farm.client import Message, Position, Result

REAL = Path(__file__).with_name("olean") / "Real.olean"
LINES = ["Nat.add_comm\ttheorem\tCore", "add\tdefinition\tCore", "Int.Add\tinductive\tOther"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "library" / "A").mkdir(parents=True)
    shutil.copy(REAL, tmp_path / "library" / "A" / "Real.olean")
    return tmp_path / "library"


def asked(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, object]:
    listing.main(list(map(str, words)))
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_short_names_come_first_and_case_does_not_matter() -> None:
    assert listing.found(LINES, ["ADD"], 2) == (3, [LINES[1], LINES[2]])
    assert listing.found(LINES, ["comm", "nat"], 2) == (1, [LINES[0]])
    assert listing.found(LINES, ["theorem"], 2) == (0, [])


def test_the_constants_of_a_module_are_listed_with_kind_and_module(root: Path) -> None:
    listed = list(listing.listed([root, root]))
    assert listed
    assert {module for _, _, module in listed} == {"A.Real"}
    assert len({name for name, _, _ in listed}) == len(listed)
    assert not any("_" in {part[:1] for part in name.split(".")} for name, _, _ in listed)


def test_a_list_is_kept_and_read_again(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept" / "list.tsv"
    name = next(listing.listed([root]))[0]
    words = ("--kept", kept, "--most", 1, f"--word={name}", root)
    first = asked(capsys, *words)
    assert first["declarations"]
    shutil.rmtree(root)
    assert asked(capsys, *words) == first
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_a_module_in_another_format_is_left_out_and_named(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "Broken.olean").write_bytes(b"no module")
    assert {module for _, _, module in listing.listed([root])} == {"A.Real"}
    assert capsys.readouterr().err.startswith("Broken is left out: no header")


@pytest.mark.parametrize("name", ["a", "Nat.add_comm", "«term_↔_»", "a.«b c».d'", "αβ₁.x!"])
def test_a_name_is_one(name: str) -> None:
    assert declared.is_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a b",
        "a\nb",
        "«a\n»",
        "a.",
        ".a",
        "a..b",
        "1",
        "a.1",
        "a--",
        "(a)",
        "@a",
        "«a",
        "#check",
        "a" * 501,
    ],
)
def test_another_text_is_no_name(name: str) -> None:
    assert not declared.is_name(name)


def test_answers_belong_to_the_commands_on_their_lines() -> None:
    header = "import A\n\nopen B\n\n"
    assert declared.program(header, ["#check a", "#check b"]) == "import A\n\nopen B\n#check a\n#check b\n"
    messages = [
        Message(severity="information", text="B.x", line=3),
        Message(severity="error", text="Unknown identifier `a`", line=1, program=Position(line=4)),
        Message(severity="information", text="b : " + "B" * 5000, line=5),
    ]
    first, second = declared.answers(header, 2, Result(index=0, messages=tuple(messages)))
    assert first is None
    assert second is not None
    assert second.startswith("b : B")
    assert second.endswith("B…")
    assert len(second) < 2100
