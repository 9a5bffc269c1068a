"""Lines that must be proved in an environment: what they show of a library, and what they cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.configured import Table
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.machine.probes import MOST_KEPT, probed

from farm.errors import FarmError, ManifestError, SettingsError
from tests.commands import Command
from tests.toolchains import toolchain

HEADER = "prelude\nimport Core\n"
RIGHT = {
    "name": "right",
    "header": HEADER,
    "formal_statement": "theorem t (p : Prop) (h : p) : p := by",
    "generation": "  exact h",
}
WRONG = {**RIGHT, "name": "wrong", "generation": "  exact gone_from_the_library"}

With = Callable[..., LeanEnvironment]


@pytest.fixture
def with_probes(core: LeanEnvironment, tmp_path: Path) -> With:
    """Name these lines as the probes of the embedded environment."""

    def made(*lines: object) -> LeanEnvironment:
        file = tmp_path / "probes.jsonl"
        file.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
        return replace(core, probes=str(file))

    return made


def test_references_are_proved_and_judged_once_for_a_digest_and_a_content(
    with_probes: With, checker: Checker, tmp_path: Path
) -> None:
    environment = with_probes(RIGHT, RIGHT)
    found = probed(environment, tmp_path, checker)
    assert found is not None
    assert (found.is_right, found.words) == (True, "all 2 probes are proved")
    (kept,) = (tmp_path / "probes").iterdir()
    kept.write_text(kept.read_text().replace('"proved": 2', '"proved": 1'))
    again = probed(environment, tmp_path, checker)
    assert again is not None
    assert again.proved == 1
    judged = probed(environment, tmp_path, checker, again=True)
    assert judged is not None
    assert judged.proved == 2
    assert probed(with_probes(RIGHT), tmp_path, checker) is not None
    assert probed(replace(environment, digest="f" * 64), tmp_path, checker) is not None
    assert len(list((tmp_path / "probes").iterdir())) == 3


def test_the_first_that_fail_are_named_with_reason_and_sentence(
    with_probes: With, checker: Checker, tmp_path: Path
) -> None:
    found = probed(with_probes(RIGHT, *[WRONG] * (MOST_KEPT + 5)), tmp_path, checker)
    assert found is not None
    assert (found.probes, found.proved, found.rejected) == (MOST_KEPT + 6, 1, MOST_KEPT + 5)
    assert len(found.failed) == MOST_KEPT
    assert found.words.startswith(f"{MOST_KEPT + 5} of {MOST_KEPT + 6} probes are not proved")
    assert "wrong (line 2): error: " in found.words
    assert "gone_from_the_library" in found.words


def test_a_failure_of_the_farm_is_no_failed_probe_and_is_not_kept(
    with_probes: With, checker: Checker, tmp_path: Path
) -> None:
    environment = with_probes({**RIGHT, "formal_statement": "theorem t : gone := by"}, RIGHT)
    found = probed(environment, tmp_path, checker)
    assert found is not None
    assert (found.proved, found.unjudged, found.rejected, found.failed) == (1, 1, 0, ())
    assert "the farm failed at 1 others" in found.words
    assert not (tmp_path / "probes").exists()


def test_an_environment_without_probes_has_no_result(
    core: LeanEnvironment, checker: Checker, tmp_path: Path
) -> None:
    assert probed(core, tmp_path, checker) is None


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "probes.jsonl"),
        (["{"], "probes.jsonl:1"),
        ([RIGHT, {"name": "x"}], "probes.jsonl:2"),
        ([{**RIGHT, "generation": 7}], "generation"),
    ],
    ids=["empty", "no JSON", "no statement", "no text"],
)
def test_bad_probes_are_named_by_file_line_and_field(
    with_probes: With, checker: Checker, tmp_path: Path, lines: list[object], words: str
) -> None:
    with pytest.raises(ManifestError, match=words):
        probed(with_probes(*lines), tmp_path, checker)


def test_a_file_that_is_gone_is_named_with_the_table(
    core: LeanEnvironment, checker: Checker, tmp_path: Path
) -> None:
    with pytest.raises(FarmError, match="correct `probes` in the table of core"):
        probed(replace(core, probes=str(tmp_path / "gone.jsonl")), tmp_path, checker)


@pytest.mark.parametrize("path", ["relative.jsonl", "/nowhere/probes.jsonl", "/"])
def test_a_table_names_an_absolute_path_of_a_file(core: LeanEnvironment, tmp_path: Path, path: str) -> None:
    made = toolchain(tmp_path / "lean", core)
    table = {"lean": str(made.lean), "lean_path": list(core.lean_path), "probes": path}
    with pytest.raises(SettingsError, match=r"probes: .* is not the absolute path of a file"):
        Table("mine", table).environment(tmp_path)


def test_the_command_prints_the_result_and_exits_by_it(core: LeanEnvironment, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    made = toolchain(tmp_path / "lean", core)
    file = tmp_path / "probes.jsonl"
    table = made.table("mine", f'lean_path = ["{core.lean_path[0]}"]', f'probes = "{file}"')
    (home / "farm.toml").write_text(table)
    file.write_text(f"{json.dumps(RIGHT)}\n{json.dumps(WRONG)}\n")
    farm = Command().having(FARM_HOME=str(home))
    failed = farm("environments", "probe", "mine", seconds=120)
    assert (failed.returncode, "1 of 2 probes are not proved" in failed.stdout) == (4, True), failed
    file.write_text(f"{json.dumps(RIGHT)}\n")
    assert farm.json("environments", "probe", "mine")["proved"] == 1
    none = farm("environments", "probe", "core", seconds=120)
    assert (none.returncode, "names no probes" in none.stderr) == (2, True), none
