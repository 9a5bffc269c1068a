"""Checking step, bans: holds the forbidden names of a check, sorted, and the faults of its program. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from farm.judging.audit import FORBIDDEN, Audit, Finding

_UNLISTED = "Lean left no list of the tactics that it ran, so none can be ruled out"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bans:
    """The forbidden names of a check, sorted by their meaning in its environment, and the faults of its text.

    `constants` are names that the proof must not reach, `tokens` the first words and `kinds` the kinds of
    syntax that it must not use; `unknown` names are none of these. `faults` has a sentence for each place
    that uses a forbidden tactic by its word, or that can change Lean.
    """

    constants: tuple[str, ...]
    tokens: tuple[str, ...]
    kinds: tuple[str, ...]
    unknown: tuple[str, ...]
    faults: tuple[str, ...]

    @classmethod
    def read(cls, answer: bytes) -> Bans:
        """Return the answer of a reading. Raises ValueError for one that is none, with its reason."""
        said = json.loads(answer)
        if "error" in said:
            raise ValueError(said["error"])
        return cls(**{name: tuple(map(str, said[name])) for name in cls.__slots__})

    @property
    def of_tactics(self) -> bool:
        """Whether tactics are forbidden, and not constants alone."""
        return bool(self.tokens or self.kinds)

    def held_against(self, audit: Audit, uses: Sequence[str] | None) -> Audit:
        """Return an audit with the faults of the text, and with the forbidden tactics that Lean ran."""
        if not self.of_tactics:
            return audit
        found = self.faults or ((_UNLISTED,) if uses is None else uses)
        if not found:
            return audit
        more = tuple(Finding(word=FORBIDDEN, sentence=f"{each}.") for each in found)
        return replace(audit, accepted=False, findings=(*audit.findings, *more))
