"""Theorems of Lean files as lines: what is extracted, that it is proved again, and what hostile files do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.extracted import NoExtract

from farm.datasets.theorems import Extract, SourceFile, described
from farm.limits import Limits
from tests.acceptance.test_hostile_sessions import STATEMENT, cheating
from tests.commands import Command
from tests.processes import PATIENCE, eventually
from tests.unit.test_history import FIRST, SECOND, git

ROOT = Path(__file__).parents[2]
#: A file with a theorem that is left open, and one that rests on the file's own axiom.
ODD = """prelude
import Core
def unknown : Nat := sorry
theorem left_open : 1 = 2 := sorry
theorem fine (p : Prop) (h : p) : p := h
axiom ax : False
theorem rests : False := ax
private theorem own (p : Prop) (h : p) : p := fine p h
theorem uses (p : Prop) (h : p) : p := own p h
"""
LIMITS = Limits(wall_seconds=30 * PATIENCE, cpu_seconds=60 * PATIENCE)
FILE = """prelude
import Core

namespace Shop
variable (p q : Prop)

/-- Both. Naïve “text”. -/
@[simp] theorem both (hp : p) (hq : q) : p ∧ q := by
  constructor
  · exact hp
  · exact hq

private theorem hidden (hp : p) : p := hp

open Nat in
theorem same : ∀ n : Nat, n = n
  | _ => rfl

protected theorem twice (hp : p) : p ∧ p := both p p hp (hidden p hp)

set_option maxRecDepth 1000 in
theorem optional : True := .intro

