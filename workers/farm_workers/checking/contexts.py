"""Context step: how long Lean takes to read what the dataset has put before a theorem.

A context counts as no part of a proof: what reading it takes is added to the limits of every check with it,
and what is wrong with it is told as a fault of the statement.
"""

from __future__ import annotations

from dataclasses import replace

from farm.assembly.challenge import Challenge
from farm.judging.report import Execution
from farm.judging.tiers import Tier
from farm.judging.verdict import Reason, judge
from farm_workers import cache
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.challenges import BadChallenge, Challenges
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import FIRST_LOAD, Question

#: Of so many contexts is remembered how long reading them takes, or why they cannot be read.
_MOST = 1000
#: A context is read once alone and then in every check: a machine that is busier by then may take so many
#: times as long for it.
TIMES = 2.0


class Contexts:
    """Reads each context once alone, and remembers what that took; for many threads."""

    def __init__(self, runner: LeanRunner, challenges: Challenges) -> None:
        self._runner, self._challenges = runner, challenges
        self._kept: cache.Cache[bytes, Execution | str] = cache.Cache(most=_MOST)

    def reading(self, question: Question, challenge: Challenge | None, way: str | None) -> Execution:
        """Return how Lean read the context of a question alone; of no context, a run that took no time.

        It may take as long as a first load, in the memory of the check; a context of imports alone is not
        read. Raises BadChallenge for a context that Lean does not come to the end of, or refuses, and
        BoxFailed when the farm fails.
        """
        if not question.context[question.header_end :].strip():
            return Execution()
        words = question.environment.digest, way or self._runner.way, str(question.limits.memory_mib)
        key = cache.key(*words, question.context)
        found = self._kept.get(key)
        if found is None:
            found = self._read(question, challenge, way)
            if found is None:
                return Execution()
            self._kept.put(key, found)
        if isinstance(found, str):
            raise BadChallenge(found)
        return found

    def _read(
        self, question: Question, challenge: Challenge | None, way: str | None
    ) -> Execution | str | None:
        """Return how Lean read a context, or why it cannot; None where the check itself is to find that."""
        limits = replace(FIRST_LOAD, memory_mib=question.limits.memory_mib)
        alone = replace(question.instead(question.context), limits=limits)
        with self._runner.compiled(alone, way) as reply:
            report = replace(self._runner.report(alone, reply), tier=Tier.LEAN)
        verdict = judge(report)
        if verdict.reason is Reason.BAD_ENVIRONMENT:
            return None
        if verdict.may_be_the_machine:
            raise BoxFailed(f"the context was not read: {verdict.detail}")
        if verdict.reason is Reason.ERROR and challenge is not None:
            # Lean may want the theorem itself behind what ends a context: with it the text decides.
            self._challenges.compiled(challenge, question)
        elif verdict.reason not in _READ:
            return f"the context does not end well alone: {verdict.detail}"
        return report.run


#: What may become of a context that Lean reads to its end.
_READ = frozenset({Reason.OK, Reason.HAS_SORRY, Reason.ERROR})
