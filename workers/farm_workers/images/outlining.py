"""Image step, outlines: writes where the commands, the proofs and the tactics of a file stand.

The file may have errors. Its own code can write anything into the answer: whoever cuts a text by an outline
has the result judged.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from farm_workers.binding.objects import LeanError, tag
from farm_workers.binding.table import Ability
from farm_workers.images.constants import THEOREM, Constants
from farm_workers.images.elaborated import VALUES, Declared, Elaborated, ElaboratedFile
from farm_workers.images.frontend import Frontend
from farm_workers.images.protocol import OUTLINE_NAME, OutlineAsked
from farm_workers.images.steps import first_word, steps, tokens
from farm_workers.images.syntax import nodes, span

#: A doc comment of a declaration, and a comment that is a command.
_DOC, _NOTE = "Lean.Parser.Command.docComment", "Lean.Parser.Command.moduleDoc"


def write_outline(frontend: Frontend, asked: OutlineAsked) -> int:
    """Write the outline of a file as JSON, and return the exit status of this process.

    Raises LeanError where Lean cannot be asked.
    """
    if reason := frontend.lean.lacks(Ability.EXTRACTION):
        raise LeanError(reason)
    whole = ElaboratedFile(frontend, asked["program"], asked["start"])
    commands = [each for each in whole.commands() if each.start < each.end]
    declared, own = whole.declared()
    theorems = [each for each in declared if tag(each.info) == THEOREM]
    found = [_proof(frontend, whole, each, theorems) for each in commands]
    told = [_command(frontend, whole, each, declared) for each in commands]
    if asked["needs"]:
        constants = Constants(frontend.lean, frontend.kernel_of(whole.environment()), own)
        stated = {command.start for command, proof in zip(commands, found, strict=True) if proof}
        needed = _needed(_places(commands, declared, own), stated, constants)
        told = [{**each, "needs": sorted(needed.get(each["start"], ()))} for each in told]
    outline = {"commands": told, "proofs": [each for each in found if each is not None]}
    with open(OUTLINE_NAME, "x", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(outline, file)
    return 0


def _places(
    commands: Sequence[Elaborated], declared: Sequence[Declared], own: Iterable[str]
) -> Mapping[str, int]:
    """Return the start of the command of each constant: what Lean makes has a name below a declared one."""
    starts = [each.start for each in commands]
    known = {
        each.name: starts[number]
        for each in declared
        if (number := bisect_right(starts, each.start) - 1) >= 0
    }
    return {name: start for name in own if (start := _of_first(known, name)) is not None}


def _of_first(known: Mapping[str, int], name: str) -> int | None:
    while name and name not in known:
        name = name.rpartition(".")[0]
    return known.get(name)


def _needed(places: Mapping[str, int], stated: Set[int], constants: Constants) -> Mapping[int, Set[int]]:
    """Return the starts of the theorems' commands that each command mentions: of a theorem, its statement."""
    found: dict[int, set[int]] = {}
    for name, start in places.items():
        mentioned = constants.mentioned(name, in_value=start not in stated)
        needed = {places[each] for each in mentioned if each in places}
        found.setdefault(start, set()).update(needed & stated - {start})
    return found


def _command(
    frontend: Frontend, whole: ElaboratedFile, command: Elaborated, declared: Sequence[Declared]
) -> dict[str, Any]:
    docs = [each for each in nodes(command.syntax) if whole.kinds.of(each) == _DOC]
    places = (span(frontend.lean, each) for each in docs)
    return {
        "start": command.start,
        "end": command.end,
        "declares": any(command.start <= each.start < command.end for each in declared),
        "is_note": whole.kinds.of(command.syntax) == _NOTE,
        "failed": command.error is not None,
        "tokens": tokens(command.syntax) - sum(map(tokens, docs)),
        "docs": [each for each in places if each is not None],
    }


def _proof(
    frontend: Frontend, whole: ElaboratedFile, command: Elaborated, theorems: Sequence[Declared]
) -> Mapping[str, object] | None:
    """Return the proof of the theorem that a command declares, None if it declares none, or several."""
    own = [each for each in theorems if command.start <= each.start < command.end]
    values = (each for each in nodes(command.syntax) if whole.kinds.of(each) in VALUES)
    placed = ((node, place) for node in values if (place := span(frontend.lean, node)))
    value, place = next(placed, (None, (0, 0)))
    if value is None or not own or own[0].start >= place[0] or any(place[1] <= each.start for each in own):
        return None
    return {
        "name": own[0].name,
        "start": command.start,
        "value": place[0],
        "end": place[1],
        "tokens": tokens(value),
        "steps": [
            (each.start, each.end, each.block, first_word(each))
            for each in steps(frontend, whole.kinds, value)
        ],
    }
