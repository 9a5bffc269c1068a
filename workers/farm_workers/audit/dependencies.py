"""Audit step, the table of dependencies: maps each constant of a library to the axioms and sorries below it.

`farm_workers.audit.library` makes the table, once for each environment. It is one file, read through a memory
map, so that all processes share it: a line of JSON that describes it, then sections of little-endian numbers
and texts. `keys` has the hashes of all names in ascending order, `sets` the number of each name's set: nearly
all constants of a library have one of few sets. The other sections have the elements of each set and their
names, and the modules of names that several modules declare.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Literal

from farm_workers.audit.names import dotted, shown
from farm_workers.audit.olean import Name

#: The first bytes of a table, with the number of its format.
_MARK = b"farm-dependencies-1\n"
#: The sections, with the codes of their numbers in `array`; "" for a text.
_SECTIONS: Mapping[str, Literal["Q", "I", ""]] = {
    "keys": "Q", "sets": "I", "starts": "I", "elements": "I", "name_starts": "I", "names": "", "homes": ""
}  # fmt: skip
#: Stands in `sets` for a name that several modules declare.
_SEVERAL = (1 << 32) - 1
_LONGEST_HEAD = 1 << 16
#: The most unreadable modules that a table names, and the most characters of each name and reason.
_MOST_UNREAD, _LONGEST_UNREAD = 20, 400
#: Stands in place of the findings if the dependencies of a module are unknown, with the reason.
FAILED = "failed"
_SORTS = ("axioms", "sorries", "unknown")


class BadTable(Exception):
    """A file is no table of dependencies, or not the table of this environment; the message says why."""


class NotInTable(Exception):
    """The dependencies of a constant are unknown; the message has the cause and the remedy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Below:
    """The axioms and sorries below constants of a library, themselves included.

    `sorries` are the constants whose own terms contain a sorry, `unknown` those that no readable module
    declares.
    """

    axioms: frozenset[Name] = frozenset()
    sorries: frozenset[Name] = frozenset()
    unknown: frozenset[Name] = frozenset()

    def __or__(self, other: Below) -> Below:
        """Return the union of both."""
        return Below(
            axioms=self.axioms | other.axioms,
            sorries=self.sorries | other.sorries,
            unknown=self.unknown | other.unknown,
        )


NOTHING = Below()


@dataclass(kw_only=True, slots=True)
class Contents:
    """The contents of a table.

    `sets` are the distinct sets, and `constants` maps each name to the number of its set, and `homes` to the
    number of its module. `repeated` are
    names that several modules declare: it maps each to the numbers of these modules, with their sets.
    `modules` are the names of the modules, and `imports` the numbers of those that each imports. `unread` are
    modules that could not be read, with the reason.
    """

    sets: list[Below] = field(default_factory=list)
    homes: dict[Name, int] = field(default_factory=dict)
    constants: dict[Name, int] = field(default_factory=dict)
    repeated: dict[Name, dict[int, int]] = field(default_factory=dict)
    modules: list[Name] = field(default_factory=list)
    imports: list[Sequence[int]] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)


def key_of(name: Name) -> int:
    """Return the hash of a name: 64 bits of BLAKE2b."""
    return int.from_bytes(hashlib.blake2b(ascii(name).encode(), digest_size=8).digest(), "little")


def write(contents: Contents, environment: str, out: BinaryIO) -> None:
    """Write the table of an environment, whose digest is given. Raises BadTable if two hashes are equal."""
    sections = _sections(contents)
    body = b"".join(each + bytes(-len(each) % 8) for each in sections)
    head = _Head(
        environment=environment,
        sha256=hashlib.sha256(body).hexdigest(),
        sizes=list(map(len, sections)),
        unread={
            module[:_LONGEST_UNREAD]: reason[:_LONGEST_UNREAD]
            for module, reason in list(contents.unread.items())[:_MOST_UNREAD]
        },
        unread_modules=len(contents.unread),
    )
    line = _MARK + json.dumps(asdict(head)).encode()
    out.write(line + b" " * (-(len(line) + 1) % 8) + b"\n" + body)


