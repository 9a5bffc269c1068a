"""Seal step, contexts: what stands above a theorem goes through the kernel once for all its proofs.

The context's module is read as data, built anew and checked as that of a proof is. What the kernel has then
is where the proofs begin, whose own modules hold the rest of their files. A context that has more than
definitions and theorems, with sorries or without, is not taken in: its proofs are sealed with all of their
files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from farm_workers.audit.audit import STANDARD_AXIOMS, Rules, audit_all
from farm_workers.audit.declarations import Module, Safety
from farm_workers.audit.findings import Word
from farm_workers.audit.kernel import SORRY
from farm_workers.audit.olean import BUDGET, Name, Olean
from farm_workers.audit.terms import Reading, Terms, Walk
from farm_workers.replay.lean import Lean, shared
from farm_workers.replay.replay import Refused, compared, replayed
from farm_workers.seal.evaluation import Compiled, not_compiled
from farm_workers.seal.image import ModuleImage
from farm_workers.seal.kernel import Imported
from farm_workers.seal.memory import reserved, room_for
from farm_workers.seal.rebuild import Rebuilt, rebuild


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """Where Lean's kernel begins: an environment, and what is known of the context in it, if there is one.

    `axioms` are those that each of the context's constants rests on, where there are any, `admitted` the
    constants with a sorry that it rests on; `left_out` are its constants that no kernel checks; `has_sorry`
    tells that it leaves something open. `memory` holds it. `compiled` evaluates terms of imported
    constants: it runs what they compile to, and so in another process.
    """

    environment: int
    axioms: Mapping[Name, frozenset[Name]] = field(default_factory=dict)
    admitted: Mapping[Name, frozenset[Name]] = field(default_factory=dict)
    left_out: Mapping[Name, Safety] = field(default_factory=dict)
    has_sorry: bool = False
    memory: ExitStack = field(default_factory=ExitStack, repr=False)
    compiled: Compiled = not_compiled


def taken_in(lean: Lean, kernel: Kernel, file: bytes) -> Kernel:
    """Return the kernel with a context's module in it, for as long as this process lives.

    Raises `MalformedOlean` for what is no module of Lean's, and `Refused` for one that the kernel does not
    accept, or that is more than definitions and theorems.
    """
    memory = ExitStack()
    base, place = memory.enter_context(reserved(room_for(len(file))))
    module = Module(Olean(file, BUDGET))
    if module.is_module or module.repeated:
        raise Refused("the context is no plain module")
    rebuilt = rebuild(lean, module, ModuleImage(lean, base, place), native=False)
    sealed = Module(Olean(rebuilt.file, BUDGET, rebuilt.image.placed()))
    imported = Imported(lean, kernel.environment, rebuilt)
    _require_plain(sealed, rebuilt, imported)
    names, constants = (
        [rebuilt.image.names[name] for name in rebuilt.constants],
        [*rebuilt.constants.values()],
    )
    after = replayed(lean, names, constants, shared(kernel.environment))
    compared(lean, names, constants, shared(after))
    return Kernel(
        environment=after,
        axioms=_users(sealed, {name for name in rebuilt.mentioned if imported.is_axiom(name)}),
        admitted=_users(sealed, _admitted(sealed) if SORRY in rebuilt.mentioned else ()),
        left_out=rebuilt.left_out,
        has_sorry=SORRY in rebuilt.mentioned,
        memory=memory,
    )


def _require_plain(sealed: Module, rebuilt: Rebuilt, imported: Imported) -> None:
    """Raise `Refused` where an audit finds something in a context besides its sorries."""
    rules = Rules(
        allowed_axioms=STANDARD_AXIOMS | {SORRY},
        is_imported=imported.has,
        is_imported_axiom=imported.is_axiom,
        left_out=rebuilt.left_out,
        mentioned=rebuilt.mentioned,
    )
    for finding in audit_all(sealed, rules).findings:
        if finding.word is not Word.NO_THEOREM:
            raise Refused(finding.sentence)
    if rebuilt.is_open:
        raise Refused("the context contains a variable that is not bound")


def _admitted(sealed: Module) -> set[Name]:
    """Return the constants of a module in which there is a sorry."""
    return {name for name in sealed.names if SORRY in _used(sealed, name)}


def _users(sealed: Module, roots: Collection[Name]) -> dict[Name, frozenset[Name]]:
    """Return which of these constants each constant of a module rests on, or is; none that rests on none."""
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
    """Return the constants that one refers to."""
    constant = sealed.constant(name)
    if constant is None:
        return set()
    walk = Walk(Reading(sealed.olean, Terms()))
    return set(constant.relatives()).union(*(walk.constants(each)[0] for each in constant.expressions()))
