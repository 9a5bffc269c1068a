"""Image step, snapshots: elaborates as ``lean --json --stdin -o FILE`` does in recent releases.

That runs `Lean.Elab.runFrontend`: `Lean.Language.Lean.process` parses, imports and elaborates, a report
prints each message as it comes, and `Lean.writeModule` writes the result. This module calls the same
functions in the same order. `process` can be given an earlier snapshot, as editors do and as
``lean --incr-load`` does; the farm's has the header and nothing behind it: imports are read once.

Sources: ``src/Lean/Elab/Frontend.lean``, ``src/Lean/Language/Lean.lean`` and ``src/Lean/Shell.lean`` of Lean
4.35.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from farm_workers.binding import table
from farm_workers.binding.lean import Callback, Lean
from farm_workers.binding.objects import (
    EMPTY_TREE,
    NOTHING,
    TRUE,
    LeanError,
    dotted,
    elements,
    field,
    set_field,
    shared,
)
from farm_workers.binding.table import Ability
from farm_workers.images.frontend import TRUST, Frontend, Pairs, definitions
from farm_workers.images.protocol import ALL, APART, CONTEXT_NAME

#: Elaboration in order and in one thread, as in every way of running Lean.
_OPTIONS = ("weak.Elab.async=false",)
#: The option with which `runFrontend` makes Lean forget the state after each command: a state without it can
#: be continued.
_FORGETS = "internal.cmdlineSnapshots={}"
#: Follows a context that is read: without another command behind it, Lean would read its last one again.
_END = "\nsection\nend\n"
#: The extension with the places of declarations.
_PLACES = "Lean.declRangeExt"


class Snapshots(Frontend):
    """Lean's frontend as a chain of snapshots, one for each command."""

    def __init__(self, lean: Lean, options: Sequence[str]) -> None:
        """Read the options. Raises LeanError for an unknown one."""
        super().__init__(lean)
        given = definitions(options)
        self._options, self._keeping = (
            self.options([*_OPTIONS, _FORGETS.format(forgets), *given]) for forgets in ("true", "false")
        )
        self._setup = Callback(self._imports)
        self._above = self._elaboration = self._declared = NOTHING

    def import_header(self, text: str) -> None:
        """Import the modules of a header. Raises LeanError when Lean cannot; its messages are on stdout."""
        self.begin()
        snapshot = self._process(text, NOTHING)
        self._report(snapshot)
        if self._state(snapshot) == NOTHING:
            raise LeanError("the header cannot be imported")
        self._above = snapshot

    def environment(self) -> int:
        """Return the header's environment, or that of the context."""
        return self._environment(self._above)

    def read_on(self, context: str) -> None:
        """Elaborate a context, print its messages, and have programs continue near its end."""
        super().read_on(context)
        self._report(self._above)
        self._leap(len(context.encode("utf-8", "surrogatepass")))

    def read_context(self, context: str) -> None:
        """Elaborate a context, whose messages are printed with those of the programs behind it."""
        if reason := self.lean.lacks(Ability.CONTEXTS):
            raise LeanError(reason)
        self._keep_states()
        self._above = self._process(context + _END, self.lean.some(shared(self._above)))
        if self._state(self._above) == NOTHING:
            raise LeanError("the context cannot be read")
        self._declared = self.kernel_environment()

    def report_in_commands(self) -> bool:
        """Have messages printed while a command is elaborated: Lean does so where it keeps states."""
        if self.lean.lacks(Ability.CONTEXTS) is not None:
            return False
        self._keep_states()
        return True

    def _keep_states(self) -> None:
        lean, self._options = self.lean, self._keeping
        scope = field(lean.get(table.SCOPES, lean.get(table.STATE, self._header())), 0)
        lean.put(table.SCOPE_OPTIONS, scope, shared(self._keeping))

    def _leap(self, end: int) -> None:
        """Have programs continue near the end of a context, so that they skip its commands.

        Lean's snapshots are a chain, a link for each command. Lean skips a link without reading the text when
        the next two commands end before the first difference: the header is made to lead to the last such
        link. A wrong link costs time, not soundness: its text would differ.
        """
        first = self.lean.get(table.FIRST_COMMAND, self._header())
        chain = list(self._commands(first))
        before = [link for link, later in zip(chain, chain[2:], strict=False) if self._ends(later) <= end]
        if before:
            set_field(self.lean.get(table.TASK, first), 0, shared(before[-1]))

    def _ends(self, command: int) -> int:
        """Return the end of a command, in bytes."""
        state = self.lean.get(table.PARSER_STATE, command)
        return self.lean.get(table.PARSER_POSITION, state) >> 1

    def _header(self) -> int:
        """Return Lean's snapshot of the header: a `HeaderProcessedState`."""
        return field(self._processed(self._above), 0)

    def _elaborated(self, program: str) -> bool:
        self._elaboration = self._process(program, self.lean.some(shared(self._above)))
        failed = self._report(self._elaboration)
        return not failed and self._state(self._elaboration) != NOTHING

    def last_environment(self) -> int:
        """Return the environment of the last program."""
        return self._environment(self._elaboration)

    def last_state(self) -> int:
        """Return Lean's state after the last program."""
        return field(self._state(self._elaboration), 0)

    def last_command(self) -> int:
        """Return the syntax of the last command that Lean read, `NOTHING` if it read none."""
        read = self._read()
        return self.lean.get(table.COMMAND_SYNTAX, read[-1]) if read else NOTHING

    def commands(self) -> int:
        """Return how many commands Lean read."""
        return len(self._read())

    def _read(self) -> list[int]:
        processed = self._processed(self._elaboration)
        if processed == NOTHING:
            return []
        return list(self._commands(self.lean.get(table.FIRST_COMMAND, field(processed, 0))))

    def trees(self) -> list[int]:
        """Return Lean's trees of the last program."""
        found = (self.lean.get(table.SNAPSHOT_TREE, each) for each in self._all())
        return [field(tree, 0) for tree in found if tree != NOTHING]

    def messages(self) -> list[int]:
        """Return Lean's messages on the last program."""
        lean, found = self.lean, list[int]()
        for each in self._all():
            log = lean.get(table.SNAPSHOT_MESSAGES, lean.get(table.DIAGNOSTICS, each))
            found += elements(lean.call(table.MESSAGE_ARRAY, shared(log)))
        return found

    def _all(self) -> list[int]:
        return elements(self.lean.call(table.ALL_SNAPSHOTS, self._tree(self._elaboration)))

    def _write_parts(self, module: str, writes: str, more: Pairs) -> None:
        if writes == ALL:
            super()._write_parts(module, writes, more)
            return
        if writes == APART:
            self.write(shared(self.environment()), CONTEXT_NAME)
        self._write_rest(shared(self.last_environment()), module, more)

    def _write_rest(self, environment: int, module: str, more: Pairs) -> None:
        """Write a module without the constants of the context, with `more` constants.

        It has only the places of declarations from Lean's extensions: readers use no other entries, and some
        extensions would go through the whole context to make theirs.
        """
        self._keep_places_only()
        lean, data = self.lean, self.module_data(environment)
        names = elements(lean.get(table.NAMES, data)), elements(lean.get(table.CONSTANTS, data))
        own = [pair for pair in zip(*names, strict=True) if self._is_own(pair[0])]
        entries = [self._own_entries(each) for each in elements(lean.get(table.ENTRIES, data))]
        self.save(module, data, [*own, *more], entries)

    def _keep_places_only(self) -> None:
        """Have Lean forget all extensions of environments except the places of declarations."""
        known, lean = self.lean.constant(table.EXTENSIONS), self.lean
        names = {each: dotted(lean.get(table.EXTENSION_NAME, each)) for each in elements(field(known, 0))}
        places = [shared(each) for each, name in names.items() if name == _PLACES]
        set_field(known, 0, lean.array(places))

    def _is_own(self, name: int) -> bool:
        """Whether a name is declared by the program and not by the context."""
        return self.lean.call(table.FIND, shared(self._declared), shared(name)) == NOTHING

    def _own_entries(self, places: int) -> int:
        """Return the entries of an extension, of name and place each, without those of the context."""
        own = [shared(entry) for entry in elements(field(places, 1)) if self._is_own(field(entry, 0))]
        return self.lean.constructor(0, [shared(field(places, 0)), self.lean.array(own)])

    def _process(self, text: str, earlier: int) -> int:
        setup = self.lean.closure(self._setup)
        return self.lean.call(table.PROCESS, setup, earlier, self.input(text))

    def _report(self, snapshot: int) -> bool:
        """Print all messages of a snapshot as JSON, waiting for them; return whether one is an error."""
        words = self._tree(snapshot), shared(self._options), TRUE, EMPTY_TREE
        return self.lean.call(table.REPORT, *words) == TRUE

    def _tree(self, snapshot: int) -> int:
        lean, instance = self.lean, self.lean.constant(table.AS_TREE)
        if lean.has(table.TO_TREE):
            return lean.call(table.TO_TREE, shared(instance), shared(snapshot))
        return lean.runtime(table.APPLY)(shared(lean.get(table.TREE_METHOD, instance)), shared(snapshot))

    def _state(self, snapshot: int) -> int:
        """Return the state after the last command, waiting for it: an `Option Command.State`."""
        return self.lean.call(table.FINAL_STATE, shared(snapshot))

    def _environment(self, snapshot: int) -> int:
        return shared(self.lean.get(table.ENVIRONMENT, field(self._state(snapshot), 0)))

    def _processed(self, snapshot: int) -> int:
        """Return the `Option HeaderProcessedState` of a text."""
        parsed, lean = self.lean.get(table.PARSED, snapshot), self.lean
        if parsed == NOTHING:
            return NOTHING
        return lean.get(table.PROCESSED, self._value(lean.get(table.PROCESSED_TASK, field(parsed, 0))))

    def _commands(self, first: int) -> Iterator[int]:
        """Yield Lean's snapshot of each command of a text: a `CommandParsedSnapshot`."""
        command = self._value(first)
        yield command
        while (following := self.lean.get(table.NEXT_COMMAND, command)) != NOTHING:
            command = self._value(field(following, 0))
            yield command

    def _value(self, task: int) -> int:
        """Return the value of a finished `Lean.Language.SnapshotTask`."""
        return field(self.lean.get(table.TASK, task), 0)

    def _imports(self, header: int, _context: int, _world: int) -> int:
        """Answer Lean's query about a header: its imports, and the options for them."""
        lean = self.lean
        parts = {
            "mainModuleName": shared(self.main),
            "package?": NOTHING,
            "isModule": lean.call(table.HEADER_IS_MODULE, shared(header)) >> 1,
            "imports": self.note_imports(header),
            "opts": shared(self._options),
            "trustLevel": TRUST,
            "importArts": EMPTY_TREE,
            "plugins": lean.array([]),
        }
        return lean.succeeded(lean.constructor(1, [lean.make(table.SETUP, parts)]))
