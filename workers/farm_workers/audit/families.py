"""Audit step, families: checks that each constant without a value belongs to a type, unless it is an axiom.

An inductive type, a constructor or a recursor is only valid together with the others of its family; Lean's
replay looks them up by name and panics if a name has another kind.
"""

from __future__ import annotations

from collections.abc import Iterable

from farm_workers.audit.declarations import Constant, ConstantKind, Module
from farm_workers.audit.olean import MalformedOlean, Name


def require_families(module: Module) -> None:
    """Raise `MalformedOlean` when a member of a family is not a constant of its kind in the module."""
    listed = set[Name]()
    for name in module.of_kind(ConstantKind.INDUCTIVE):
        type_ = _constant(module, name)
        if name not in type_.family:
            raise MalformedOlean("an inductive type that is not of its own family")
        _require_kind(module, type_.family, ConstantKind.INDUCTIVE)
        _require_kind(module, type_.constructors, ConstantKind.CONSTRUCTOR)
        if any(_constant(module, each).parent != name for each in type_.constructors):
            raise MalformedOlean("a constructor of another type")
        listed.update(type_.constructors)
    if not listed.issuperset(module.of_kind(ConstantKind.CONSTRUCTOR)):
        raise MalformedOlean("a constructor that its type does not name")
    for name in module.of_kind(ConstantKind.RECURSOR):
        _require_kind(module, _constant(module, name).family, ConstantKind.INDUCTIVE)


def _constant(module: Module, name: Name) -> Constant:
    found = module.constant(name)
    if found is None:
        raise MalformedOlean("a family with a member that the module does not declare")
    return found


def _require_kind(module: Module, names: Iterable[Name], kind: ConstantKind) -> None:
    for name in names:
        if name not in module.names or module.kind(name) is not kind:
            raise MalformedOlean(f"a family with a member that is no {kind} of the module")
