"""Seal step, contexts: has the kernel check the context of a theorem once for all its proofs.

The context's module is read as data, rebuilt and checked like the module of a proof. The proofs' own modules,
which hold the rest of their files, are then checked in the kernel's new environment. A context that has more
than definitions and theorems, with sorries or without, is refused: the seals of its proofs then check whole
files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from farm_workers.audit.audit import STANDARD_AXIOMS, Rules, audit_all
from farm_workers.audit.declarations import Module, Safety
from farm_workers.audit.dependencies import NOTHING, Below, Table
from farm_workers.audit.findings import Word
from farm_workers.audit.kernel import SORRY
from farm_workers.audit.olean import BUDGET, Name, Olean
from farm_workers.audit.rests import components
from farm_workers.audit.terms import Reading, Terms, Walk
from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import shared
from farm_workers.replay.replay import KernelRefused, compared, replayed
from farm_workers.seal.evaluation import Compiled, not_compiled
from farm_workers.seal.image import ModuleImage
from farm_workers.seal.kernel import Imported, Printed, not_printed
from farm_workers.seal.memory import reserved, room_for
from farm_workers.seal.rebuild import Rebuilt, rebuild


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """The environment in which Lean's kernel checks a module, and facts about the context in it, if any.

    `below` maps each of the context's constants to the axioms and sorries below it in the imports, and
    `admitted` to the context's constants with a sorry that it rests on, if there are any. `left_out` are the
    unsafe and partial constants, which no kernel checks; `has_sorry` is true if the context has a sorry.
    `context` is the context's module, which `memory` holds. `compiled` evaluates terms of imported constants:
    it runs their compiled code in another process. `printed` prints terms of the module.
    """

    environment: int
    below: Mapping[Name, Below] = field(default_factory=dict)
    admitted: Mapping[Name, frozenset[Name]] = field(default_factory=dict)
    left_out: Mapping[Name, Safety] = field(default_factory=dict)
    has_sorry: bool = False
    context: Module | None = None
    memory: ExitStack = field(default_factory=ExitStack, repr=False)
    compiled: Compiled = not_compiled
    printed: Printed = not_printed


def taken_in(lean: Lean, kernel: Kernel, file: bytes, table: memoryview | None = None) -> Kernel:
    """Return the kernel with a context's module in it, for the lifetime of this process.

    `table` is the environment's table of dependencies, None if it is unknown.

    Raises `MalformedOlean` for a file that is no module of Lean's, and `KernelRefused` for a module that the
    kernel rejects, or that has more than definitions and theorems.
    """
    memory = ExitStack()
    base, place = memory.enter_context(reserved(room_for(len(file))))
    module = Module(Olean(file, BUDGET))
    if module.is_module or module.repeated:
        raise KernelRefused("the context is no plain module")
    rebuilt = rebuild(lean, module, ModuleImage(lean, base, place), native=False)
    sealed = Module(Olean(rebuilt.file, BUDGET, rebuilt.image.placed()))
    imported = Imported(lean, kernel.environment, rebuilt)
    rules = _rules(rebuilt, imported, table, [each.module for each in module.imports])
    _require_plain(sealed, rebuilt, rules)
    names, constants = (
        [rebuilt.image.names[name] for name in rebuilt.constants],
        [*rebuilt.constants.values()],
    )
    after = replayed(lean, names, constants, shared(kernel.environment))
    compared(lean, names, constants, shared(after))
    return Kernel(
        environment=after,
        below=_below(sealed, rules),
        admitted=_users(sealed, _admitted(sealed) if SORRY in rebuilt.mentioned else ()),
        left_out=rebuilt.left_out,
        has_sorry=SORRY in rebuilt.mentioned,
        context=sealed,
        memory=memory,
    )


def _rules(rebuilt: Rebuilt, imported: Imported, table: memoryview | None, imports: Sequence[Name]) -> Rules:
    return Rules(
        allowed_axioms=STANDARD_AXIOMS | {SORRY},
        is_imported=imported.has,
        is_imported_axiom=imported.is_axiom,
        dependencies=None if table is None else Table(table, imports).below,
        left_out=rebuilt.left_out,
        mentioned=rebuilt.mentioned,
    )


def _require_plain(sealed: Module, rebuilt: Rebuilt, rules: Rules) -> None:
    """Raise `KernelRefused` if an audit of a context finds anything but sorries."""
    for finding in audit_all(sealed, rules).findings:
        if finding.word is not Word.NO_THEOREM:
            raise KernelRefused(finding.sentence)
    if rebuilt.is_open:
        raise KernelRefused("the context contains a variable that is not bound")


def _below(sealed: Module, rules: Rules) -> dict[Name, Below]:
    """Return the axioms and sorries of the imports below each constant of a context."""
    parts = {name: _used(sealed, name) for name in sealed.names}
    found = dict[Name, Below]()
    for group in components([*sealed.names], lambda name: list(parts[name] & parts.keys())):
        together = NOTHING
        for used in frozenset[Name]().union(*(parts[name] for name in group)):
            if used not in parts:
                together |= rules.below(used)
            elif used in found:
                together |= found[used]
        found |= dict.fromkeys(group, together)
    return found


def _admitted(sealed: Module) -> set[Name]:
    """Return the constants of a module that contain a sorry."""
    return {name for name in sealed.names if SORRY in _used(sealed, name)}


def _users(sealed: Module, roots: Collection[Name]) -> dict[Name, frozenset[Name]]:
    """Map each constant of a module to the roots that it rests on or is; omits constants without any."""
    users = defaultdict[Name, set[Name]](set)
    for name in sealed.names if roots else ():
        for used in _used(sealed, name):
            users[used].add(name)
    found = defaultdict[Name, set[Name]](set)
    for root in roots:
        todo = [root]
        found[root] |= {root} & sealed.names.keys()
        while todo:
            new = [user for user in users[todo.pop()] if root not in found[user]]
            for user in new:
                found[user].add(root)
            todo += new
    return {name: frozenset(rests_on) for name, rests_on in found.items() if rests_on}


def _used(sealed: Module, name: Name) -> set[Name]:
    """Return the constants that one constant refers to."""
    constant = sealed.constant(name)
    if constant is None:
        return set()
    walk = Walk(Reading(sealed.olean, Terms()))
    return set(constant.relatives()).union(*(walk.constants(each)[0] for each in constant.expressions()))
