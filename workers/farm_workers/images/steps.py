"""Image step, steps: the tactics of a proof, with the goals before and after each."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from farm_workers.binding import table
from farm_workers.binding.lean import Callback
from farm_workers.binding.objects import NOTHING, elements, field, members, number_of, shared, tag
from farm_workers.binding.table import StructureField
from farm_workers.images.frontend import Frontend
from farm_workers.images.goals import Goals, GoalsAt
from farm_workers.images.reading import first_token
from farm_workers.images.syntax import NODE, Kinds, kind_of, leaves, span

_TACTIC = "Lean.Parser.Tactic."
#: The two forms of a block of tactics in Lean's grammar: their tactics stand in one node, with separators.
_BLOCKS = {f"{_TACTIC}tacticSeq1Indented": 0, f"{_TACTIC}tacticSeqBracketed": 1}
#: The most steps of a proof, goals of a state, and characters of a tactic's first word.
_MOST_STEPS, _MOST_TOGETHER, _MOST_WORD = 5000, 64, 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One tactic of a block: its bytes, its kind and first word, and how many blocks it stands in.

    `block` is the first byte of the innermost of them.
    """

    start: int
    end: int
    kind: str
    word: str
    depth: int
    block: int


def steps(frontend: Frontend, kinds: Kinds, proof: int) -> list[Step]:
    """Return the tactics of a proof's syntax, in the order of the text, outer ones first."""
    found, todo = list[Step](), [(proof, 0)]
    while todo and len(found) < _MOST_STEPS:
        node, depth = todo.pop()
        if node & 1 or tag(node) != NODE:
            continue
        parts, kind = elements(field(node, 2)), kinds.of(node)
        if kind in _BLOCKS:
            depth += 1
            tactics = elements(field(parts[_BLOCKS[kind]], 2))[::2]
            first = (span(frontend.lean, node) or (0, 0))[0]
            found += [step for each in tactics if (step := _step(frontend, each, depth, first))]
        todo += [(each, depth) for each in reversed(parts)]
    return sorted(found, key=lambda each: (each.start, -each.end))


def _step(frontend: Frontend, tactic: int, depth: int, block: int) -> Step | None:
    place = span(frontend.lean, tactic)
    if place is None:
        return None
    word = first_token(tactic) or ""
    return Step(
        start=place[0],
        end=place[1],
        kind=kind_of(tactic),
        word=word[:_MOST_WORD],
        depth=depth,
        block=block,
    )


def tokens(proof: int) -> int:
    """Return the number of atoms and identifiers of a syntax tree."""
    return sum(1 for _ in leaves(proof))


def histogram(found: Sequence[Step]) -> Mapping[str, int]:
    """Return how often tactics with each first word stand in a proof."""
    return dict(Counter(map(first_word, found)))


def first_word(step: Step) -> str:
    """Return the first word of a tactic, that of its kind where it begins with none."""
    return step.word or step.kind.rpartition(".")[2]


class States:
    """The goals of a proof: each text once, and for each step the numbers of those before and after it."""

    def __init__(self, frontend: Frontend, goals: Goals, tree: int) -> None:
        """Read the tree of the proof's command, `NOTHING` where Lean kept none."""
        self._lean, self._goals = frontend.lean, goals
        self._infos: dict[tuple[int, int, str], tuple[int, int]] = {}
        self._texts: dict[str, int] = {}
        if tree != NOTHING:
            visit = Callback(self._visit)
            self._lean.call(table.FOLD_TREE, self._lean.closure(visit), NOTHING, shared(tree))

    def _visit(self, context: int, info: int, found: int) -> int:
        lean = self._lean
        if number_of(info) != lean.number(table.IS_TACTIC):
            return found
        inner = field(info, 0)
        syntax = lean.get(table.INFO_SYNTAX, lean.get(table.TACTIC_INFO, inner))
        if not syntax & 1 and tag(syntax) == NODE and (place := span(lean, syntax)):
            self._infos.setdefault((*place, kind_of(syntax)), (shared(context), shared(inner)))
        return found

    def of(self, found: Sequence[Step]) -> Mapping[str, object]:
        """Return the texts of goals, and the steps with indices into them, None where Lean kept no goals."""
        told = [{**asdict(step), **self._around(step)} for step in found]
        return {"goals": list(self._texts), "steps": told}

    def _around(self, step: Step) -> Mapping[str, object]:
        info = self._infos.get((step.start, step.end, step.kind))
        if info is None:
            return {"before": None, "after": None}
        return {"before": self._numbers(*info, table.BEFORE), "after": self._numbers(*info, table.AFTER)}

    def _numbers(self, context: int, info: int, fields: tuple[StructureField, StructureField]) -> list[int]:
        holes, goals = (self._lean.get(each, info) for each in fields)
        texts = [
            self._goals.printed(GoalsAt(0, "", context, holes, self._lean.list([shared(goal)])))
            for goal in itertools.islice(members(goals), _MOST_TOGETHER)
        ]
        return [self._texts.setdefault(each, len(self._texts)) for each in texts]
