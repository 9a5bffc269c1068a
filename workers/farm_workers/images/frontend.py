"""Image step, Lean: imports one header, then elaborates programs that begin with it, in this process.

There are two ways to elaborate, and both call functions that Lean's own command line calls: `Snapshots`
prints messages as they come and can read a context once, `Commands` needs less of Lean.
"""

from __future__ import annotations

import ctypes
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from farm_workers.binding import table
from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import NOTHING, TRUE, LeanError, boxed, dotted, elements, shared
from farm_workers.binding.table import Ability
from farm_workers.images.protocol import ALL

#: Names that Lean's command line gives to the main module of a program on standard input, and to its file.
MAIN_MODULE, _FILE = "_stdin", "<stdin>"
#: `Lean.defaultTrustLevel`, which the command line uses.
TRUST = 1024
_LINE_BUFFERED = 1  # _IOLBF of <stdio.h>, glibc and musl
#: The syntax at the end of a text: the last command of each text that Lean's parser reads to its end.
_END_OF_INPUT = "Lean.Parser.Command.eoi"

#: Names and `ConstantInfo` of Lean's.
Pairs = Sequence[tuple[int, int]]
Added = Callable[[], Pairs]


class NotWritten(LeanError):
    """Lean could not write a module."""


class Frontend(ABC):
    """Lean's frontend in this process.

    `imported` are the modules that the header names, in its order. `elaborate` is to be called once in each
    fork; its memory is never freed.
    """

    def __init__(self, lean: Lean) -> None:
        self.lean = lean
        self.imported: list[str] = []
        self.main = lean.name(MAIN_MODULE)
        libc = ctypes.CDLL(None)
        stdout = ctypes.c_void_p.in_dll(libc, "stdout")
        libc.setvbuf(stdout, None, _LINE_BUFFERED, 0)  # Lean's messages are written before a kill
        self._flush = libc.fflush

    # The header

    @abstractmethod
    def import_header(self, text: str) -> None:
        """Import the modules of a header. Raises LeanError when Lean cannot; its messages are on stdout."""

    @abstractmethod
    def environment(self) -> int:
        """Return the header's environment."""

    def imports(self, *module: str) -> bool:
        """Return whether the header imports a module, given by the parts of its name, directly or not."""
        name = self.lean.name(*module)
        return self.lean.call(table.MODULE_INDEX, self.environment(), name) != NOTHING

    def kernel_environment(self) -> int:
        """Return the kernel's view of the header's environment."""
        return self.kernel_of(self.environment())

    def kernel_of(self, environment: int) -> int:
        """Return the kernel's view of an environment."""
        return self.lean.call(table.OF_KERNEL, shared(environment))

    def begin(self) -> None:
        """Start threads for Lean's tasks: a fork does not inherit its parent's."""
        self.lean.runtime(table.START_TASKS)(1)

    # A context

    def read_on(self, context: str) -> None:
        """Elaborate a text that begins with the header, from which programs with the same text continue.

        Raises LeanError where that is not to be had.
        """
        self.begin()
        self.read_context(context)

    def read_context(self, context: str) -> None:
        """Elaborate a context, whose messages are printed with those of the programs behind it."""
        raise LeanError(f"this way to run Lean cannot read {len(context)} characters before a program")

    # A program

    def report_in_commands(self) -> bool:
        """Have messages printed while a command is elaborated, and not at its end; False if Lean cannot."""
        return False

    def elaborate(
        self,
        program: str,
        module: str | None,
        writes: str = ALL,
        context: str = "",
        *,
        added: Added = list,
    ) -> bool:
        """Elaborate a program, printing its messages, and write its module; False after an error.

        `writes` selects the written part of the module, `added` returns further constants for it, as names
        and `ConstantInfo`. A `context` at the beginning of the program is read first. Raises NotWritten.
        """
        self.begin()
        if context:
            self.read_context(context)
        if not self._elaborated(program):
            return False
        if module is not None:
            more = added()
            try:
                self._write_parts(module, writes, more)
            except LeanError as error:
                raise NotWritten(str(error)) from error
        self._flush(None)
        return True

    @abstractmethod
    def _elaborated(self, program: str) -> bool:
        """Elaborate a program, printing its messages; return whether there is no error."""

    @abstractmethod
    def last_environment(self) -> int:
        """Return the environment of the last program."""

    @abstractmethod
    def last_state(self) -> int:
        """Return Lean's state after the last program: a `Lean.Elab.Command.State`."""

    @abstractmethod
    def last_command(self) -> int:
        """Return the syntax of the last command that Lean read, `NOTHING` if it read none."""

    @abstractmethod
    def commands(self) -> int:
        """Return how many commands of the last program Lean read."""

    @abstractmethod
    def trees(self) -> list[int]:
        """Return Lean's trees of the last program: `Lean.Elab.InfoTree` each."""

    @abstractmethod
    def messages(self) -> list[int]:
        """Return Lean's messages on the last program: `Lean.Message` each."""

    def reached_end(self) -> bool:
        """Return whether Lean read the last program to its end: `#exit` and the like end it earlier."""
        last = self.last_command()
        kind = NOTHING if last == NOTHING else self.lean.call(table.SYNTAX_KIND, shared(last))
        return dotted(kind) == _END_OF_INPUT

    def _write_parts(self, module: str, writes: str, more: Pairs) -> None:
        if writes != ALL:
            raise LeanError("this way to run Lean writes whole modules only")
        environment = shared(self.last_environment())
        if more:
            self.write_with(environment, module, more)
        else:
            self.write(environment, module)

    def write(self, environment: int, module: str) -> None:
        """Write a module. Raises LeanError."""
        self.lean.call(table.WRITE_MODULE, environment, self.lean.string(module))

    def write_with(self, environment: int, module: str, more: Pairs) -> None:
        """Write a module as `write` does, with more constants. Raises LeanError."""
        lean, data = self.lean, self.module_data(environment)
        names = elements(lean.get(table.NAMES, data)), elements(lean.get(table.CONSTANTS, data))
        own = list(zip(*names, strict=True))
        self.save(module, data, [*own, *more], elements(lean.get(table.ENTRIES, data)))

    def module_data(self, environment: int) -> int:
        """Return all that Lean would write of an environment: its `ModuleData`."""
        level = boxed(self.lean.number(table.WHOLE_MODULE))
        return self.lean.call(table.MODULE_DATA, environment, level)

    def save(self, module: str, data: int, constants: Pairs, entries: Sequence[int]) -> None:
        """Write a `ModuleData` with other constants and entries of extensions. Raises LeanError."""
        lean = self.lean
        names, infos = ([shared(pair[number]) for pair in constants] for number in range(2))
        parts = {
            "imports": shared(lean.get(table.IMPORTS, data)),
            "constNames": lean.array(names),
            "constants": lean.array(infos),
            "extraConstNames": shared(lean.get(table.EXTRA_NAMES, data)),
            "entries": lean.array([shared(each) for each in entries]),
            "isModule": lean.get(table.IS_MODULE, data),
        }
        lean.call(table.SAVE_MODULE, lean.string(module), shared(self.main), lean.make(table.MODULE, parts))

    # For both ways

    def input(self, text: str) -> int:
        """Return Lean's `InputContext` of a text."""
        end = boxed(len(text.encode("utf-8", "surrogatepass")))
        return self.lean.call(table.INPUT, self.lean.string(text), self.lean.string(_FILE), end)

    def note_imports(self, header: int) -> int:
        """Note the names of a header's imports; return the imports."""
        imports = self.lean.call(table.HEADER_IMPORTS, shared(header), TRUE)
        names = (self.lean.get(table.IMPORTED_MODULE, each) for each in elements(imports))
        self.imported = [dotted(each) for each in names]
        return imports

    def options(self, given: Sequence[str]) -> int:
        """Return options as a Lean object. Raises LeanError for an unknown one."""
        lean, found = self.lean, shared(self.lean.constant(table.NO_OPTIONS))
        if lean.has(table.SET_OPTION):
            for option in given:
                found = lean.call(table.SET_OPTION, found, lean.string(option))
            return shared(found)
        for option in given:
            name, _, value = option.partition("=")
            found = lean.call(table.KEEP_OPTION, found, lean.name(*name.split(".")), lean.string(value))
        return shared(lean.call(table.READ_OPTIONS, found))


def definitions(options: Sequence[str]) -> list[str]:
    """Return the definitions of options of Lean's command line. Raises LeanError for other options."""
    for option in options:
        if not option.startswith("-D"):
            raise LeanError(f"the option {option} is not supported in an image")
    return [option.removeprefix("-D") for option in options]


def sysroot(library: Path) -> str:
    """Return the folder of the installation that a library belongs to; /dev/null for one outside of any."""
    prefix = library.parent.parent.parent
    return str(prefix) if (prefix / "lib" / "lean" / "Init.olean").exists() else os.devnull


#: The abilities that every image needs, besides a way to elaborate.
NEEDED = (Ability.WRITE, Ability.SEAL)
