"""Replay step, parts: what the objects of a constant consist of. Pure.

The order is that of ``src/Lean/Declaration.lean``: axiom, definition, theorem, opaque, quotient, inductive
type, constructor, recursor.
"""

from __future__ import annotations

#: The kinds of parts. Names, levels and terms carry a word that Lean computes; a number may be in a box.
NAME, LEVEL, TERM, NAMES, LEVELS, RULES, HEADER, NUMBER = range(8)

#: The pointers of a constant's value, by the kind of constant.
VALUES: tuple[tuple[int, ...], ...] = (
    (HEADER,),
    (HEADER, TERM, NUMBER, NAMES),
    (HEADER, TERM, NAMES),
    (HEADER, TERM, NAMES),
    (HEADER,),
    (HEADER, NUMBER, NUMBER, NAMES, NAMES, NUMBER),
    (HEADER, NAME, NUMBER, NUMBER, NUMBER),
    (HEADER, NAMES, NUMBER, NUMBER, NUMBER, NUMBER, RULES),
)
#: The bytes behind the pointers that mean something: safety, kind of quotient, truth values.
MARKS = (1, 1, 0, 1, 1, 3, 1, 2)
#: The pointers of a constant's header, and of a recursor's rule.
GROUPS: dict[int, tuple[int, ...]] = {HEADER: (NAME, NAMES, TERM), RULES: (NAME, NUMBER, TERM)}