theorem Ünï (α : Prop) (h : α) : α := by exact h
"""


def extracted(checker: Checker, core: LeanEnvironment, text: str, **wanted: Any) -> Extract:
    source = SourceFile(path="Shop/One.lean", module="Shop.One", text=text)
    return checker.extract(source, core, limits=LIMITS, most=wanted.pop("most", 100), **wanted)


def test_each_theorem_of_a_file_is_described(checker: Checker, core: LeanEnvironment) -> None:
    found = extracted(checker, core, FILE, states=True, costs=True)
    theorems = {each.user_name: each for each in found.theorems}
    assert list(theorems) == [
        "Shop.both",
        "Shop.hidden",
        "Shop.same",
        "Shop.twice",
        "Shop.optional",
        "Shop.Ünï",
    ]
    assert found.left_out == ()
    both, twice = theorems["Shop.both"], theorems["Shop.twice"]
    assert FILE.encode()[both.proof : both.end].decode().startswith(":= by\n  constructor")
    assert (both.doc, both.attributes) == ("/-- Both. Naïve “text”. -/", "@[simp]")
    assert both.type == "∀ (p q : Prop), p → q → p ∧ q"
    assert (both.step_count, both.depth, dict(both.histogram)) == (
        5,
        2,
        {"constructor": 1, "·": 2, "exact": 2},
    )
    assert both.steps is not None
    assert both.goals is not None
    first = both.steps[0]
    assert [both.goals[each] for each in first.before or ()] == ["p q : Prop\nhp : p\nhq : q\n⊢ p ∧ q"]
    assert len(first.after or ()) == 2
    assert both.steps[-1].after == ()
    assert both.cost is not None
    assert both.cost[0] > 0 < both.cost[1]
    assert theorems["Shop.hidden"].is_private
    assert [each.rpartition(".")[2] for each in twice.own] == ["both", "hidden"]
    assert twice.axioms == ()


@pytest.mark.parametrize("returns", [1, 3])
def test_places_are_those_of_the_file_where_lines_end_with_carriage_returns(
    checker: Checker, core: LeanEnvironment, returns: int
) -> None:
    lines = FILE.split("\n")
    ends = ("\n" if number % returns else "\r\n" for number in range(len(lines)))
    text = "".join(line + end for line, end in zip(lines, ends, strict=True))
    source = SourceFile.of(PurePosixPath("Shop/One.lean"), text)
    found = checker.extract(source, core, limits=LIMITS, most=100, states=True)
    assert len(found.theorems) == 6
    for each in found.theorems:
        line = described(source, each)
        places = [(line["start_byte"], line["end_byte"], source.part(each.start, each.end))]
        places += [(step["start"], step["end"], step["tactic"]) for step in cast(Any, line["steps"])]
        for start, end, words in cast(Any, places):
            assert text.encode()[start:end].decode().replace("\r\n", "\n") == words


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("theorem bad : False := by sorry\ntheorem good : True := .intro", {"bad": "sorry"}),
        (
            "theorem bad : False := nope\ntheorem good : True := .intro",
            {"bad": "error", "good": "error above"},
        ),
        ("theorem a : := by\ntheorem good : True := .intro", {"good": "error above"}),
        ("mutual\ntheorem a : True := .intro\ntheorem b : True := .intro\nend", {"a": "part of a command"}),
        ("structure S : Prop where\n  one : True", {"S.one": "part of a command"}),
        ("axiom ax : False\ntheorem good : False := ax", {}),
    ],
)
def test_what_can_be_no_line_is_left_out_with_its_reason(
    checker: Checker, core: LeanEnvironment, text: str, left_out: dict[str, str]
) -> None:
    for costs in (False, True):
        found = extracted(checker, core, f"prelude\nimport Core\n{text}\n", costs=costs)
        said = {each.name: each.why for each in found.left_out}
        assert {name: said.get(name) for name in left_out} == left_out
        assert {each.user_name for each in found.theorems} <= {"good"}


def test_no_more_theorems_are_described_than_are_wanted(checker: Checker, core: LeanEnvironment) -> None:
    found = extracted(checker, core, FILE, most=2)
    assert [each.user_name for each in found.theorems] == ["Shop.both", "Shop.hidden"]
    assert {each.why for each in found.left_out} == {"most"}


#: What a shell does that a tactic of the file starts.
HOSTILE = {
    "nothing": "true",
    "writes the answer": """printf '{"exited": false}\\n' > extracted.jsonl""",
    "replaces the answer": """rm -f extracted.jsonl; printf '{"exited": false}\\n' > extracted.jsonl""",
    "makes it a link": "rm -f extracted.jsonl; ln -s /etc/passwd extracted.jsonl",
    "kills its process": "kill -9 $PPID",
    "writes to every file": """for n in 1 2 3 4 5 6; do printf '{"name": "forged"}\\n' >&$n; done""",
}


def hostile(words: str) -> str:
    whole = "theorem t (p : Prop) (h : p) : p := by\n  cheat!!\n  exact h\ntheorem good : True := .intro\n"
    return cheating(words, wait_ms=100).replace(f"{STATEMENT} := by sorry\n", whole)


@pytest.mark.parametrize("act", HOSTILE.values(), ids=HOSTILE)
def test_a_file_whose_code_acts_forges_no_line(checker: Checker, core: LeanEnvironment, act: str) -> None:
    text = hostile(act)
    assert "cheat!!" in text
    try:
        found = extracted(checker, core, text)
    except NoExtract:
        assert act != HOSTILE["nothing"]  # without the act the file is extracted
        return
    if act == HOSTILE["nothing"]:
        assert {each.user_name for each in found.theorems} == {"t", "good"}
    assert {each.user_name for each in found.theorems} <= {"t", "good"}


def project(folder: Path, files: int) -> Path:
    """Write a project of Lean files, each like `FILE` under a namespace of its own."""
    for number in range(files):
        place = folder / f"Part{number % 3}" / f"File{number}.lean"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(FILE.replace("Shop", f"Shop{number}"), encoding="utf-8")
    return folder


#: So many files has a project, and so many theorems.
FILES, THEOREMS = 8, 48


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project(tmp_path_factory.mktemp("project"), FILES)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.newcomer
def test_every_line_of_a_project_is_proved_again(farm: Command, many: Path, tmp_path: Path) -> None:
    output = tmp_path / "lines.jsonl"
    told = farm.json("extract", many, "-o", output, "--check")
    assert (told["files"], told["lines"], told["unproved"], told["failed"]) == (FILES, THEOREMS, [], [])
    found = lines(output)
    assert {each["proof_status"] for each in found} == {"completed"}
    assert len({(each["file"], each["name"]) for each in found}) == THEOREMS
    assert {each["module"] for each in found if each["name"].startswith("Shop0.")} == {"Part0.File0"}


#: A file that does not compile with `sorry` for the proof of its first theorem.
COMPUTED = """prelude
import Core
def f (n : Nat) : Nat := n
@[simp] theorem computes (n : Nat) : f n = n := rfl
def g : {m : Nat // f m = m} := ⟨3, by dsimp⟩
theorem one : 1 = 1 := rfl
theorem two : 2 = 2 := rfl
"""
#: A file that makes errors of warnings, also of that about `sorry`.
STRICT = """prelude
import Core
set_option warningAsError true
theorem three : 3 = 3 := rfl
theorem four (p : Prop) (h : p) : p := by
  exact h
"""


def test_a_file_is_judged_at_once_as_its_lines_are_one_by_one(
    farm: Command, many: Path, tmp_path: Path
) -> None:
    folder, output = tmp_path / "project", tmp_path / "lines.jsonl"
    project(folder, 2)
    (folder / "Odd.lean").write_text(ODD, encoding="utf-8")
    (folder / "Computed.lean").write_text(COMPUTED, encoding="utf-8")
    (folder / "Strict.lean").write_text(STRICT, encoding="utf-8")
    told = farm.json("extract", folder, "-o", output, "--check", "--check-files", status=4)
    assert [each["name"] for each in told["unproved"]] == [each["name"] for each in told["not_in_file"]]
    assert [each["name"] for each in told["not_in_file"]] == ["rests"]
    assert "rests on an axiom" in told["not_in_file"][0]["why"]
    assert all((each["proof_status"] == "completed") is each["proved_in_file"] for each in lines(output))
    assert farm.json("extract", many, "-o", output, "--force", "--check-files")["not_in_file"] == []


#: Files whose statements cannot be judged: there is no `sorry`, and `sorry` is something else.
UNJUDGED = {
    "no sorry": "prelude\ninductive T : Prop where\n  | i : T\ntheorem one : T := T.i\n",
    "another sorry": """prelude
import Core
macro_rules | `(sorry) => `(trivial)
theorem two : True := trivial
""",
}


def test_a_theorem_that_cannot_be_judged_is_not_called_unproved(farm: Command, tmp_path: Path) -> None:
    for number, text in enumerate(UNJUDGED.values()):
        (tmp_path / f"File{number}.lean").write_text(text)
    output = tmp_path / "lines.jsonl"
    told = farm.json("extract", tmp_path, "-o", output, "--check", "--check-files", status=3)
    assert (told["unproved"], told["not_in_file"]) == ([], [])
    assert [(each["name"], bool(each["why"])) for each in told["unjudged"]] == [("one", True), ("two", True)]
    assert (told["theorems"], told["proved"], told["proved_in_file"]) == (2, 0, 0)
    assert [(line["proof_status"], line["proved_in_file"]) for line in lines(output)] == [
        ("judge_error", None)
    ] * 2


def test_a_file_of_more_theorems_than_one_audit_lists_is_judged_in_parts(
    farm: Command, tmp_path: Path
) -> None:
    names = [f"t{number}" for number in range(620)]
    text = "".join(f"theorem {name} (p : Prop) (h : p) : p := h\n" for name in names)
    last = "axiom ax : False\ntheorem bad : False := ax\n"
    (tmp_path / "Long.lean").write_text(f"prelude\nimport Core\n{text}{last}", encoding="utf-8")
    output = tmp_path / "lines.jsonl"
    told = farm.json("extract", tmp_path / "Long.lean", "-o", output, "--check-files", status=4)
    assert [each["name"] for each in told["not_in_file"]] == ["bad"]
    assert [each["name"] for each in lines(output) if each["proved_in_file"]] == names


def test_an_extraction_that_is_killed_is_resumed_without_a_line_twice_or_missing(
    farm: Command, many: Path, tmp_path: Path
) -> None:
    whole, output = tmp_path / "whole.jsonl", tmp_path / "lines.jsonl"
    assert farm("extract", many, "-o", whole).returncode == 0
    journal = tmp_path / "lines.jsonl.part"
    with farm.started(tmp_path / "killed", "extract", many, "-o", output) as killed:
        eventually(lambda: journal.exists() and journal.stat().st_size > 0)
        os.kill(killed.process.pid, signal.SIGKILL)
    assert not output.exists()
    with journal.open("ab") as file:
        file.write(b'{"file": "torn')
    refused = farm("extract", many, "-o", output)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    told = farm.json("extract", many, "-o", output, "--resume")
    assert 0 < told["resumed"] <= FILES
    assert told["lines"] == THEOREMS
    assert [each["name"] for each in lines(output)] == [each["name"] for each in lines(whole)]
    assert not journal.exists()


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository: an old file with an old and a new theorem, a new file, and an uncommitted one."""
    folder = tmp_path_factory.mktemp("dated")
    old = "prelude\nimport Core\ntheorem old : True := trivial\n"
    (folder / "Old.lean").write_text(old)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first", at=FIRST)
    (folder / "Old.lean").write_text(f"{old}theorem young : True := trivial\n")
    (folder / "New.lean").write_text(old.replace("old", "new"))
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "second", at=SECOND)
    (folder / "Uncommitted.lean").write_text(old.replace("old", "uncommitted"))
    return folder


