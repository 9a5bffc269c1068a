"""Replay step, the replay: sends the module's constants through the kernel, on top of its imports.

`Lean.Kernel.Environment.replay` adds constants in the order of their dependencies. It skips unsafe and
partial ones, takes a theorem that an import has already stated for proved, and compares constructors and
recursors only with those that the kernel has made of the inductive types. Therefore each constant is looked
up afterwards: the kernel must hold an equal one, and none of the skipped ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from farm_workers.replay.cached import Cached, Forged
from farm_workers.replay.lean import (
    FALSE,
    NOTHING,
    TRUE,
    Lean,
    LeanError,
    dotted,
    elements,
    field,
    shared,
)

#: Arguments of `Lean.importModules`: no plugins, environment not leaked, no extensions, all parts of modules.
_NO_TRUST, _ALL_PARTS = 1, 2 << 1 | 1
#: The kernel's words when it has found out nothing about the declaration.
_GAVE_UP = re.compile(
    r"^\(kernel\) (deep recursion|deterministic timeout|excessive memory|interrupted)", re.M
)

_PASSED_OVER = "l_Lean_ConstantInfo_isUnsafe___boxed", "l_Lean_ConstantInfo_isPartial___boxed"
_EQUAL = "l_Lean_instBEqConstantInfo_beq___boxed"


class Refused(Exception):
    """The kernel refuses a constant, or makes another one of its declaration."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """The number of constants that the kernel has accepted, and the names of the skipped ones."""

    constants: int
    skipped: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Module:
    imports: int
    names: Sequence[int]
    constants: Sequence[int]


def replay(lean: Lean, path: str) -> Replayed:
    """Replay a module; raises `Refused`, and LeanError when it cannot be done."""
    module = _read(lean, path)
    try:
        imported = [field(each, 0) for each in elements(module.imports)]
        Cached(lean).examine([*imported, *module.names], module.constants)
    except Forged as error:
        raise Refused(str(error)) from error
    environment = _imported(lean, module.imports)
    after = replayed(lean, module.names, module.constants, environment)
    return compared(lean, module.names, module.constants, after)


def _read(lean: Lean, path: str) -> _Module:
    read = lean.result(lean.call("l_Lean_readModuleData___boxed", lean.string(path)))
    root = field(read, 0)
    if field(root, 5) & 0xFF:
        raise LeanError(f"{path}: it belongs to Lean's module system, which the replay does not support")
    imports, names, constants = (field(root, number) for number in range(3))
    module = _Module(imports=imports, names=elements(names), constants=elements(constants))
    if len(module.names) != len(module.constants):
        raise Refused("the numbers of names and constants differ")
    return module


def _imported(lean: Lean, imports: int) -> int:
    """Return the kernel's environment after the imports; no code of the imports is run."""
    environment = lean.call(
        "l_Lean_importModules___boxed",
        imports,
        lean.constant("l_Lean_Options_empty"),
        _NO_TRUST,
        lean.call("lean_array_mk", NOTHING),
        FALSE,
        FALSE,
        _ALL_PARTS,
        lean.call("l_Lean_mkNameMap", NOTHING),
    )
    return lean.call("lean_elab_environment_to_kernel_env", lean.result(environment))


def replayed(lean: Lean, names: Sequence[int], constants: Sequence[int], environment: int) -> int:
    """Return the kernel's environment after the replay; raises `Refused`, LeanError where it gave up."""
    table = lean.call("l_Std_HashMap_emptyWithCapacity___redArg", len(names) << 1 | 1)
    equal, hashed = lean.constant("l_Lean_Name_instBEq"), lean.constant("l_Lean_instHashableName")
    insert = lean.function("l_Std_HashMap_insert___redArg", 5)
    for name, constant in zip(names, constants, strict=True):
        table = insert(equal, hashed, table, name, constant)
    if field(table, 0) >> 1 != len(names):
        raise Refused("two constants have the same name")
    try:
        return lean.result(lean.call("l_Lean_Kernel_Environment_replay___boxed", table, environment))
    except LeanError as error:
        if _GAVE_UP.search(str(error)):
            raise
        raise Refused(str(error)) from error


def compared(lean: Lean, names: Sequence[int], constants: Sequence[int], environment: int) -> Replayed:
    """Compare constants with those that the kernel holds after the replay; raises `Refused`."""
    skipped, accepted = [], 0
    find, equal = (lean.function(name, 2) for name in ("lean_environment_find", _EQUAL))
    tests = [lean.function(name, 1) for name in _PASSED_OVER]
    for name, constant in zip(names, constants, strict=True):
        known = find(shared(environment), name)
        if any(test(constant) == TRUE for test in tests):
            if known != NOTHING:
                raise Refused(f"{dotted(name)}: unsafe or partial here, but known to the kernel")
            skipped.append(dotted(name))
        elif known == NOTHING or equal(field(known, 0), constant) != TRUE:
            raise Refused(f"{dotted(name)}: differs from the kernel's own result for the declaration")
        else:
            accepted += 1
    return Replayed(constants=accepted, skipped=tuple(skipped))