def _sections(contents: Contents) -> list[bytes]:
    by_key = {key_of(name): number for name, number in contents.constants.items()}
    by_key |= dict.fromkeys(map(key_of, contents.repeated), _SEVERAL)
    if len(by_key) != len(contents.constants) + len(contents.repeated):
        raise BadTable("two names have the same hash")
    keys, numbers = sorted(by_key), dict[tuple[str, Name], int]()
    starts, elements = [0], list[int]()
    for each in contents.sets:
        for sort in _SORTS:
            for name in sorted(getattr(each, sort), key=ascii):
                elements.append(numbers.setdefault((sort, name), len(numbers)))
        starts.append(len(elements))
    texts = [json.dumps(element).encode() for element in numbers]
    name_starts = [0]
    for text in texts:
        name_starts.append(name_starts[-1] + len(text))
    homes = {
        "names": [[name, [*each.items()]] for name, each in contents.repeated.items()],
        "modules": contents.modules if contents.repeated else [],
        "imports": [list(each) for each in contents.imports] if contents.repeated else [],
    }
    sets = [by_key[key] for key in keys]
    numbered = zip("QIIII", (keys, sets, starts, elements, name_starts), strict=True)
    return [
        *(array(code, each).tobytes() for code, each in numbered),
        b"".join(texts),
        json.dumps(homes).encode(),
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Head:
    """The first line of a table: the environment's digest, the sizes of the sections, their SHA-256 in hex.

    `unread` are the first modules that could not be read, `unread_modules` is the number of all of them.
    """

    environment: str
    sha256: str
    sizes: Sequence[int]
    unread: Mapping[str, str]
    unread_modules: int


class Table:
    """A table of dependencies; `imports` are the modules that a header imports, None if they are unknown.

    The modules only matter for names that several modules of the library declare: without them a constant
    rests on all that it rests on in any of these.
    """

    def __init__(self, view: memoryview, imports: Sequence[Name] | None = None) -> None:
        """Read the head of a table. Raises BadTable for another file, and for a truncated one."""
        if sys.byteorder != "little":
            raise NotImplementedError("only machines that are little-endian can read these files")
        self._view, self._imports = view, imports
        head, start = _head(view)
        self._head, sizes = head, head.sizes
        self._parts: dict[str, Any] = {}
        if start + sum(map(_filled, sizes)) != len(view):
            raise BadTable(f"it has {len(view)} bytes in place of {start + sum(map(_filled, sizes))}")
        for (section, code), size in zip(_SECTIONS.items(), sizes, strict=True):
            part = view[start : start + size]
            self._parts[section] = part.cast(code) if code else part
            start += _filled(size)
        self._known: dict[int, Below] = {}

    def require(self, environment: str) -> None:
        """Read the whole table; raise BadTable if it is damaged, or belongs to another environment."""
        body = self._view[len(self._view) - sum(map(_filled, self._head.sizes)) :]
        if self._head.environment != environment:
            raise BadTable("it belongs to another environment")
        if hashlib.sha256(body).hexdigest() != self._head.sha256:
            raise BadTable("its contents are damaged")

    def __len__(self) -> int:
        return len(self._parts["keys"])

    @property
    def unread(self) -> str:
        """The modules that could not be read, each with the reason; "" if there are none."""
        listed = self._head.unread
        more = self._head.unread_modules - len(listed)
        said = [f"{module}: {reason}" for module, reason in listed.items()]
        return "; ".join([*said, *([f"{more} more"] if more > 0 else [])])

    def below(self, name: Name) -> Below:
        """Return the dependencies of an imported constant. Raises NotInTable if they are unknown."""
        place = _place(self._parts["keys"], key_of(name))
        if place is None:
            raise NotInTable(self._lacks(name))
        number = self._parts["sets"][place]
        found = self._several(name) if number == _SEVERAL else self._set(number)
        if found.unknown:
            raise NotInTable(self._lacks(min(found.unknown, key=dotted)))
        return found

    def _lacks(self, name: Name) -> str:
        cause = f"these modules could not be read: {self.unread}" if self.unread else "no module declares it"
        return (
            f"nobody knows the axioms below {shown(name)}: {cause}. Build the environment's modules again, "
            "or remove those that are left from another build"
        )

    def _set(self, number: int) -> Below:
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = self._read(number)
        return found

    def _read(self, number: int) -> Below:
        starts, elements = self._parts["starts"], self._parts["elements"]
        name_starts, texts = self._parts["name_starts"], self._parts["names"]
        found: dict[str, list[Name]] = {sort: [] for sort in _SORTS}
        for element in elements[starts[number] : starts[number + 1]]:
            text = bytes(texts[name_starts[element] : name_starts[element + 1]])
            sort, name = json.loads(text)
            found[sort].append(tuple(name))
        return Below(**{sort: frozenset(names) for sort, names in found.items()})

    def _several(self, name: Name) -> Below:
        """Return the dependencies of a name of several modules, in those modules that the header imports."""
        names, visible = self._homes
        homes = names[name]
        seen = homes if visible is None else {module: homes[module] for module in homes if module in visible}
        found = NOTHING
        for number in seen.values():
            found |= self._set(number)
        return found

    @cached_property
    def _homes(self) -> tuple[Mapping[Name, Mapping[int, int]], set[int] | None]:
        """The modules of names that several declare, and the modules that the header imports."""
        read = json.loads(bytes(self._parts["homes"]))
        names = {tuple(name): dict(homes) for name, homes in read["names"]}
        if self._imports is None:
            return names, None
        numbers = {tuple(module): number for number, module in enumerate(read["modules"])}
        todo = [numbers[module] for module in self._imports if module in numbers]
        return names, closure(todo, read["imports"])


def mapped(file: Path | int, imports: Sequence[Name] | None = None) -> Table:
    """Return the table in a file, by its path or its descriptor, mapped into memory for this process's life.

    Raises BadTable, and OSError for a missing file.
    """
    if isinstance(file, Path):
        with file.open("rb") as opened:
            return mapped(opened.fileno(), imports)
    try:
        return Table(memoryview(mmap.mmap(file, 0, access=mmap.ACCESS_READ)), imports)
    except ValueError as error:  # an empty file
        raise BadTable("it is empty") from error


def _place(keys: Sequence[int], key: int) -> int | None:
    """Return the place of a key, None if it is not there.

    Hashes are spread evenly, so a key is near the place that its value suggests: few pages are touched.
    """
    count = len(keys)
    guess, width = key * count >> 64, 16 + 4 * math.isqrt(count)
    low, high = max(0, guess - width), min(count, guess + width)
    if (low and keys[low] > key) or (high < count and keys[high - 1] < key):
        low, high = 0, count
    place = bisect_left(keys, key, low, high)
    return place if place < count and keys[place] == key else None


def closure(modules: Iterable[int], imports: Sequence[Iterable[int]]) -> set[int]:
    """Return modules with all that they import, directly or not."""
    seen, todo = set[int](), list(modules)
    while todo:
        module = todo.pop()
        if module not in seen:
            seen.add(module)
            todo += imports[module]
    return seen


def _head(view: memoryview) -> tuple[_Head, int]:
    start = bytes(view[: _LONGEST_HEAD + len(_MARK)])
    if not start.startswith(_MARK):
        raise BadTable("it is no table of dependencies in this format")
    end = start.find(b"\n", len(_MARK)) + 1
    try:
        head = _Head(**json.loads(start[len(_MARK) : end]))
    except (TypeError, ValueError) as error:
        raise BadTable("its head is damaged") from error
    if len(head.sizes) != len(_SECTIONS):
        raise BadTable("its head is damaged")
    return head, end


def _filled(size: int) -> int:
    """Return the bytes that a section takes: sections begin at whole words."""
    return size + -size % 8