def test_a_split_by_date_has_the_sides_and_levels_of_theorems(
    farm: Command, dated: Path, tmp_path: Path
) -> None:
    day = "2024-06-01"
    sides = {"old": ("train", None), "young": ("test", "theorem"), "new": ("test", "context")}
    output = tmp_path / "lines.jsonl"
    told = farm.json("extract", dated, "-o", output, "--split", day)
    assert {each["name"]: (each["split"], each["level"]) for each in lines(output)} == sides
    assert [(each["name"], each["why"]) for each in told["left_out"]] == [("uncommitted", "no date")]


def test_dates_are_those_of_the_commits_and_since_leaves_out_older_ones(
    farm: Command, dated: Path, tmp_path: Path
) -> None:
    output = tmp_path / "lines.jsonl"
    farm.json("extract", dated, "-o", output, "--dates")
    made = {each["name"]: each.get("theorem_created", {}).get("date", "")[:10] for each in lines(output)}
    assert made == {"new": "2025-06-15", "old": "2023-11-14", "young": "2025-06-15", "uncommitted": ""}
    told = farm.json(
        "extract", dated, "-o", output, "--force", "--since", "2024-06-01", "--split", "2025-12-01"
    )
    assert {each["name"]: each["split"] for each in lines(output)} == {"new": "train", "young": "train"}
    assert {each["name"]: each["why"] for each in told["left_out"]} == {
        "old": "older",
        "uncommitted": "no date",
    }


