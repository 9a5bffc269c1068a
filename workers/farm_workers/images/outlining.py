"""Image step, outlines: writes where the commands, the proofs and the tactics of a file stand.

The file may have errors. Its own code can write anything into the answer: whoever cuts a text by an outline
has the result judged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from farm_workers.binding.objects import LeanError, tag
from farm_workers.binding.table import Ability
from farm_workers.images.constants import THEOREM
from farm_workers.images.elaborated import VALUES, Declared, Elaborated, ElaboratedFile
from farm_workers.images.frontend import Frontend
from farm_workers.images.protocol import OUTLINE_NAME, OutlineAsked
from farm_workers.images.steps import steps, tokens
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
    declared, _ = whole.declared()
    theorems = [each for each in declared if tag(each.info) == THEOREM]
    found = (_proof(frontend, whole, each, theorems) for each in commands)
    outline = {
        "commands": [_command(frontend, whole, each, declared) for each in commands],
        "proofs": [each for each in found if each is not None],
    }
    with open(OUTLINE_NAME, "x", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(outline, file)
    return 0


def _command(
    frontend: Frontend, whole: ElaboratedFile, command: Elaborated, declared: Sequence[Declared]
) -> Mapping[str, object]:
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
        "steps": [(each.start, each.end, each.block) for each in steps(frontend, whole.kinds, value)],
    }
