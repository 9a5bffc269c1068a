"""Image step, extraction: elaborates a file command by command, and writes what its theorems are.

A fork of the header's image does so in its cell. The file's own code can write anything into its answer: a
reader trusts nothing of it, and a line is proved only when it is judged as any other line is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TextIO

from farm_workers.binding.objects import LeanError, field, shared, tag
from farm_workers.binding.table import Ability
from farm_workers.images.constants import THEOREM, Constants
from farm_workers.images.elaborated import VALUES, Declared, Elaborated, ElaboratedFile
from farm_workers.images.frontend import Frontend
from farm_workers.images.protocol import EXTRACTED_NAME, ExtractAsked
from farm_workers.images.steps import States, histogram, steps, tokens
from farm_workers.images.syntax import nodes, span
from farm_workers.images.terms import printed_type

_COMMAND = "Lean.Parser.Command."
#: The parts of a declaration that a line quotes.
_QUOTED = {
    f"{_COMMAND}docComment": "doc",
    "Lean.Parser.Term.attributes": "attributes",
    f"{_COMMAND}declSig": "signature",
}
#: The part of a declaration with its name and universes, and the most characters of a name in a message.
_NAME, _MOST_NAME = f"{_COMMAND}declId", 80
_SORRY = "sorryAx"


class _LeftOut(Exception):
    """A theorem has no line: has the reason, a word, and more about it."""

    def __init__(self, why: str, more: str = "") -> None:
        super().__init__(why)
        self.why, self.more = why, more


def write_extract(frontend: Frontend, asked: ExtractAsked) -> int:
    """Write the theorems of a file as JSON lines, and return the exit status of this process.

    The last line says that the file was read to its end. Raises LeanError where Lean cannot be asked.
    """
    if reason := frontend.lean.lacks(Ability.EXTRACTION):
        raise LeanError(reason)
    with open(EXTRACTED_NAME, "x", encoding="utf-8") as file:  # noqa: PTH123
        _Extraction(frontend, asked, file).run()
    return 0


class _Extraction:
    """One file, and the file that its lines are written to."""

    def __init__(self, frontend: Frontend, asked: ExtractAsked, file: TextIO) -> None:
        self._frontend, self._lean, self._asked, self._file = frontend, frontend.lean, asked, file
        self._whole = ElaboratedFile(frontend, asked["program"], asked["start"])

    def run(self) -> None:
        """Elaborate the file, and write its lines."""
        commands = list(self._whole.commands(costs=self._asked["costs"]))
        declared, own = self._whole.declared()
        self._environment = shared(self._whole.environment())
        constants = Constants(self._lean, self._frontend.kernel_of(shared(self._environment)), own)
        theorems = [each for each in declared if tag(each.info) == THEOREM]
        for each in theorems[: self._asked["most"]]:
            try:
                self._write(self._line(each, commands, constants))
            except _LeftOut as reason:
                self._write({"left_out": each.name, "why": reason.why, "more": reason.more})
        for each in theorems[self._asked["most"] :]:
            self._write({"left_out": each.name, "why": "most"})
        self._write({"exited": self._whole.exits(commands)})

    def _write(self, line: Mapping[str, object]) -> None:
        self._file.write(json.dumps(line) + "\n")

    def _line(
        self, it: Declared, commands: Sequence[Elaborated], constants: Constants
    ) -> Mapping[str, object]:
        """Return the line of a theorem. Raises _LeftOut."""
        command = next((each for each in commands if each.start <= it.start < each.end), None)
        if command is None:
            raise _LeftOut("no text")
        if (first := next((each for each in commands if each.error is not None), None)) is not None:
            if first.end <= it.start:  # an error of the theorem itself may follow from that one
                raise _LeftOut("error above", self._told(first))
            if first is command:
                raise _LeftOut("error", self._told(first))
        if it.end != command.end:
            raise _LeftOut("part of a command")
        start, value = self._value(command, it)
        axioms = constants.axioms(it.name)
        if _SORRY in axioms:
            raise _LeftOut("sorry")
        type_ = field(field(field(it.info, 0), 0), 2)
        return {
            "name": it.name,
            "start": it.start,
            "proof": start,
            "end": it.end,
            "type": printed_type(self._lean, command.tree, type_),
            "used": (used := constants.used(it.name)),
            "own": [each for each in used if constants.has(each)],
            "repository": constants.of_modules(used, self._environment, self._asked["modules"]),
            "axioms": sorted(axioms),
            "cost": command.cost,
            **self._quoted(command, it),
            **self._proof(command, value),
        }

    def _told(self, command: Elaborated) -> str:
        """Return where the first error of a command stands, in words, and Lean's words."""
        assert command.error is not None  # noqa: S101 - the caller has looked
        names = (node for node in nodes(command.syntax) if self._whole.kinds.of(node) == _NAME)
        place = next(filter(None, (span(self._lean, each) for each in names)), None)
        start, end = place or (command.start, command.end)
        lines = self._whole.source[start:end].decode("utf-8", "replace").strip().splitlines()
        return (
            f"line {command.error.line}, in {(lines or ['the text'])[0][:_MOST_NAME]}: {command.error.words}"
        )

    def _value(self, command: Elaborated, it: Declared) -> tuple[int, int]:
        """Return the first byte and the syntax of a declaration's value, which ends the declaration."""
        for node in nodes(command.syntax):
            if self._whole.kinds.of(node) in VALUES:
                place = span(self._lean, node)
                if place is not None and it.start < place[0] and place[1] == it.end:
                    return place[0], node
        raise _LeftOut("no proof")

    def _quoted(self, command: Elaborated, it: Declared) -> Mapping[str, str]:
        """Return the parts of a declaration that a line quotes, as the text has them."""
        found: dict[str, str] = {}
        for node in nodes(command.syntax):
            what = _QUOTED.get(self._whole.kinds.of(node))
            if what is None or what in found:
                continue
            place = span(self._lean, node)
            if place is not None and it.start <= place[0]:
                found[what] = self._whole.source[slice(*place)].decode("utf-8", "replace")
        return found

    def _proof(self, command: Elaborated, value: int) -> Mapping[str, object]:
        """Return the measures of a proof, and its states where they are asked for."""
        found = steps(self._frontend, self._whole.kinds, value)
        measures = {
            "tokens": tokens(value),
            "step_count": len(found),
            "depth": max((each.depth for each in found), default=0),
            "histogram": histogram(found),
        }
        if not self._asked["states"]:
            return measures
        return {**measures, **States(self._frontend, self._whole.goals, command.tree).of(found)}
