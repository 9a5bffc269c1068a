"""Image step, the way to elaborate: the best one that the toolchain's binding allows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from farm_workers.binding import table
from farm_workers.binding.description import decoded
from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import FALSE, NOTHING, LeanError, boxed, elements, field, shared, text
from farm_workers.binding.signatures import Description
from farm_workers.binding.table import INITIALIZERS_RUN, Ability
from farm_workers.images.frontend import NEEDED, TRUST, Frontend, definitions, sysroot
from farm_workers.images.snapshots import Snapshots

# `Lean.Elab.processHeader` imports, and `Lean.Elab.IO.processCommands` elaborates the rest. It returns the
# messages when the last command is done, so a program that is killed has none. A context cannot be read once
# for many programs.


#: Elaboration in order and in one thread, as in every way of running Lean.
_OPTIONS = ("Elab.async=false",)
_WEAK = "weak."


class Commands(Frontend):
    """Lean's frontend as a loop over commands."""

    def __init__(self, lean: Lean, options: Sequence[str]) -> None:
        """Read the options. Raises LeanError for an unknown one, and for one that may be unknown."""
        super().__init__(lean)
        given = definitions(options)
        if weak := next((each for each in given if each.startswith(_WEAK)), None):
            raise LeanError(f"the option -D{weak} is not supported in this way to run Lean")
        self._options = self.options([*_OPTIONS, *given])
        self._parser = self._state = self._done = NOTHING

    def import_header(self, text: str) -> None:
        """Import the modules of a header. Raises LeanError when Lean cannot; its messages are on stdout."""
        self.begin()
        lean, source = self.lean, self.input(text)
        parsed = lean.call(table.PARSE_HEADER, shared(source))
        header, rest = field(parsed, 0), field(parsed, 1)
        self._parser = field(rest, 0)
        self.note_imports(header)
        words = shared(header), shared(self._options), shared(field(rest, 1)), source
        more = boxed(TRUST), lean.array([]), FALSE, shared(self.main)
        imported = lean.call(table.PROCESS_HEADER, *words, *more)
        if self._printed(field(imported, 1)):
            raise LeanError("the header cannot be imported")
        environment, messages = shared(field(imported, 0)), shared(field(imported, 1))
        self._state = lean.call(table.COMMAND_STATE, environment, messages, shared(self._options))
        trees = lean.copy(lean.get(table.INFO_STATE, self._state))
        lean.put(table.TREES_ENABLED, trees, 1)
        self._state = lean.copy(self._state)
        lean.put(table.INFO_STATE, self._state, trees)

    def environment(self) -> int:
        """Return the header's environment."""
        return shared(self.lean.get(table.ENVIRONMENT, self._state))

    def _elaborated(self, program: str) -> bool:
        words = self.input(program), shared(self._parser), shared(self._state)
        self._done = self.lean.call(table.PROCESS_COMMANDS, *words)
        return not self._printed(self.lean.get(table.MESSAGES, self.last_state()))

    def last_environment(self) -> int:
        """Return the environment of the last program."""
        return shared(self.lean.get(table.ENVIRONMENT, self.last_state()))

    def last_command(self) -> int:
        """Return the syntax of the last command that Lean read, `NOTHING` if it read none."""
        commands = self._read()
        return commands[-1] if commands else NOTHING

    def commands(self) -> int:
        """Return how many commands Lean read."""
        return len(self._read())

    def _read(self) -> list[int]:
        return [] if self._done == NOTHING else elements(self.lean.get(table.DONE_COMMANDS, self._done))

    def trees(self) -> list[int]:
        """Return Lean's trees of the last program."""
        trees = self.lean.get(table.TREES, self.lean.get(table.INFO_STATE, self.last_state()))
        return elements(self.lean.call(table.TREES_ARRAY, shared(trees)))

    def messages(self) -> list[int]:
        """Return Lean's messages on the last program."""
        return self._of(self.lean.get(table.MESSAGES, self.last_state()))

    def last_state(self) -> int:
        """Return Lean's state after the last program."""
        return self.lean.get(table.DONE_STATE, self._done)

    def _of(self, log: int) -> list[int]:
        return elements(self.lean.call(table.MESSAGE_ARRAY, shared(log)))

    def _printed(self, log: int) -> bool:
        """Print messages as ``lean --json`` does; return whether one is an error."""
        lean, failed = self.lean, False
        for message in self._of(log):
            said = lean.call(table.JSON_TEXT, lean.call(table.MESSAGE_JSON, shared(message)))
            line = text(said).encode() + b"\n"
            while line:
                line = line[os.write(1, line) :]
            failed = failed or lean.get(table.SEVERITY, message) == lean.number(table.ERROR)
        return failed


#: The ways to elaborate, the best one first.
WAYS: dict[Ability, type[Snapshots] | type[Commands]] = {
    Ability.SNAPSHOTS: Snapshots,
    Ability.COMMANDS: Commands,
}


def described(path: str) -> Description | None:
    """Return the description in a file, None for the farm's own. Raises NotDescribed and OSError."""
    return decoded(Path(path).read_text(encoding="utf-8")) if path else None


def ways(name: str) -> list[Ability]:
    """Return the ways to try: that of a name, or all of them."""
    return [Ability(name)] if name else list(WAYS)


def loaded(
    library: Path,
    options: Sequence[str],
    description: Description | None = None,
    among: Sequence[Ability] = tuple(WAYS),
) -> Frontend:
    """Load Lean with options of its command line, to elaborate in the first of these ways that it has.

    Raises LeanError for an unknown option, and for a Lean that has none of the ways.
    """
    lean = Lean(str(library), NEEDED, description, sysroot(library))
    lean.runtime(INITIALIZERS_RUN)()
    for way in among:
        if lean.lacks(way) is None:
            return WAYS[way](lean, options)
    raise LeanError(f"this Lean does not fit the farm: {lean.lacks(among[-1])}")
