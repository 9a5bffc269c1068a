"""Changes of a compiled module that know what is where: most of what comes out can be given to a kernel."""

from __future__ import annotations

import random
import struct
from collections import defaultdict

#: What a pointer leads to.
NAME, LEVEL, TERM, STRING, NAT, LITERAL, META, HEADER, NAMES, LEVELS, RULES, RULE, HINTS, INFO = range(14)
#: The pointers of objects by what they are and which constructor made them, and the marks behind their words:
#: where the first is, how many there are, and how many values each has.
_SHAPES: dict[tuple[int, int], tuple[tuple[int, ...], tuple[int, int, int]]] = {
    (NAME, 1): ((NAME, STRING), (0, 0, 0)),
    (NAME, 2): ((NAME, NAT), (0, 0, 0)),
    (LEVEL, 1): ((LEVEL,), (0, 0, 0)),
    (LEVEL, 2): ((LEVEL, LEVEL), (0, 0, 0)),
    (LEVEL, 3): ((LEVEL, LEVEL), (0, 0, 0)),
    (LEVEL, 4): ((NAME,), (0, 0, 0)),
    (TERM, 0): ((NAT,), (0, 0, 0)),
    (TERM, 3): ((LEVEL,), (0, 0, 0)),
    (TERM, 4): ((NAME, LEVELS), (0, 0, 0)),
    (TERM, 5): ((TERM, TERM), (0, 0, 0)),
    (TERM, 6): ((NAME, TERM, TERM), (8, 1, 4)),
    (TERM, 7): ((NAME, TERM, TERM), (8, 1, 4)),
    (TERM, 8): ((NAME, TERM, TERM, TERM), (8, 1, 2)),
    (TERM, 9): ((LITERAL,), (0, 0, 0)),
    (TERM, 10): ((META, TERM), (0, 0, 0)),
    (TERM, 11): ((NAME, NAT, TERM), (0, 0, 0)),
    (LITERAL, 0): ((NAT,), (0, 0, 0)),
    (LITERAL, 1): ((STRING,), (0, 0, 0)),
    (NAMES, 1): ((NAME, NAMES), (0, 0, 0)),
    (LEVELS, 1): ((LEVEL, LEVELS), (0, 0, 0)),
    (RULES, 1): ((RULE, RULES), (0, 0, 0)),
    (RULE, 0): ((NAME, NAT, TERM), (0, 0, 0)),
    (HEADER, 0): ((NAME, NAMES, TERM), (0, 0, 0)),
}
#: The same for what the info of a constant of each kind holds.
_VALUES: tuple[tuple[tuple[int, ...], tuple[int, int, int]], ...] = (
    ((HEADER,), (0, 1, 2)),
    ((HEADER, TERM, HINTS, NAMES), (0, 1, 3)),
    ((HEADER, TERM, NAMES), (0, 0, 0)),
    ((HEADER, TERM, NAMES), (0, 1, 2)),
    ((HEADER,), (0, 1, 4)),
    ((HEADER, NAT, NAT, NAMES, NAMES, NAT), (0, 3, 2)),
    ((HEADER, NAME, NAT, NAT, NAT), (0, 1, 2)),
    ((HEADER, NAMES, NAT, NAT, NAT, NAT, RULES), (0, 2, 2)),
)
_WITH_WORD = (NAME, LEVEL, TERM)


