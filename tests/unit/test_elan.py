"""Toolchains of elan are found without elan, which would install what is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from farm_workers.environments.toolchain import ask, find, is_shim

from farm.errors import SettingsError
from tests.toolchains import credulous, script

NAME = "leanprover--lean4---v4.35.0"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An elan first on PATH, as it is installed: one program under several names. It notes each call."""
    home = tmp_path / "elan"
    program = script(home / "bin" / "elan", f"echo called >> '{tmp_path}/called'", "exit 1")
    os.link(program, home / "bin" / "lean")
    os.link(program, home / "bin" / "lake")
    monkeypatch.setenv("PATH", f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ELAN_HOME", str(home))
    monkeypatch.delenv("ELAN_TOOLCHAIN", raising=False)
    return home


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace" / "below"
    folder.mkdir(parents=True)
    (folder.parent / "lean-toolchain").write_text("leanprover/lean4:v4.35.0\n")
    return folder


def test_a_toolchain_that_is_not_installed_is_told_and_elan_is_never_run(
    home: Path, workspace: Path, tmp_path: Path
) -> None:
    said = (
        r"toolchain v4\.35\.0 is not installed \(.*lean-toolchain names it\); "
        r"run elan toolchain install leanprover/lean4:v4\.35\.0$"
    )
    for given in (None, str(home / "bin" / "lean")):
        with pytest.raises(SettingsError, match=said):
            find(given, str(workspace))
    assert not (tmp_path / "called").exists()


def test_an_installed_toolchain_is_used_without_elan(home: Path, workspace: Path, tmp_path: Path) -> None:
    made = credulous(home / "toolchains" / NAME)
    assert find(None, str(workspace)).lean == made.lean
    assert not (tmp_path / "called").exists()


def by_variable(home: Path, workspace: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("ELAN_TOOLCHAIN", "4.35.0")


def by_override(home: Path, workspace: Path, patch: pytest.MonkeyPatch) -> None:
    (home / "settings.toml").write_text(f'[overrides]\n"{workspace}" = "leanprover/lean4:v4.35.0"\n')


def by_default(home: Path, workspace: Path, patch: pytest.MonkeyPatch) -> None:
    (workspace.parent / "lean-toolchain").unlink()
    (home / "settings.toml").write_text('default_toolchain = "v4.35.0"\n')


@pytest.mark.parametrize("how", [by_variable, by_override, by_default])
def test_a_toolchain_is_chosen_as_elan_does(
    home: Path,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: Callable[[Path, Path, pytest.MonkeyPatch], None],
) -> None:
    made = credulous(home / "toolchains" / NAME)
    (workspace.parent / "lean-toolchain").write_text("leanprover/lean4:v4.1.0")
    how(home, workspace, monkeypatch)
    assert find(None, str(workspace)).lean == made.lean


def test_a_linked_toolchain_is_found_by_its_own_name(home: Path, workspace: Path, tmp_path: Path) -> None:
    made = credulous(tmp_path / "mine")
    (home / "toolchains").mkdir()
    (home / "toolchains" / "mine").symlink_to(made.folder)
    (workspace.parent / "lean-toolchain").write_text("mine")
    assert find(None, str(workspace)).lean.resolve() == made.lean


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("stable", "only the network knows its version"),
        ("a b", "is no toolchain's name"),
        ("nightly-2026-01-02", "install leanprover/lean4-nightly:nightly-2026-01-02"),
    ],
)
def test_what_elan_would_have_to_ask_for_or_refuse_is_told(
    home: Path, workspace: Path, named: str, said: str
) -> None:
    (workspace.parent / "lean-toolchain").write_text(named)
    with pytest.raises(SettingsError, match=said):
        find(None, str(workspace))


def test_a_folder_without_any_toolchain_is_told_so(home: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="elan has no toolchain for"):
        find(None, str(tmp_path))


def test_a_link_to_elan_and_a_copy_of_it_are_elan_and_another_lean_is_not(home: Path, tmp_path: Path) -> None:
    (tmp_path / "lean").symlink_to(home / "bin" / "elan")
    assert is_shim(tmp_path / "lean")
    (home / "bin" / "lean").unlink()
    shutil.copy(home / "bin" / "elan", home / "bin" / "lean")
    assert is_shim(home / "bin" / "lean")
    assert not is_shim(credulous(tmp_path / "mine").lean)


def test_programs_that_are_asked_have_no_way_to_the_network(tmp_path: Path) -> None:
    says = script(tmp_path / "says", "git ls-remote https://example.com/x 2>&1; echo $https_proxy")
    said = ask([str(says)], None)
    assert "transport 'https' not allowed" in said
    assert "http://127.0.0.1:9" in said


def test_of_a_program_that_fails_the_error_is_told_and_no_backtrace(tmp_path: Path) -> None:
    fails = script(tmp_path / "fails", "echo 'error: no such thing' >&2; echo 'info: backtrace:' >&2; exit 1")
    with pytest.raises(SettingsError, match=r"failed: error: no such thing; run it in"):
        ask([str(fails)], None)
