"""Exports: what is written of compiled modules can be read by others, in order, and is the same each time."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest
from farm_workers.audit.export import export, main
from farm_workers.audit.olean import MalformedOlean

from tests.exported import Export, Refused

MODULES = Path(__file__).with_name("olean")


def exported(module: Path, *roots: Path) -> str:
    out = io.StringIO()
    count = export(module, roots, out)
    assert len(Export(out.getvalue().splitlines()).declared) == count
    return out.getvalue()


def declared(text: str) -> dict[str, str]:
    """The kinds of the declarations of an export, by their names."""
    return {name: kind for name, (kind, _) in Export(text.splitlines()).declared.items()}


def test_a_module_is_written_with_its_types_and_without_what_no_kernel_checks() -> None:
    text = exported(MODULES / "Real.olean")
    assert text == exported(MODULES / "Real.olean")
    found = declared(text)
    assert found["cheat"] == "axiom"
    assert found["Goal.it"] == "thm"
    assert {found[name] for name in ("False", "False.rec", "And", "And.intro", "And.rec")} == {"inductive"}
    assert not {"lcErased", "lcAny"} & found.keys()


def test_what_the_imports_declare_is_written_before_and_only_as_far_as_it_is_used() -> None:
    found = declared(exported(MODULES / "User.olean", MODULES))
    assert list(found)[-1] == "used"
    assert {"True", "True.intro", "True.rec", "shown", "both"} < found.keys()
    # A module in several files keeps to itself what others need not see; a proof rests on it all the same.
    assert [name for name in found if name.endswith(".hidden")] == ["_private.Parts.0.hidden"]
    assert "True.recOn" not in found
    assert "True.recOn" in declared(exported(MODULES / "Parts.olean"))


@pytest.mark.parametrize("missing", ["Parts.olean", "Parts.olean.private"])
def test_a_module_without_its_imports_is_refused(tmp_path: Path, missing: str) -> None:
    shutil.copytree(MODULES, tmp_path / "modules")
    (tmp_path / "modules" / missing).unlink()
    with pytest.raises(SystemExit, match="Parts"):
        main([str(MODULES / "User.olean"), str(tmp_path / "export"), str(tmp_path / "modules")])


def test_parts_of_different_modules_are_refused(tmp_path: Path) -> None:
    shutil.copytree(MODULES, tmp_path / "modules")
    shutil.copy(MODULES / "User.olean", tmp_path / "modules" / "Parts.olean.server")
    with pytest.raises(MalformedOlean, match="does not belong to"):
        exported(tmp_path / "modules" / "Parts.olean")


def test_what_is_cut_out_of_an_export_is_missed() -> None:
    lines = exported(MODULES / "User.olean", MODULES).splitlines()
    for place in range(1, len(lines) - 1):
        with pytest.raises((Refused, KeyError, IndexError)):
            Export([*lines[:place], *lines[place + 1 :]])
