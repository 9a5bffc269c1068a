"""Audit step, answers: writes answers in full, and marks those that contain the submission's declarations.

A text that Lean prints shows no instances, and declarations give a notation its meaning. Where those are the
submission's, the text can say one value and mean another. In full all arguments are written, without
notations; variables have names of the farm's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from farm_workers.audit.answers import Given
from farm_workers.audit.declarations import Constant
from farm_workers.audit.digest import number_text, value_digest
from farm_workers.audit.names import dotted, shown
from farm_workers.audit.olean import Name
from farm_workers.audit.statement import StatementComparison
from farm_workers.audit.terms import (
    APP,
    BVAR,
    CONST,
    LAMBDA,
    LET,
    LEVEL_SUCC,
    LITERAL,
    MDATA,
    PI,
    PROJECTION,
    SORT,
    Reading,
    Terms,
    Walk,
    applied,
    parts_of,
)

#: The most characters of a value in full.
_LONGEST = 8192
#: The part of a name behind which Lean notes the macro that made the name.
_MARK = "_@"
#: The words of a binder: before the type of its variable, and before the term that it binds.
_BINDERS = {LAMBDA: ("fun (", ") => "), PI: ("∀ (", "), "), LET: ("let ", "; ")}


def answers_of(pair: StatementComparison) -> Iterator[Given]:
    """Yield the answers of a module, in the order of their names."""
    for name in sorted(pair.given, key=shown):
        constant = pair.submission.constant(name)
        if constant is not None and constant.value is not None:
            yield _given(pair, constant, constant.value)


def _given(pair: StatementComparison, constant: Constant, value: int) -> Given:
    reading = Reading(pair.ours.olean, Terms())
    used = Walk(reading).constants(value)[0] & pair.submission.names.keys()
    is_own = any(name not in pair.given and not pair.is_same(name) for name in used)
    return Given(
        name=constant.name,
        value_sha256=value_digest(reading, constant.parameters, value),
        full=in_full(reading, value),
        is_own=is_own or not all(map(_is_plain, _bound(reading, value))),
    )


def _bound(reading: Reading, root: int) -> Iterator[Name]:
    """Yield the names of the variables that a term binds."""
    olean, seen, todo = reading.olean, set[int](), [root]
    while todo:
        place = todo.pop()
        if place in seen:
            continue
        seen.add(place)
        olean.spend(1)
        if olean.words[place] in _BINDERS:
            yield olean.name(olean.child(place, 0))
        todo += parts_of(olean, place)


def _is_plain(name: Name) -> bool:
    """Return whether a variable has no name, or a word that begins with a letter, which macros may mark."""
    first, *marks = name or ("_",)
    if not isinstance(first, str) or not first or (marks and marks[0] != _MARK):
        return False
    return (first[0].isalpha() or first[0] == "_") and all(c.isalnum() or c in "_'!?" for c in first)


def in_full(reading: Reading, root: int) -> str | None:
    """Return a term in writing without notations and with all arguments; None if that is too long."""
    olean, written, length = reading.olean, list[str](), 0
    todo: list[str | tuple[int, int, bool]] = [(root, 0, False)]
    while todo:
        part = todo.pop()
        if not isinstance(part, str):
            place, depth, is_inner = part
            parts = _parts(reading, place, depth)
            has_brackets = is_inner and len(parts) > 1
            todo += reversed(["(", *parts, ")"] if has_brackets else parts)
            olean.spend(1)
            continue
        written.append(part)
        length += len(part)
        if length > _LONGEST:
            return None
    return "".join(written)


def _parts(reading: Reading, place: int, depth: int) -> list[str | tuple[int, int, bool]]:
    """Return a term below a number of variables as texts, and its own terms between them."""
    olean, shape = reading.olean, reading.olean.words[place]
    while shape == MDATA:
        place = olean.object(place, 1)
        shape = olean.words[place]
    if shape in _BINDERS:
        before, behind = _BINDERS[shape]
        type_, *value, body = parts_of(olean, place)
        given = [part for each in value for part in (" := ", (each, depth, False))]
        return [f"{before}x{depth + 1} : ", (type_, depth, False), *given, behind, (body, depth + 1, False)]
    if shape == APP:
        function, arguments = applied(olean, place, _LONGEST)
        spaced = [part for each in reversed(arguments) for part in (" ", (each, depth, True))]
        is_named = olean.words[function] == CONST
        head = f"@{dotted(reading.constant(function))}" if is_named else (function, depth, True)
        return [head, *spaced]
    if shape == PROJECTION:
        (inner,) = parts_of(olean, place)
        field = olean.nat(olean.child(place, 1))
        return [f"{dotted(reading.constant(place))}.#{field} ", (inner, depth, True)]
    return [_leaf(reading, place, shape, depth)]


def _leaf(reading: Reading, place: int, shape: int, depth: int) -> str:
    olean = reading.olean
    if shape == CONST:
        name = dotted(reading.constant(place))
        return f"@{name}" if "«" in name else name  # a name such as «77» is not to look like a number
    if shape == BVAR:
        return f"x{depth - olean.nat(olean.child(place, 0))}"
    if shape == LITERAL:
        value = reading.literal(olean.object(place, 0))
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else number_text(value)
    if shape == SORT:
        level = olean.child(place, 0)
        is_type = level >= 0 and olean.words[level] == LEVEL_SUCC and olean.child(level, 0) == ~0
        return "Prop" if level == ~0 else "Type" if is_type else "Sort _"
    return "_"