class Typed:
    """What stands where in one module that Lean wrote, and changes of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.base, root = struct.unpack_from("<QQ", data, 80)
        #: Where each pointer is, what it leads to, and the address of the object that it is in.
        self.slots: list[tuple[int, int, int]] = []
        self.pool: dict[int, list[int]] = defaultdict(list)
        self.marks: list[tuple[int, int]] = []
        self.words: list[int] = []
        self.texts: list[tuple[int, int]] = []
        self._seen: set[tuple[int, int]] = set()
        infos = self._word(root - self.base + 24)
        count = self._word(infos - self.base + 8)
        for number in range(count):
            self._look([(INFO, self._word(infos - self.base + 24 + 8 * number))])

    def _word(self, at: int) -> int:
        found: int = struct.unpack_from("<Q", self.data, at)[0]
        return found

    def _look(self, todo: list[tuple[int, int]]) -> None:
        while todo:
            kind, pointer = todo.pop()
            if (kind, pointer) in self._seen:
                continue
            self._seen.add((kind, pointer))
            self.pool[kind].append(pointer)
            if pointer & 1 or kind in (NAT, META, HINTS):
                continue
            todo += self._object(kind, pointer - self.base)

    def _object(self, kind: int, at: int) -> list[tuple[int, int]]:
        if kind == STRING:
            self.texts.append((at + 32, self._word(at + 8) - 1))
            return []
        if kind == INFO:
            value = self._word(at + 8) - self.base
            return self._fields(value, *_VALUES[self.data[at + 7]])
        found = self._fields(at, *_SHAPES[kind, self.data[at + 7]])
        if kind in _WITH_WORD:
            self.words.append(at + 8 + 8 * len(found))
        return found

    def _fields(self, at: int, kinds: tuple[int, ...], marks: tuple[int, int, int]) -> list[tuple[int, int]]:
        places = range(at + 8, at + 8 + 8 * len(kinds), 8)
        self.slots += [(place, kind, at + self.base) for place, kind in zip(places, kinds, strict=True)]
        first, count, values = marks
        behind = at + 8 + 8 * len(kinds) + first
        self.marks += [(behind + number, values) for number in range(count)]
        return [(kind, self._word(place)) for place, kind in zip(places, kinds, strict=True)]

    def made(self, chosen: random.Random) -> bytes:
        """Return the module with one to three changes."""
        changed = bytearray(self.data)
        for _ in range(chosen.choice((1, 1, 1, 2, 3))):
            chosen.choice(self.WAYS)(self, changed, chosen)
        return bytes(changed)

    def _aim(self, changed: bytearray, chosen: random.Random) -> None:
        """Have a pointer lead to something else of what it leads to, mostly to what stands before it."""
        place, kind, holder = chosen.choice(self.slots)
        others = [each for each in self.pool[kind] if each & 1 or each < holder]
        struct.pack_into("<Q", changed, place, chosen.choice(others or self.pool[kind]))

    def _confuse(self, changed: bytearray, chosen: random.Random) -> None:
        """Have a pointer lead to something of another kind."""
        place, kind, _ = chosen.choice(self.slots)
        other = chosen.choice([each for each in self.pool if each != kind])
        struct.pack_into("<Q", changed, place, chosen.choice(self.pool[other]))

    def _count(self, changed: bytearray, chosen: random.Random) -> None:
        numbers = [place for place, kind, _ in self.slots if kind == NAT and self._word(place) & 1]
        place = chosen.choice(numbers)
        number = chosen.choice(
            (0, 1, 2, 3, (self._word(place) >> 1) + chosen.choice((-1, 1)), 1 << 20, 1 << 32)
        )
        struct.pack_into("<Q", changed, place, max(0, number) << 1 | 1)

    def _mark(self, changed: bytearray, chosen: random.Random) -> None:
        place, values = chosen.choice(self.marks)
        changed[place] = chosen.randrange(values)

    def _letter(self, changed: bytearray, chosen: random.Random) -> None:
        at, size = chosen.choice([each for each in self.texts if each[1]])
        place = at + chosen.randrange(size)
        if changed[place] < 128:
            changed[place] = chosen.choice(b"abcxyz01_")

    def _forge(self, changed: bytearray, chosen: random.Random) -> None:
        """Change what Lean has computed of a name, a level or a term."""
        place = chosen.choice(self.words) + chosen.randrange(8)
        changed[place] ^= 1 << chosen.randrange(8)

    WAYS = (_aim, _aim, _aim, _aim, _confuse, _count, _count, _mark, _letter, _forge, _forge)
