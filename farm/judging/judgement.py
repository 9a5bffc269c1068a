"""Verdict step, what is known of a line in three words. Pure."""

from __future__ import annotations

from typing import NamedTuple

from farm.judging.verdict import Outcome


class Judgement(NamedTuple):
    """What is known of a line: its verdict and reason, or its status where there is no verdict."""

    status: str
    verdict: str | None
    reason: str | None

    @property
    def is_known(self) -> bool:
        """Whether the farm judged the proof."""
        return self.verdict not in (None, Outcome.JUDGE_ERROR)

    @property
    def is_proved(self) -> bool:
        """Whether it is a proof."""
        return self.verdict == Outcome.PROVED

    @property
    def is_limit(self) -> bool:
        """Whether a limit ended the check."""
        return self.verdict in (Outcome.TIMEOUT, Outcome.MEMORY_LIMIT)

    @property
    def words(self) -> str:
        """The verdict with its reason; of a proof the verdict alone."""
        if self.verdict is None:
            return self.status
        return self.verdict if self.is_proved else f"{self.verdict} {self.reason}"
