"""Binding step, signatures: the functions, structures and constructors of Lean, as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Shape(StrEnum):
    """How compiled code holds a value; in the order of ``Lean.IR.IRType`` where that has it."""

    OBJECT = "object"
    ERASED = "erased"
    BYTE = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    WORD = "usize"
    FLOAT = "float"
    FLOAT32 = "float32"
    WORLD = "world"


#: The bytes of a scalar among an object's fields; a word stands before all others.
SCALAR_BYTES = {
    Shape.WORD: 8,
    Shape.UINT64: 8,
    Shape.FLOAT: 8,
    Shape.UINT32: 4,
    Shape.FLOAT32: 4,
    Shape.UINT16: 2,
    Shape.BYTE: 1,
}
#: Scalars that Lean passes as ``n << 1 | 1`` where an object is due; larger ones have an object of their own.
BOXED_SMALL = frozenset({Shape.BYTE, Shape.UINT16, Shape.UINT32})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a toolchain's function: its name, "" for one of its monad, and its shape.

    The default is the word to pass, None without a literal one.
    """

    name: str
    shape: Shape = Shape.OBJECT
    default: int | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a toolchain's structure."""

    name: str
    shape: Shape = Shape.OBJECT


@dataclass(frozen=True, kw_only=True)
class Description:
    """The functions, structures and types of one toolchain.

    `functions` have their parameters in order, `structures` their fields, `types` the names of their
    constructors. A constant is a function without parameters. `plain_actions`: an action that cannot fail
    returns its value itself, not a result that holds the value. `source` is `MODULES`, `RUN` or `READ`.
    """

    lean: str
    source: str
    plain_actions: bool
    functions: Mapping[str, tuple[Parameter, ...]] = field(default_factory=dict)
    structures: Mapping[str, tuple[Member, ...]] = field(default_factory=dict)
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


#: Where a description comes from: the toolchain's own compiled modules; Lean's sources, and the farm's tests
#: have run every entry; Lean's sources alone.
MODULES, RUN, READ = "modules", "run", "read"
