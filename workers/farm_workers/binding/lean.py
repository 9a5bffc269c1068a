"""Binding step, Lean: calls the functions of a toolchain's library in this process, through ctypes."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import TypeVar

from farm_workers.binding import table
from farm_workers.binding.bind import FieldPlace, Invocation, Layout, bind
from farm_workers.binding.description import NotDescribed, shipped
from farm_workers.binding.mangling import symbol_of
from farm_workers.binding.objects import (
    CLOSURE_BYTES,
    CLOSURE_TAG,
    NOTHING,
    LeanError,
    field,
    put,
    shared,
    tag,
    text,
    word,
)
from farm_workers.binding.signatures import Description
from farm_workers.binding.table import (
    Ability,
    Constructor,
    Entry,
    Function,
    Gives,
    LibraryConstant,
    RuntimeFunction,
    Structure,
    StructureField,
)

_CONSTRUCTOR_BYTES = 8
_T = TypeVar("_T")

#: A function of three words that Lean can call; its maker must keep a reference.
Callback = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t)
#: The same with one word, and with the words of an action of the elaborator's two inner monads.
Replacement = ctypes.CFUNCTYPE(ctypes.c_size_t, *[ctypes.c_size_t] * 1)
InMeta = ctypes.CFUNCTYPE(ctypes.c_size_t, *[ctypes.c_size_t] * 5)
InTerm = ctypes.CFUNCTYPE(ctypes.c_size_t, *[ctypes.c_size_t] * 7)

#: A function of Lean: words in, a word out.
Words = Callable[..., int]


class Lean:
    """Lean's shared library in this process; only once, and without a way back."""

    def __init__(
        self,
        library: str,
        needs: Sequence[Ability],
        description: Description | None = None,
        sysroot: str = "/dev/null",
    ) -> None:
        """Load Lean for some abilities; modules are found in its installation `sysroot`, besides LEAN_PATH.

        Without a description the farm's own for that release is used. Raises LeanError if the binding lacks
        an ability: nothing that does not match is ever called.
        """
        self._library = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        self._functions: dict[Function | RuntimeFunction, Words] = {}
        self._loaded("lean_initialize", 0)()
        self.binding = bind(description or self._shipped(), self.exports)
        for ability in (Ability.START, *needs):
            if ability in self.binding.lacking:
                raise LeanError(f"this Lean does not fit the farm: {self.binding.lacking[ability]}")
        if Ability.REPLAY in needs or Ability.SEAL in needs:
            self.action(self.runtime(table.REPLAY_READY)(1))
        self.runtime(table.INITIALIZED)()
        self.call(table.SEARCH_PATH, self.string(sysroot), NOTHING)

    def _shipped(self) -> Description:
        release = (self._value(symbol_of(each.name)) >> 1 for each in (table.MAJOR, table.MINOR))
        try:
            return shipped(*release)
        except NotDescribed as error:
            raise LeanError(str(error)) from error

    def exports(self, symbol: str) -> bool:
        """Return whether the library has a symbol."""
        try:
            self._library[symbol]
        except AttributeError:
            return False
        return True

    def has(self, entry: Entry) -> bool:
        """Return whether an entry of the table is bound."""
        return entry in self.binding.entries

    def lacks(self, ability: Ability) -> str | None:
        """Return why an ability is not to be had, None if it is."""
        return self.binding.lacking.get(ability)

    # Functions and constants

    def call(self, entry: Function, *words: int) -> int:
        """Call a function and return its value. Raises LeanError with the message of a failed action."""
        return self.function(entry)(*words)

    def function(self, entry: Function) -> Words:
        """Return a function of the words that the table says, which `call` would call."""
        known = self._functions.get(entry)
        if known is None:
            known = self._functions[entry] = self._called(entry)
        return known

    def runtime(self, entry: RuntimeFunction) -> Words:
        """Return a function of the runtime."""
        known = self._functions.get(entry)
        if known is None:
            known = self._functions[entry] = self._loaded(entry.symbol, entry.words)
        return known

    def constant(self, entry: LibraryConstant) -> int:
        """Return the word that a constant of the library has for its value."""
        symbol = self._bound(entry, str)
        return self._value(symbol)

    def _value(self, symbol: str) -> int:
        try:
            return ctypes.c_size_t.in_dll(self._library, symbol).value
        except ValueError as error:
            raise LeanError(f"the library has no symbol {symbol}") from error

    def _bound(self, entry: Entry, kind: type[_T]) -> _T:
        found = self.binding.entries.get(entry)
        if not isinstance(found, kind):
            raise LeanError(f"this Lean does not fit the farm: {entry} is not bound")
        return found

    def _loaded(self, symbol: str, words: int) -> Words:
        found = self._library[symbol]
        found.restype, found.argtypes = ctypes.c_size_t, [ctypes.c_size_t] * words
        return found

    def _called(self, entry: Function) -> Words:
        bound = self._bound(entry, Invocation)
        plain = self._loaded(bound.symbol, len(bound.words))
        ordered = plain if bound.words == tuple(range(len(bound.words))) else _ordered(plain, bound.words)
        if entry.gives is Gives.ACTION:
            return lambda *words: self.action(ordered(*words))
        return (lambda *words: field(ordered(*words), 0)) if bound.holds_value else ordered

    def action(self, outcome: int) -> int:
        """Return the value of an action's result; raises LeanError with the action's error message."""
        if tag(outcome) == 0:
            return field(outcome, 0)
        raise LeanError(text(self.runtime(table.ERROR_TEXT)(field(outcome, 0))))

    # Objects

    def get(self, entry: StructureField, place: int) -> int:
        """Return a field of an object: an object, or the number that a scalar is."""
        at = self._bound(entry, FieldPlace)
        if not at.size:
            return place
        return word(place + at.offset) & (1 << 8 * at.size) - 1

    def put(self, entry: StructureField, place: int, value: int) -> None:
        """Overwrite a field of an object that nothing else refers to, or that is to be changed for all."""
        at = self._bound(entry, FieldPlace)
        if not at.size:
            raise LeanError(f"{entry.structure} has one field alone")
        rest = word(place + at.offset) & ~((1 << 8 * at.size) - 1)
        put(place + at.offset, rest | value)

    def copy(self, place: int) -> int:
        """Return a new object with the constructor, the fields and the scalars of this one."""
        header = word(place)
        pointers, size = header >> 48 & 0xFF, header >> 32 & 0xFFFF
        for number in range(pointers):
            shared(field(place, number))
        return self._object(header >> 56, pointers, ctypes.string_at(place + 8, size - 8))

    def make(self, entry: Structure, values: Mapping[str, int]) -> int:
        """Return a new structure of these values, which it takes over; scalars are plain numbers."""
        layout = self._bound(entry, Layout)
        content = bytearray(layout.size - 8)
        names = [each.name for each in entry.parts]
        for number, part in enumerate(layout.pointers):
            content[8 * number : 8 * number + 8] = values[names[part]].to_bytes(8, "little")
        for part, offset, size in layout.scalars:
            content[offset - 8 : offset - 8 + size] = values[names[part]].to_bytes(size, "little")
        return self._object(0, len(layout.pointers), bytes(content))

    def number(self, entry: Constructor) -> int:
        """Return the number of a constructor among those of its type."""
        return self._bound(entry, int)

    def constructor(self, number: int, fields: Sequence[int], scalars: bytes = b"") -> int:
        """Return a new object of these fields, which it takes over, and of the scalars behind them."""
        content = b"".join(each.to_bytes(8, "little") for each in fields)
        return self._object(number, len(fields), content + scalars)

    def succeeded(self, value: int) -> int:
        """Return the result of an action that has not failed; earlier releases keep a second word in it."""
        return self.constructor(0, [value] if self.binding.plain_actions else [value, NOTHING])

    def reference(self, value: int) -> int:
        """Return a new reference of Lean's (`IO.Ref`) to a value, which it takes over."""
        made = self.runtime(table.NEW_REFERENCE)(value, NOTHING)
        return made if self.binding.plain_actions else field(made, 0)

    def some(self, value: int) -> int:
        """Return `some` value."""
        return self.constructor(1, [value])

    def list(self, values: Sequence[int]) -> int:
        """Return a list of these values, which it takes over."""
        found = NOTHING
        for value in reversed(values):
            found = self.constructor(1, [value, found])
        return found

    def array(self, values: Sequence[int]) -> int:
        """Return an array of these values, which it takes over."""
        return self.runtime(table.ARRAY)(self.list(values))

    def string(self, content: str) -> int:
        """Return a string."""
        held = ctypes.create_string_buffer(os.fsencode(content))
        return self.runtime(table.STRING)(ctypes.addressof(held))

    def name(self, *parts: str) -> int:
        """Return a name of these parts."""
        found = NOTHING
        for part in parts:
            found = self.runtime(table.NAME_STRING)(found, self.string(part))
        return found

    def closure(self, function: ctypes._CFunctionType) -> int:
        """Return a Python function of a type above as a Lean object."""
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        return self._closure(address, len(function.argtypes or ()), [])

    def partly(self, entry: Function, *given: int) -> int:
        """Return a closure of a function with all arguments but those of its monad."""
        bound = self._bound(entry, Invocation)
        known = takewhile(lambda each: each < len(entry.takes), bound.words[:-1])
        held = [given[each] if each >= 0 else ~each for each in known]
        plain = self._loaded(bound.symbol, len(bound.words))
        address = ctypes.cast(plain, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
        return self._closure(address, len(bound.words), held)

    def _closure(self, address: int, parameters: int, given: Sequence[int]) -> int:
        size = CLOSURE_BYTES + 8 * len(given)
        place = self.runtime(table.ALLOCATE)(size)
        words = [CLOSURE_TAG << 56 | size << 32 | 1, address, len(given) << 16 | parameters, *given]
        for number, each in enumerate(words):
            put(place + 8 * number, each)
        return place

    def _object(self, number: int, pointers: int, content: bytes) -> int:
        """Return a new object with one reference to it."""
        size = _CONSTRUCTOR_BYTES + len(content)
        place = self.runtime(table.ALLOCATE)(size)
        put(place, number << 56 | pointers << 48 | size << 32 | 1)
        ctypes.memmove(place + 8, content, len(content))
        return place


def _ordered(plain: Words, words: tuple[int, ...]) -> Words:
    """Return a function that passes the words it is given in another order, and constants among them."""

    def called(*given: int) -> int:
        return plain(*[given[each] if each >= 0 else ~each for each in words])

    return called
