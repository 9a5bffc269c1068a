"""The revise step, which lines of a run: those that a user picks by status, verdict or reason. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from farm.errors import UsageError
from farm.judging.states import Status
from farm.judging.verdict import Outcome, Reason
from farm.store.records import Judged

_KINDS: dict[str, type[StrEnum]] = {"verdict": Outcome, "reason": Reason, "status": Status}


@dataclass(frozen=True, kw_only=True, slots=True)
class Pick:
    """The lines that have one of these verdicts, reasons or statuses; all lines where none is given."""

    verdict: tuple[str, ...] = ()
    reason: tuple[str, ...] = ()
    status: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise `UsageError` for a word that is not of its kind."""
        for kind in _KINDS:
            for word in getattr(self, kind):
                _require(word, kind)

    @property
    def is_empty(self) -> bool:
        """Whether no word is given."""
        return not (self.verdict or self.reason or self.status)

    def has(self, job: Judged) -> bool:
        """Whether a line is one of them."""
        if self.is_empty or job.status in self.status:
            return True
        verdict = job.verdict
        return verdict is not None and (verdict.outcome in self.verdict or verdict.reason in self.reason)


def _require(word: str, kind: str) -> None:
    if word in list(_KINDS[kind]):
        return
    others = [f"--{other} {word}" for other, words in _KINDS.items() if word in list(words)]
    hint = f"; you may mean {' or '.join(others)}" if others else ""
    raise UsageError(
        f"--{kind} {word}: there is no such {kind}; choose one of {', '.join(_KINDS[kind])}{hint}"
    )
