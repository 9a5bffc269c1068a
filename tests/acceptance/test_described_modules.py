"""A toolchain's own modules, which Lean compiles here in the place of its library, as descriptions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from farm_workers.audit.olean import MalformedOlean
from farm_workers.binding.modules import describe
from farm_workers.binding.signatures import MODULES, Description, Member, Parameter, Shape
from farm_workers.environments.lean_environment import LeanEnvironment, environment_variables

from tests.toolchains import CALL

#: Names of the table, with parameters and fields of every shape.
SOURCE = """\
prelude
import Core
set_option autoImplicit false
set_option linter.unusedVariables false
namespace Lean
inductive OLeanLevel : Type where
  | exported | server | «private»
structure Wrapped : Type where
  flag : Bool
structure Erased : Type where
  number : Nat
  proof : Eq number number
structure ModuleData : Type 1 where
  isModule : Bool
  imports : Nat
  level : OLeanLevel
  wrapped : Wrapped
  inner : Erased
  proof : Eq imports imports
  always : (n : Nat) → Eq n n
  kind : Type
def writeModule (env : Nat) (fname : Nat) (writeIR : Bool := Bool.true) : Nat := fname
def mkModuleData (env : Nat) (level : OLeanLevel := OLeanLevel.private) (count : Nat := Nat.zero) : Nat := env
def saveModuleData (fname : Nat) (data : Nat := Nat.succ fname) (_ : Erased) : Nat := data
def MessageLog.toArray {α : Type} (log : α) (proof : Eq log log) : α := log
def Options.empty : Nat := Nat.zero
theorem version.major : Eq Nat.zero Nat.zero := Eq.refl Nat.zero
end Lean
"""


@pytest.fixture(scope="module")
def described(core: LeanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Description:
    folder = tmp_path_factory.mktemp("toolchain")
    (folder / "Lean").mkdir()
    (folder / "Init").mkdir()
    (folder / "Lean" / "Stand.lean").write_text(SOURCE)
    done = subprocess.run(
        [sys.executable, "-c", CALL, core.lean[0], "-o", "Lean/Stand.olean", "Lean/Stand.lean"],
        cwd=folder,
        env=environment_variables(core),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    for module in Path(core.lean_path[0]).glob("*.olean"):
        shutil.copy(module, folder / "Init" / module.name)
    return describe(folder)


def test_a_function_has_its_parameters_with_shapes_and_literal_defaults(described: Description) -> None:
    assert described.functions["Lean.writeModule"] == (
        Parameter("env"),
        Parameter("fname"),
        Parameter("writeIR", Shape.BYTE, 3),
    )
    assert described.functions["Lean.mkModuleData"] == (
        Parameter("env"),
        Parameter("level", Shape.BYTE, 5),
        Parameter("count", Shape.OBJECT, 1),
    )


def test_a_default_that_is_computed_is_none_and_a_parameter_without_a_name_has_its_types(
    described: Description,
) -> None:
    assert described.functions["Lean.saveModuleData"] == (
        Parameter("fname"),
        Parameter("data"),
        Parameter("[Erased]"),
    )


def test_types_and_proofs_are_erased(described: Description) -> None:
    assert [each.shape for each in described.functions["Lean.MessageLog.toArray"]] == [
        Shape.ERASED,
        Shape.OBJECT,
        Shape.ERASED,
    ]


def test_a_constant_has_no_parameters_and_a_theorem_is_no_code(described: Description) -> None:
    assert described.functions["Lean.Options.empty"] == ()
    assert "Lean.version.major" not in described.functions


def test_a_structure_has_its_fields_with_shapes(described: Description) -> None:
    assert described.structures["Lean.ModuleData"] == (
        Member("isModule", Shape.BYTE),
        Member("imports"),
        Member("level", Shape.BYTE),
        Member("wrapped", Shape.BYTE),
        Member("inner"),
        Member("proof", Shape.ERASED),
        Member("always", Shape.ERASED),
        Member("kind", Shape.ERASED),
    )


def test_a_type_has_its_constructors_in_order(described: Description) -> None:
    assert described.types["Lean.OLeanLevel"] == ("exported", "server", "private")


def test_what_the_modules_do_not_hold_is_left_out(described: Description) -> None:
    assert described.source == MODULES
    assert "Lean.importModules" not in described.functions
    assert "Lean.Elab.Command.State" not in described.structures
    assert "Lean.MessageSeverity" not in described.types


def test_a_folder_without_modules_is_no_library(tmp_path: Path) -> None:
    with pytest.raises(MalformedOlean, match="no compiled module of Lean's own library"):
        describe(tmp_path)


@pytest.mark.parametrize("content", [b"", b"olean", bytes(4096)])
def test_a_file_that_is_no_module_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "Lean").mkdir()
    (tmp_path / "Lean" / "Bad.olean").write_bytes(content)
    with pytest.raises(MalformedOlean):
        describe(tmp_path)
