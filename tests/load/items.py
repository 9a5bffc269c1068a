"""What the clients of a load ask: small proofs, most of them new, whose worth is known beforehand. Pure."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from farm_workers.bench.measure import ExpectedWorth, program

from tests.commands import ADMITTED, ENDLESS, HEADER, PROGRAMS, PROVED, WRONG

#: Proofs of one statement, as a trainer samples them.
_ATTEMPTS = 8
#: One new item in so many admits what it should prove, and one never ends.
_ADMITTED, _ENDLESS = 8, 400
_ENDLESS_SECONDS = 0.5
_REMEMBERED = 4096
_WORTH = {ExpectedWorth.PROVED: PROVED, ExpectedWorth.ERROR: WRONG}


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """An item under a name that no other has, and the verdict and reason that it must get."""

    name: str
    fields: Mapping[str, object]
    verdict: tuple[str, str]

    @property
    def reward(self) -> float:
        """What it is worth."""
        return 1.0 if self.verdict == PROVED else 0.0

    @property
    def item(self) -> dict[str, object]:
        """The item as it is sent."""
        return {"name": self.name, **self.fields}


class Items:
    """Makes items, the same for the same seed; this share of them `repeats` earlier ones."""

    def __init__(self, chance: random.Random, *, repeats: float) -> None:
        self._chance, self._repeats = chance, repeats
        self._made = 0
        self._earlier, self._said = deque[Known](maxlen=_REMEMBERED), deque[Known](maxlen=_REMEMBERED)

    def batch(self, size: int) -> list[Known]:
        """Return the next items."""
        return [self._next() for _ in range(size)]

    def generations(self, size: int) -> list[Known]:
        """Return items as trainers have them: a statement, and what a model says to it."""
        return [self._next_said() for _ in range(size)]

    def _number(self) -> int:
        self._made += 1
        return self._made - 1

    def _repeated(self, earlier: deque[Known], name: str) -> Known | None:
        if earlier and self._chance.random() < self._repeats:
            return replace(self._chance.choice(earlier), name=name)
        return None

    def _next_said(self) -> Known:
        number = self._number()
        name = f"item{number}"
        found = self._repeated(self._said, name)
        if found is None:
            found = _generated(name, number)
            self._said.append(found)
        return found

    def _next(self) -> Known:
        number = self._number()
        name = f"item{number}"
        if (repeated := self._repeated(self._earlier, name)) is not None:
            return repeated
        if self._chance.randrange(_ENDLESS) == 0:
            return _whole(name, number, ENDLESS, timeout=_ENDLESS_SECONDS)
        if self._chance.randrange(_ADMITTED) == 0:
            made = _whole(name, number, ADMITTED)
        else:
            made = _stated(name, number)
        self._earlier.append(made)
        return made


def _whole(name: str, number: int, verdict: tuple[str, str], **more: object) -> Known:
    text = HEADER + PROGRAMS[verdict].format(n=number)
    return Known(name=name, fields={"program": text, **more}, verdict=verdict)


def _stated(name: str, number: int) -> Known:
    """Return a program with its statement, or in every other case only what proves that."""
    made = program(HEADER, number, attempts=_ATTEMPTS)
    if number % 2:
        answer = {"proof": made.text.removeprefix(HEADER + made.statement)}
    else:
        answer = {"program": made.text}
    fields = {"header": HEADER, "formal_statement": made.statement, **answer}
    return Known(name=name, fields=fields, verdict=_WORTH[made.worth])


def _generated(name: str, number: int) -> Known:
    """Return a statement, and what a model says to it."""
    made = program(HEADER, number, attempts=_ATTEMPTS)
    said = f"This follows at once.\n```lean4\n{made.text.removeprefix(HEADER)}\n```\n"
    fields = {"header": HEADER, "formal_statement": made.statement, "generation": said}
    return Known(name=name, fields=fields, verdict=_WORTH[made.worth])
