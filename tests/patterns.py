"""Every regular expression of the farm, how its code uses each, and texts that are hard for them."""

from __future__ import annotations

import ast
import importlib
import itertools
import pkgutil
import re
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from types import FrameType, ModuleType
from typing import Any

import farm_workers

import farm

#: Methods that look at one place of a text; all others try every place.
ANCHORED = frozenset({"match", "fullmatch"})
_METHODS = frozenset({*ANCHORED, "search", "finditer", "findall", "sub", "subn", "split"})
#: Characters that stand for a set of a pattern, the first that is in it.
_COMMON = "a 0_\n.-/\"'«[({:=+*\t`#\\$é"
#: How many pieces of a pattern are combined with each other, and how many of them stand once before the rest.
_MOST_PIECES, _MOST_BEFORE = 12, 4
#: Modules that hand their patterns to a function of their own, which calls this method.
_GIVEN = {"farm.manifest.splice": {"match"}}


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A compiled pattern, where it is, and which of its methods the farm calls."""

    where: str
    compiled: re.Pattern[Any]
    methods: frozenset[str]

    def seconds(self, text: str, *, most: float) -> float:
        """Return the processor time that its slowest method takes on a text, at most `most`."""
        given = text.encode() if isinstance(self.compiled.pattern, bytes) else text
        return max(_timed(self._call(method), given, most) for method in self.methods)

    def _call(self, method: str) -> Callable[[Any], object]:
        if method in ANCHORED:
            return getattr(self.compiled, method)  # type: ignore[no-any-return]
        return lambda text: sum(1 for _ in self.compiled.finditer(text))

    def texts(self, length: int) -> Iterator[str]:
        """Yield texts of about a length that are made of the pattern's own pieces.

        None for a pattern that repeats nothing: that looks at each place for a bounded time.
        """
        if not set("*+") & set(str(self.compiled.pattern)):
            return
        pieces = _pieces(self.compiled)
        units = [*pieces, *map("".join, itertools.permutations(pieces, 2))]
        for unit, before in itertools.product(units, ("", *pieces[:_MOST_BEFORE])):
            yield before + unit * (length // len(unit)) + "\0"


class _Late(Exception):
    """A pattern takes too long."""


def _timed(call: Callable[[Any], object], text: str | bytes, most: float) -> float:
    def late(_signal: int, _frame: FrameType | None) -> None:
        raise _Late

    before = signal.signal(signal.SIGPROF, late)
    begun = time.process_time()
    try:
        try:
            signal.setitimer(signal.ITIMER_PROF, most)
            call(text)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except _Late:
        return most
    finally:
        signal.signal(signal.SIGPROF, before)
    return time.process_time() - begun


def patterns() -> list[Pattern]:
    """Return all patterns that modules of the farm hold, alone or in collections."""
    used = _used()
    found: dict[tuple[object, int], tuple[str, re.Pattern[Any], set[str]]] = {}
    for module in _modules():
        for name, value in vars(module).items():
            for each in _inside(value):
                _, _, methods = found.setdefault(
                    (each.pattern, each.flags), (f"{module.__name__}.{name}", each, set())
                )
                public = set() if name.startswith("_") else used["", name]
                methods |= used[module.__name__, name] | public | _GIVEN.get(module.__name__, set())
    return [
        Pattern(where=where, compiled=compiled, methods=frozenset(methods or {"search"}))
        for where, compiled, methods in found.values()
    ]


def _modules() -> Iterator[ModuleType]:
    for root in (farm, farm_workers):
        for each in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            if not each.name.endswith("__main__"):
                yield importlib.import_module(each.name)


def _inside(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _inside(each)
    elif isinstance(value, tuple | list | frozenset | set):
        for each in value:
            yield from _inside(each)


def _used() -> dict[tuple[str, str], set[str]]:
    """Return the methods that the code of each module calls on each of its names."""
    found = defaultdict[tuple[str, str], set[str]](set)
    for module in _modules():
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in _METHODS:
                for name in _names(node.value):
                    found[module.__name__, name].add(node.attr)
                    found["", name].add(node.attr)
    return found


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _pieces(compiled: re.Pattern[Any]) -> list[str]:
    """Return the literal words of a pattern, and a character of each of its sets."""
    runs: list[object] = list(_walk(_parser.parse(compiled.pattern, compiled.flags & ~re.DEBUG)))
    words = [each for each in runs if isinstance(each, str)]
    alphabet = _COMMON + "".join(words)
    for each in runs:
        if not isinstance(each, str):
            words += [character for character in alphabet if _has(each, character)][:1]
    return list(dict.fromkeys(words))[:_MOST_PIECES]


def _walk(tree: Any) -> Iterator[object]:
    run = ""
    for code, value in tree:
        if code is codes.LITERAL:
            run += chr(value)
            continue
        if run:
            yield run
            run = ""
        yield from _within(code, value)
    if run:
        yield run


def _within(code: Any, value: Any) -> Iterator[object]:
    if code in (codes.IN, codes.NOT_LITERAL, codes.ANY):
        yield code, value
    elif code is codes.BRANCH:
        for each in value[1]:
            yield from _walk(each)
    elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        yield from _walk(value[2])
    elif code is codes.SUBPATTERN:
        yield from _walk(value[3])
    elif code is codes.ATOMIC_GROUP:
        yield from _walk(value)
    elif code in (codes.ASSERT, codes.ASSERT_NOT):
        yield from _walk(value[1])


def _has(piece: Any, character: str) -> bool:
    code, value = piece
    if code is codes.ANY:
        return character != "\n"
    if code is codes.NOT_LITERAL:
        return ord(character) != value
    return any(_in(each, character) for each in value) != ((codes.NEGATE, None) in value)


def _in(part: Any, character: str) -> bool:
    code, value = part
    if code is codes.LITERAL:
        return bool(ord(character) == value)
    if code is codes.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    tests = {
        codes.CATEGORY_SPACE: character.isspace(),
        codes.CATEGORY_NOT_SPACE: not character.isspace(),
        codes.CATEGORY_DIGIT: character.isdigit(),
        codes.CATEGORY_NOT_DIGIT: not character.isdigit(),
        codes.CATEGORY_WORD: character.isalnum() or character == "_",
        codes.CATEGORY_NOT_WORD: not (character.isalnum() or character == "_"),
    }
    return code is codes.CATEGORY and tests[value]
