"""Context step: what the dataset has put before a theorem, read once for all its proofs where that can be.

A context counts as no part of a proof: what reading it takes is added to the limits of every check that reads
it, and what is wrong with it is told as a fault of the statement. Where it is shared, an image has read it,
and another one has had the kernel check what it was compiled to (`farm_workers.seal.above`).
"""

from __future__ import annotations

from dataclasses import replace

from farm.assembly.challenge import Challenge
from farm.judging.report import Execution
from farm.judging.tiers import Tier
from farm.judging.verdict import Reason, judge
from farm.log import logger
from farm_workers import cache
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.challenges import BadChallenge, Challenges
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import FIRST_LOAD, FORKED, NotShared, Question

_log = logger(__name__)

#: Of so many contexts is remembered how long reading them takes, or why they cannot be read; and what they
#: were compiled to, as long as that has no more bytes.
_MOST, _MOST_BYTES = 1000, 256 << 20
#: A context is not shared any more when that has failed so often.
_MOST_FAILURES = 3
#: A context is read once alone and then in every check: a machine that is busier by then may take so many
#: times as long for it.
TIMES = 2.0


class Contexts:
    """Reads each context once alone, and remembers what that took; for many threads."""

    def __init__(self, runner: LeanRunner, challenges: Challenges, *, may_share: bool = True) -> None:
        self._runner, self._challenges = runner, challenges
        self._may_share = may_share
        self._kept: cache.Cache[bytes, Execution | str] = cache.Cache(most=_MOST)
        self._modules: cache.Cache[bytes, bytes] = cache.Cache(most=_MOST, most_bytes=_MOST_BYTES, size=len)
        self._failures: cache.Cache[bytes, int] = cache.Cache(most=_MOST)

    def shared(self, question: Question, challenge: Challenge | None, way: str | None) -> bytes | None:
        """Return what a question's context was compiled to, where its checks can share it; None elsewhere.

        Raises BadChallenge for a context that Lean refuses, and BoxFailed when the farm fails.
        """
        if not self._may_share or (way or self._runner.way) != FORKED or not _has_text(question):
            return None
        if challenge is not None and challenge.program[: challenge.context_end] != question.context:
            return None
        key = _key(question)
        if (self._failures.get(key) or 0) >= _MOST_FAILURES:
            return None
        found = self._modules.get(key)
        if found is None:
            try:
                found = self._compiled(question, challenge)
            except NotShared as error:
                self.failed(question, error)
                return None
            self._modules.put(key, found)
        return found

    def failed(self, question: Question, error: NotShared) -> None:
        """Remember that a check could not share its context."""
        key = _key(question)
        _log.info("A context is not shared: %s", error)
        self._failures.put(key, (self._failures.get(key) or 0) + 1)

    def _compiled(self, question: Question, challenge: Challenge | None) -> bytes:
        """Return what a context is compiled to. Raises NotShared, BadChallenge and BoxFailed."""
        context = replace(question, shares_context=True).instead(
            question.context, context_end=question.context_end
        )
        with self._runner.context(context) as reply:
            verdict = judge(replace(reply.report, tier=Tier.LEAN))
            if verdict.reason not in _READ or reply.module is None:
                raise NotShared(f"the context does not end well alone: {verdict.detail}")
            module = reply.module.read()
        if verdict.reason is Reason.ERROR and challenge is not None:
            self._challenges.compiled(challenge, question)
        return module

    def reading(self, question: Question, challenge: Challenge | None, way: str | None) -> Execution:
        """Return how Lean read the context of a question alone; of no context, a run that took no time.

        It may take as long as a first load, in the memory of the check; a context of imports alone is not
        read. Raises BadChallenge for a context that Lean does not come to the end of, or refuses, and
        BoxFailed when the farm fails.
        """
        if not _has_text(question):
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


def _has_text(question: Question) -> bool:
    """Whether there is more in a context than imports."""
    return bool(question.context[question.header_end :].strip())


def _key(question: Question) -> bytes:
    return cache.key(question.environment.digest, question.context)


#: What may become of a context that Lean reads to its end.
_READ = frozenset({Reason.OK, Reason.HAS_SORRY, Reason.ERROR})
