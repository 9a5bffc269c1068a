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

from farm_workers.binding import table
from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import (
    FALSE,
    NOTHING,
    TRUE,
    LeanError,
    boxed,
    dotted,
    elements,
    field,
    shared,
)
from farm_workers.replay.cached import Cached, Forged
from farm_workers.replay.equality import equality

#: The kernel's words when it has found out nothing about the declaration.
_GAVE_UP = re.compile(
    r"^\(kernel\) (deep recursion|deterministic timeout|excessive memory|interrupted)", re.M
)


class KernelRefused(Exception):
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
    """Replay a module; raises `KernelRefused`, and LeanError when it cannot be done."""
    module = _read(lean, path)
    try:
        imported = [lean.get(table.IMPORTED_MODULE, each) for each in elements(module.imports)]
        Cached(lean).examine([*imported, *module.names], module.constants)
    except Forged as error:
        raise KernelRefused(str(error)) from error
    environment = _imported(lean, module.imports)
    after = replayed(lean, module.names, module.constants, environment)
    return compared(lean, module.names, module.constants, after)


def _read(lean: Lean, path: str) -> _Module:
    root = field(lean.call(table.READ_MODULE, lean.string(path)), 0)
    if lean.get(table.IS_MODULE, root):
        raise LeanError(f"{path}: it belongs to Lean's module system, which the replay does not support")
    module = _Module(
        imports=lean.get(table.IMPORTS, root),
        names=elements(lean.get(table.NAMES, root)),
        constants=elements(lean.get(table.CONSTANTS, root)),
    )
    if len(module.names) != len(module.constants):
        raise KernelRefused("the numbers of names and constants differ")
    return module


def _imported(lean: Lean, imports: int) -> int:
    """Return the kernel's environment after the imports; no code of the imports is run."""
    trust, plugins, leaks, loads = boxed(0), lean.array([]), FALSE, FALSE
    level = boxed(lean.number(table.WHOLE_MODULE))
    artifacts = lean.call(table.NO_ARTIFACTS)
    options = lean.constant(table.NO_OPTIONS)
    words = imports, options, trust, plugins, leaks, loads, level, artifacts
    return lean.call(table.OF_KERNEL, lean.call(table.IMPORT, *words))


def replayed(lean: Lean, names: Sequence[int], constants: Sequence[int], environment: int) -> int:
    """Return the kernel's environment after the replay; raises `KernelRefused`, LeanError if it gave up."""
    equal, hashed = lean.constant(table.NAME_EQUAL), lean.constant(table.NAME_HASH)
    known = lean.call(table.EMPTY_MAP, equal, hashed, boxed(len(names)))
    insert = lean.function(table.INSERT)
    for name, constant in zip(names, constants, strict=True):
        known = insert(equal, hashed, known, name, constant)
    if field(known, 0) >> 1 != len(names):
        raise KernelRefused("two constants have the same name")
    try:
        if lean.has(table.REPLAY):
            return lean.call(table.REPLAY, known, environment)
        after = lean.call(table.REPLAY_VIEW, known, lean.call(table.VIEW_OF_KERNEL, environment))
        return lean.call(table.OF_KERNEL, after)
    except LeanError as error:
        if _GAVE_UP.search(str(error)):
            raise
        raise KernelRefused(str(error)) from error


def compared(lean: Lean, names: Sequence[int], constants: Sequence[int], environment: int) -> Replayed:
    """Compare constants with those that the kernel holds after the replay; raises `KernelRefused`."""
    skipped, accepted = [], 0
    find, equal = lean.function(table.FIND), equality(lean)
    tests = [lean.function(each) for each in (table.IS_UNSAFE, table.IS_PARTIAL)]
    for name, constant in zip(names, constants, strict=True):
        known = find(shared(environment), name)
        if any(test(constant) == TRUE for test in tests):
            if known != NOTHING:
                raise KernelRefused(f"{dotted(name)}: unsafe or partial here, but known to the kernel")
            skipped.append(dotted(name))
        elif known == NOTHING or not equal(field(known, 0), constant):
            raise KernelRefused(f"{dotted(name)}: differs from the kernel's own result for the declaration")
        else:
            accepted += 1
    return Replayed(constants=accepted, skipped=tuple(skipped))