def test_premises_of_the_repository_are_those_that_its_other_files_declare(
    farm: Command, tmp_path: Path
) -> None:
    folder, output = project(tmp_path / "project", 1), tmp_path / "lines.jsonl"
    told = {}
    for names in (["Core.lean"], []):
        for name in names:  # the module that the files import
            (folder / name).write_text("prelude\n")
        farm.json("extract", folder, "-o", output, "--force")
        told[bool(names)] = {each["name"]: each["premises"] for each in lines(output)}
        farm.json("extract", folder, "-o", output, "--force", "--format", "minictx")
        numbers = [each["dependencyMetadata"]["numRepositoryPremises"] for each in lines(output)]
        assert numbers == [len(each["repository"]) for each in told[bool(names)].values()]
        for name in names:
            (folder / name).unlink()
    both, twice = told[True]["Shop0.both"], told[True]["Shop0.twice"]
    assert both["repository"] == both["imported"] == ["And.intro"]
    assert (twice["repository"], len(twice["local"])) == ([], 2)
    assert {len(each["repository"]) for each in told[False].values()} == {0}


FORMATS = {
    "ntp-toolkit": {"file", "module", "declName", "decl", "proof", "srcUpToDecl"},
    "minictx": {"srcContext", "theoremStatement", "theoremName", "proofMetadata", "dependencyMetadata"},
    "leagent": {"name", "kind", "body", "proof_script", "premises", "axioms", "tactic_histogram"},
}


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield project(tmp_path_factory.mktemp("one"), 1)


