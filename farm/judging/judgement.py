"""Verdict step, judgement: a line's status, verdict and reason, for lists and counts of lines. Pure."""

from __future__ import annotations

from typing import NamedTuple

from farm.judging.verdict import Outcome


class Judgement(NamedTuple):
    """The verdict and reason of a line, or its status if it has no verdict."""

    status: str
    verdict: str | None
    reason: str | None

    @property
    def is_known(self) -> bool:
        """Whether the farm judged the proof."""
        return self.verdict not in (None, Outcome.JUDGE_ERROR)

    @property
    def is_proved(self) -> bool:
        """Whether the verdict is *proved*."""
        return self.verdict == Outcome.PROVED

    @property
    def is_limit(self) -> bool:
        """Whether a limit ended the check."""
        return self.verdict in (Outcome.TIMEOUT, Outcome.MEMORY_LIMIT)

    @property
    def words(self) -> str:
        """The verdict, with its reason if that says more; the status of a line without a verdict."""
        if self.verdict is None:
            return self.status
        return (
            self.verdict if self.is_proved or self.reason == self.verdict else f"{self.verdict} {self.reason}"
        )
