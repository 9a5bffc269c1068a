"""Audit step, unchecked constants: finds constants that no kernel checked, without a statement.

The kernel accepts unsafe and partial constants unchecked, so a seal leaves them out. The compiler makes one
for each recursive function, with its type, to run it: that adds no claim to the function's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from farm_workers.audit.declarations import Module, Safety
from farm_workers.audit.findings import ModuleFinding, Word, found
from farm_workers.audit.names import parsed
from farm_workers.audit.olean import Name
from farm_workers.audit.terms import Reading, Terms, Walk

_RUN = "_unsafe_rec"
#: The namespaces below `Lean` that occur in the terms of proofs; the others serve code that elaborates.
_OF_PROOFS = (("Data",), ("Grind",), ("Omega",), ("Order",), ("RArray",))


def is_made_to_run(module: Module, name: Name) -> bool:
    """Return whether a constant is the compiled form of a function of the module, with the same type.

    A module has each term once, so equal types are one object.
    """
    if not name or name[-1] != _RUN:
        return False
    made, function = module.constant(name), module.constant(name[:-1])
    return made is not None and function is not None and made.type == function.type


def unchecked(module: Module, left_out: Mapping[Name, Safety]) -> Iterator[ModuleFinding]:
    """Find the constants of a module that are left out because no kernel checks them."""
    for name, safety in left_out.items():
        if not is_made_to_run(module, name):
            word = Word.PARTIAL if safety is Safety.PARTIAL else Word.UNSAFE
            yield found(word, name, f"{{}} is {safety}: no kernel checks it.")


def of_listed(
    module: Module, declared: Sequence[str], mentioned: Iterable[Name] | None
) -> Iterator[ModuleFinding]:
    """Find the declarations of a program that its module lacks, by Lean's list of them.

    The list lacks declarations made by macros and other code of the program, so a module with such code is
    refused. `mentioned` are the names in its terms, None if they were not collected.
    """
    yield from forgotten(module, declared)
    used = _mentioned(module) if mentioned is None else mentioned
    if any(name[:1] == ("Lean",) and name[1:2] not in _OF_PROOFS for name in used):
        sentence = "The program has syntax or code of its own, and this way of running Lean does not tell "
        yield found(Word.FORGOTTEN, None, f"{sentence}what that declares: give it a statement.")


def _mentioned(module: Module) -> Iterator[Name]:
    walk = Walk(Reading(module.olean, Terms()))
    for name in module.names:
        constant = module.constant(name)
        for place in constant.expressions() if constant else ():
            yield from walk.constants(place)[0]


def forgotten(module: Module, declared: Sequence[str]) -> Iterator[ModuleFinding]:
    """Find the names in Lean's list of declarations that the module does not have."""
    for written in declared:
        try:
            name = parsed(written)
        except ValueError:
            name = None
        if name is None or name not in module.names:
            sentence = f"The program declares {written[:200]}, which Lean forgets: make it a theorem."
            yield found(Word.FORGOTTEN, None, sentence)
