"""Image step, Lean: calls the frontend of Lean's own command line through its shared library.

``lean --json --stdin -o FILE`` runs `Lean.Elab.runFrontend`: `Lean.Language.Lean.process` parses, imports and
elaborates, a report prints each message as it comes, and `Lean.writeModule` writes the result. This module
calls the same functions in the same order. `process` can be given an earlier snapshot, as editors do and as
``lean --incr-load`` does; the farm's has the header and nothing behind it: imports are read once.

It follows Lean's sources of 4.35 (``src/Lean/Elab/Frontend.lean``, ``src/Lean/Language/Lean.lean``,
``src/Lean/Shell.lean``), and was run with that version. `farm_workers.replay.lean` describes objects and
functions as seen from Python.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from farm_workers.images.protocol import ALL, APART, CONTEXT_NAME
from farm_workers.replay.lean import NOTHING, TRUE, Lean, LeanError, dotted, elements, field, shared, word

#: Names that Lean's command line gives to the main module of a program on standard input, and to its file.
_MAIN_MODULE, _FILE = "_stdin", "<stdin>"
#: `Lean.defaultTrustLevel`, which the command line uses.
_TRUST = 1024
#: An empty tree of the standard library: its only constructor without fields is the second.
_NO_ENTRIES = 3
#: Elaboration in order and in one thread, as in every way of running Lean.
_OPTIONS = ("weak.Elab.async=false",)
#: The option with which `runFrontend` makes Lean forget the state after each command: a state without it can
#: be continued.
_FORGETS = "internal.cmdlineSnapshots={}"
#: Follows a context that is read: without another command behind it, Lean would read its last one again.
_END = "\nsection\nend\n"
#: The extension with the places of declarations.
_PLACES = "Lean.declRangeExt"
#: `Lean.OLeanLevel.private`: the whole module.
_PRIVATE = 2 << 1 | 1
#: Fields of Lean's snapshots of a text: `HeaderParsedSnapshot.result?`, `HeaderProcessedSnapshot.result?`,
#: `CommandParsedSnapshot.stx`, `parserState` and `nextCmdSnap?`, `SnapshotTask.task`.
_PARSED, _PROCESSED, _SYNTAX, _PARSER_STATE, _NEXT, _TASK = 4, 2, 1, 2, 4, 3
#: Fields of `HeaderProcessedState.cmdState` and `firstCmdSnap`, `Command.State.scopes` and `Scope.opts`.
_STATE, _FIRST, _SCOPES, _SCOPE_OPTIONS = 0, 1, 2, 1
_CLOSURE_TAG = 245
#: The syntax at the end of a text: the last command of each text that Lean's parser reads to its end.
_END_OF_INPUT = "Lean.Parser.Command.eoi"
_LINE_BUFFERED = 1  # _IOLBF of <stdio.h>, glibc and musl

#: A function of three words that Lean can call; its maker must keep a reference.
Callback = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t)


#: The same with one word.
Replacement = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_size_t)


#: Names and `ConstantInfo` of Lean's.
Pairs = Sequence[tuple[int, int]]
Added = Callable[[], Pairs]


class NotWritten(LeanError):
    """Lean could not write a module."""


class Frontend(Lean):
    """Lean's frontend in this process: imports one header, then elaborates programs that begin with it.

    `imported` are the modules that the header names, in its order. `elaborate` is to be called once in each
    fork; its memory is never freed.
    """

    def __init__(self, library: Path, options: Sequence[str]) -> None:
        """Load Lean with options of its command line. Raises LeanError for an unknown one."""
        super().__init__(str(library), sysroot=_sysroot(library))
        self.function("lean_enable_initializer_execution", 0)()
        self._allocate = self.function("lean_alloc_object", 1)
        given = list(map(_definition, options))
        self._options, self._keeping = (
            self._read([*_OPTIONS, _FORGETS.format(forgets), *given]) for forgets in ("true", "false")
        )
        self._main = self.call("lean_name_mk_string", NOTHING, self.string(_MAIN_MODULE))
        self._setup = Callback(self._imports)
        self._above = self._elaborated = self._declared = NOTHING
        self.imported: list[str] = []
        libc = ctypes.CDLL(None)
        stdout = ctypes.c_void_p.in_dll(libc, "stdout")
        libc.setvbuf(stdout, None, _LINE_BUFFERED, 0)  # Lean's messages are written before a kill
        self._flush = libc.fflush

    def import_header(self, text: str) -> None:
        """Import the modules of a header. Raises LeanError when Lean cannot; its messages are on stdout."""
        self.begin()
        snapshot = self._process(text, NOTHING)
        self._report(snapshot)
        if self._state(snapshot) == NOTHING:
            raise LeanError("the header cannot be imported")
        self._above = snapshot

    def imports(self, *module: str) -> bool:
        """Return whether the header imports a module, given by the parts of its name, directly or not."""
        name = NOTHING
        for part in module:
            name = self.call("lean_name_mk_string", name, self.string(part))
        environment = shared(_environment(self._state(self._above)))
        return self.call("l_Lean_Environment_getModuleIdx_x3f___boxed", environment, name) != NOTHING

    def read_on(self, context: str) -> None:
        """Elaborate a text that begins with the header, from which programs with the same text continue."""
        self.begin()
        self._read_context(context)
        self._report(self._above)
        self._leap(len(context.encode("utf-8", "surrogatepass")))

    def _read_context(self, context: str) -> None:
        self._options = self._keeping
        scope = field(field(field(self._header(), _STATE), _SCOPES), 0)
        ctypes.c_size_t.from_address(scope + 8 + 8 * _SCOPE_OPTIONS).value = shared(self._keeping)
        self._above = self._process(context + _END, self.constructor(1, [shared(self._above)]))
        if self._state(self._above) == NOTHING:
            raise LeanError("the context cannot be read")
        self._declared = self.kernel_environment()

    def _leap(self, end: int) -> None:
        """Have programs continue near the end of a context, so that they skip its commands.

        Lean's snapshots are a chain, a link for each command. Lean skips a link without reading the text when
        the next two commands end before the first difference: the header is made to lead to the last such
        link. A wrong link costs time, not soundness: its text would differ.
        """
        first = field(self._header(), _FIRST)
        chain = list(_commands(first))
        before = [link for link, later in zip(chain, chain[2:], strict=False) if _ends(later) <= end]
        if before:
            ctypes.c_size_t.from_address(field(first, _TASK) + 8).value = shared(before[-1])

    def _header(self) -> int:
        """Return Lean's snapshot of the header: a `HeaderProcessedState`."""
        return field(_processed(self._above), 0)

    def begin(self) -> None:
        """Start threads for Lean's tasks: a fork does not inherit its parent's."""
        self.call("lean_init_task_manager_using", 1)

    def kernel_environment(self) -> int:
        """Return the kernel's view of the header's environment."""
        return self.kernel_of(_environment(self._state(self._above)))

    def last_environment(self) -> int:
        """Return the kernel's view of the last program's environment."""
        return self.kernel_of(_environment(self._state(self._elaborated)))

    def kernel_of(self, environment: int) -> int:
        """Return the kernel's view of an environment."""
        return self.call("lean_elab_environment_to_kernel_env", shared(environment))

    def elaborate(
        self,
        program: str,
        module: str | None,
        writes: str = ALL,
        context: str = "",
        *,
        added: Added = list,
    ) -> bool:
        """Elaborate a program, printing messages as they come, and write its module; False after an error.

        `writes` selects the written part of the module, `added` returns further constants for it, as names
        and `ConstantInfo`. A `context` at the beginning of the program is read first. Raises NotWritten.
        """
        self.begin()
        if context:
            self._read_context(context)
        snapshot = self._elaborated = self._process(program, self.constructor(1, [shared(self._above)]))
        failed = self._report(snapshot)
        state = self._state(snapshot)
        if failed or state == NOTHING:
            return False
        if module is not None:
            self._write_parts(state, module, writes, added())
        self._flush(None)
        return True

    def reached_end(self) -> bool:
        """Return whether Lean read the last program to its end: `#exit` and the like end it earlier."""
        processed = _processed(self._elaborated)
        if processed == NOTHING:
            return False
        *_, last = _commands(field(field(processed, 0), _FIRST))
        return dotted(self.call("l_Lean_Syntax_getKind", shared(field(last, _SYNTAX)))) == _END_OF_INPUT

    def snapshots(self) -> list[int]:
        """Return Lean's snapshots of the steps of the last program: `Lean.Language.Snapshot` each."""
        return elements(self.call("l_Lean_Language_SnapshotTree_getAll", self._tree(self._elaborated)))

    def _write_parts(self, state: int, module: str, writes: str, more: Pairs) -> None:
        try:
            if writes == APART:
                self.result(self._write(_environment(self._state(self._above)), CONTEXT_NAME))
            environment = _environment(state)
            if more or writes != ALL:
                self.result(self._write_some(environment, module, more, only_rest=writes != ALL))
            else:
                self.result(self._write(environment, module))
        except LeanError as error:
            raise NotWritten(str(error)) from error

    def _write(self, environment: int, module: str) -> int:
        return self.call("l_Lean_writeModule___boxed", environment, self.string(module), TRUE, NOTHING)

    def _write_some(self, environment: int, module: str, more: Pairs, *, only_rest: bool) -> int:
        """Write a module as `Lean.writeModule` does, with more constants, or without those of the context.

        A module without the context's constants has only the places of declarations from Lean's extensions:
        readers use no other entries, and some extensions would go through the whole context to make theirs.
        """
        if only_rest:
            self._keep_places_only()
        data = self.result(self.call("l_Lean_mkModuleData___boxed", environment, _PRIVATE, NOTHING))
        imports, names, constants, others, entries, is_module = (field(data, number) for number in range(6))
        own = list(zip(elements(names), elements(constants), strict=True))
        added = elements(entries)
        if only_rest:
            own = [pair for pair in own if self._is_own(pair[0])]
            added = [self._own_entries(each) for each in added]
        own += more
        fields = [
            shared(imports),
            *(self._array([pair[number] for pair in own]) for number in range(2)),
            shared(others),
            self._array(added),
        ]
        rest = self.constructor(0, fields, bytes([is_module & 0xFF, *bytes(7)]))
        words = self.string(module), shared(self._main), rest, NOTHING
        return self.call("l_Lean_saveModuleData___boxed", *words)

    def _keep_places_only(self) -> None:
        """Have Lean forget all extensions of environments except the places of declarations."""
        known = self.constant("l_Lean_persistentEnvExtensionsRef") + 8  # a reference has its value here
        places = [each for each in elements(word(known)) if dotted(field(each, 1)) == _PLACES]
        ctypes.c_size_t.from_address(known).value = self._array(places)

    def _is_own(self, name: int) -> bool:
        """Whether a name is declared by the program and not by the context."""
        return self.call("lean_environment_find", shared(self._declared), shared(name)) == NOTHING

    def _own_entries(self, places: int) -> int:
        """Return the entries of an extension, of name and place each, without those of the context."""
        own = [entry for entry in elements(field(places, 1)) if self._is_own(field(entry, 0))]
        return self.constructor(0, [shared(field(places, 0)), self._array(own)])

    def _array(self, values: Sequence[int]) -> int:
        found = NOTHING
        for value in reversed(values):
            found = self.constructor(1, [shared(value), found])
        return self.call("lean_array_mk", found)

    def _process(self, text: str, earlier: int) -> int:
        size = len(text.encode("utf-8", "surrogatepass")) << 1 | 1
        context = self.call(
            "l_Lean_Parser_mkInputContext___redArg___boxed", self.string(text), self.string(_FILE), TRUE, size
        )
        return self.call(
            "l_Lean_Language_Lean_process___boxed", self.closure(self._setup), earlier, context, NOTHING
        )

    def _report(self, snapshot: int) -> bool:
        """Print all messages of a snapshot as JSON, waiting for them; return whether one is an error."""
        report = "l_Lean_Language_SnapshotTree_runAndReport___boxed"
        words = self._tree(snapshot), shared(self._options), TRUE, _NO_ENTRIES, NOTHING
        return self.result(self.call(report, *words)) == TRUE

    def _tree(self, snapshot: int) -> int:
        instance = self.constant("l_Lean_Language_Lean_instToSnapshotTreeHeaderParsedSnapshot")
        return self.call("l_Lean_Language_toSnapshotTree___redArg", instance, shared(snapshot))

    def _state(self, snapshot: int) -> int:
        """Return the state after the last command, waiting for it: an `Option Command.State`."""
        return self.call("l_Lean_Language_Lean_waitForFinalCmdState_x3f", shared(snapshot))

    def _imports(self, header: int, _context: int, _world: int) -> int:
        """Answer Lean's query about a header: its imports, and the options for them."""
        is_module = self.call("l_Lean_Elab_HeaderSyntax_isModule___boxed", shared(header)) == TRUE
        scalars = _TRUST.to_bytes(4, "little") + bytes([is_module, 0, 0, 0])
        imports = self.call("l_Lean_Elab_HeaderSyntax_imports___boxed", shared(header), TRUE)
        self.imported = [dotted(field(each, 0)) for each in elements(imports)]
        plugins = self.call("lean_array_mk", NOTHING)
        fields = [shared(self._main), NOTHING, imports, shared(self._options), _NO_ENTRIES, plugins]
        answer = self.constructor(1, [self.constructor(0, fields, scalars)])
        return self.constructor(0, [answer])

    def _read(self, options: Sequence[str]) -> int:
        """Return options as a Lean object."""
        found = self.constant("l_Lean_Options_empty")
        for option in options:
            setting = "l___private_Lean_Shell_0__Lean_setConfigOption___boxed"
            found = self.result(self.call(setting, found, self.string(option), NOTHING))
        return shared(found)

    def closure(self, function: ctypes._CFunctionType) -> int:
        """Return a `Callback` or a `Replacement` as a Lean object."""
        place = self._object(_CLOSURE_TAG, 0, 24)
        ctypes.c_size_t.from_address(place + 8).value = ctypes.cast(function, ctypes.c_void_p).value or 0
        ctypes.c_uint32.from_address(place + 16).value = len(function.argtypes or ())  # and none given
        return place

    def constructor(self, tag: int, fields: Sequence[int], scalars: bytes = b"") -> int:
        """Return a new object of these fields, which it takes over, and of the scalars behind them."""
        place = self._object(tag, len(fields), 8 + 8 * len(fields) + len(scalars))
        for number, value in enumerate(fields):
            ctypes.c_size_t.from_address(place + 8 + 8 * number).value = value
        ctypes.memmove(place + 8 + 8 * len(fields), scalars, len(scalars))
        return place

    def _object(self, tag: int, pointers: int, size: int) -> int:
        """Return a new object with one reference to it."""
        place = self._allocate(size)
        ctypes.c_uint64.from_address(place).value = tag << 56 | pointers << 48 | size << 32 | 1
        return place