@pytest.mark.parametrize(("name", "fields"), FORMATS.items(), ids=FORMATS)
def test_other_formats_have_the_fields_of_their_tools(
    farm: Command, one: Path, tmp_path: Path, name: str, fields: set[str]
) -> None:
    output = tmp_path / "lines.jsonl"
    assert farm("extract", one, "-o", output, "--format", name).returncode == 0
    assert all(fields <= set(each) for each in lines(output))


BAD = {
    "no such path": (["/no/such"], "there is no such file or folder"),
    "no such module": ([".", "--module", "No.*"], "no Lean file whose module is"),
    "no such format": ([".", "--format", "csv"], "choose one of farm, ntp-toolkit, minictx, leagent"),
    "another ending": ([".", "-o", "out.json"], "ends in .jsonl"),
}


@pytest.mark.parametrize(("words", "said"), BAD.values(), ids=BAD)
def test_bad_usage_is_said_and_nothing_is_written(
    farm: Command, tmp_path: Path, words: list[str], said: str
) -> None:
    given = [str(tmp_path) if each == "." else each for each in words]
    output = [] if "-o" in words else ["-o", str(tmp_path / "out.jsonl")]
    told = farm("extract", *given, *output)
    assert told.returncode == 2
    assert said in told.stderr
    assert list(tmp_path.glob("out*")) == []


def commands_of_the_page() -> list[str]:
    page = (ROOT / "docs" / "use" / "extract.md").read_text()
    part = page.partition("in six commands\n")[2].partition("\nThe second")[0]
    return [line.strip() for line in part.splitlines() if line.strip()]


def test_the_six_commands_of_the_page_lead_from_a_repository_to_a_page(
    farm: Command, one: Path, tmp_path: Path
) -> None:
    given = commands_of_the_page()
    assert len(given) == 6
    (tmp_path / "Shop").symlink_to(one)
    shell = {**farm.environment, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    run = ""
    for command in given:
        words = ["sh", "-c", command.replace("RUN", run)]
        ended = subprocess.run(words, cwd=tmp_path, env=shell, capture_output=True, text=True)
        assert ended.returncode == 0, (command, ended.stderr)
        if " submit " in command:
            assert {each["proof_status"] for each in lines(tmp_path / "shop.jsonl")} == {"completed"}
            run = farm.json("report")["runs"][0]["run"]
    board = json.loads((tmp_path / "board" / "leaderboard.json").read_text())
    assert [(each["model"], each["solved"]) for each in board["rows"]] == [("the authors", 6)]
    assert "100.0" in (tmp_path / "pass.tex").read_text()
    assert (tmp_path / "report.html").exists()


def test_a_file_that_is_no_text_is_named_and_the_others_are_extracted(farm: Command, tmp_path: Path) -> None:
    folder = project(tmp_path / "project", 2)
    (folder / "Bad.lean").write_bytes(b"theorem \xff")
    output = tmp_path / "lines.jsonl"
    told = farm.json("extract", folder, "-o", output, status=3)
    assert told["failed"] == [{"file": "Bad.lean", "why": "byte 8 is not UTF-8; save the file as UTF-8"}]
    assert len(lines(output)) == told["lines"] == 12
