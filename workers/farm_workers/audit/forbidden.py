"""Audit step, forbidden constants: finds those that a proof reaches through constants of its own module."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from farm_workers.audit.declarations import Constant, Module
from farm_workers.audit.findings import ModuleFinding, Word, found
from farm_workers.audit.names import shown
from farm_workers.audit.olean import Name
from farm_workers.audit.statement import StatementComparison
from farm_workers.audit.terms import Reading, Walk


def forbidden_uses(
    module: Module,
    reading: Reading,
    pair: StatementComparison | None,
    roots: Sequence[Name],
    names: Collection[Name],
    behind: Callable[[Name], Collection[Name]],
) -> Iterator[ModuleFinding]:
    """Yield a finding for each of some names that the roots reach, with the constant that names it.

    `behind` returns those of them below an imported constant. What the dataset's own constants name
    is the dataset's. With a challenge, so is what the roots' types name.
    """
    # A walk visits a term once, and the dataset's constants share terms with the others.
    own, given, todo = Walk(reading), Walk(reading), list(roots)
    seen, told = set(todo), set[Name]()
    if pair is not None:
        stated = _stated(module, reading, pair, roots)
        told |= stated.union(*(behind(name) for name in stated - module.names.keys()))
    while todo:
        holder = todo.pop()
        constant = module.constant(holder)
        if constant is None:
            continue
        is_own = holder in roots or not _is_given(pair, holder)
        used = _named(own if is_own else given, constant)
        if is_own:
            by = "" if holder in roots else f", by way of {shown(holder)}"
            ways = {name: behind(name) for name in used - module.names.keys()}
            reached = used.union(*ways.values())
            for name in sorted(reached.intersection(names) - told, key=shown):
                told.add(name)
                way = by
                if name not in used:
                    way = f", by way of {min(shown(each) for each in ways if name in ways[each])}"
                yield found(Word.FORBIDDEN, name, f"The proof rests on {{}}, which is forbidden{way}.")
        todo += used - seen
        seen |= used


def _stated(module: Module, reading: Reading, pair: StatementComparison, roots: Sequence[Name]) -> set[Name]:
    """Return the constants that the roots' types name, directly or by way of the dataset's constants."""
    walk, seen = Walk(reading), set[Name]()
    for root in filter(None, map(module.constant, roots)):
        seen |= walk.constants(root.type)[0]
    todo = list(seen)
    while todo:
        name = todo.pop()
        constant = module.constant(name)
        if constant is not None and _is_given(pair, name):
            new = _named(walk, constant) - seen
            seen |= new
            todo += new
    return seen


def _named(walk: Walk, constant: Constant) -> set[Name]:
    places = constant.expressions()
    return set(constant.relatives()).union(*(walk.constants(place)[0] for place in places))


def _is_given(pair: StatementComparison | None, name: Name) -> bool:
    """Whether a constant is the dataset's own, whatever it refers to."""
    return pair is not None and name in pair.challenge.names and pair.is_equal(name)