def _environment(state: int) -> int:
    """Return the environment of a present `Option Command.State`."""
    return shared(field(field(state, 0), 0))


def _processed(snapshot: int) -> int:
    """Return the `Option HeaderProcessedState` of a text."""
    parsed = field(snapshot, _PARSED)
    return NOTHING if parsed == NOTHING else field(_value(field(field(parsed, 0), 1)), _PROCESSED)


def _commands(first: int) -> Iterator[int]:
    """Yield Lean's snapshot of each command of a text: a `CommandParsedSnapshot`."""
    command = _value(first)
    yield command
    while (following := field(command, _NEXT)) != NOTHING:
        command = _value(field(following, 0))
        yield command


def _value(task: int) -> int:
    """Return the value of a finished `Lean.Language.SnapshotTask`."""
    return field(field(task, _TASK), 0)


def _ends(command: int) -> int:
    """Return the end of a command, in bytes."""
    return field(field(command, _PARSER_STATE), 0) >> 1


def _definition(option: str) -> str:
    if not option.startswith("-D"):
        raise LeanError(f"the option {option} is not supported in an image")
    return option[2:]


def _sysroot(library: Path) -> str:
    """Return the folder of the installation that a library belongs to; /dev/null for one outside of any."""
    prefix = library.parent.parent.parent
    return str(prefix) if (prefix / "lib" / "lean" / "Init.olean").exists() else os.devnull
