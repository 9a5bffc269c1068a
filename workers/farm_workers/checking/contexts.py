"""Context step: what the dataset has put before a theorem, read once for all its proofs where that can be.

A context counts as no part of a proof: what reading it takes is added to the limits of every check that reads
it, and what is wrong with it is told as a fault of the statement. Where it is shared, an image has read it,
and another one has had the kernel check what it was compiled to (`farm_workers.seal.above`).

Proofs are forked from the image that has read the context, and run in one cell with it. So no statement comes
from there: context and statement are compiled in a fork of the header's own image, in which no proof has run,
and the image of the context has to compile the two to the same bytes before it serves.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

from farm.assembly.challenge import Challenge
from farm.judging.ending import ending, lean_refused, reads_to_the_end
from farm.judging.report import Execution
from farm.judging.tiers import Tier
from farm.judging.verdict import judge
from farm.log import logger
from farm_workers import cache
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.challenges import BadChallenge, Challenges, refusal
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import FIRST_LOAD, FORKED, NotShared, Question, Unfit

_log = logger(__name__)

#: Of so many contexts is remembered how long reading them takes, or why they cannot be read; and what they
#: were compiled to, as long as that has no more bytes.
_MOST, _MOST_BYTES = 1000, 256 << 20
#: A context is not shared any more when that has failed so often, and no proof had to do with it.
_MOST_FAILURES = 3
#: So many contexts can be compiled at once; how often a thread that waits looks whether it still needs to.
_LOCKS, _LOOK_SECONDS = 64, 0.25
#: Seconds that compiling a context and a statement may take where the context is shared: those of its image.
_SECONDS = 120.0
#: A context is read once alone and then in every check: a machine that is busier by then may take so many
#: times as long for it.
TIMES = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Shared:
    """What a shared context, and the rest of a challenge below it, were compiled to."""

    context: bytes
    challenge: bytes

    @property
    def size(self) -> int:
        """How many bytes both have."""
        return len(self.context) + len(self.challenge)


class Contexts:
    """Reads each context once alone, and remembers what that took; for many threads."""

    def __init__(self, runner: LeanRunner, challenges: Challenges, *, may_share: bool = True) -> None:
        self._runner, self._challenges = runner, challenges
        self._may_share = may_share
        self._kept: cache.Cache[bytes, Execution | str] = cache.Cache(most=_MOST)
        self._stated: cache.Cache[bytes, Shared | str] = cache.Cache(
            most=_MOST,
            most_bytes=_MOST_BYTES,
            size=lambda each: len(each) if isinstance(each, str) else each.size,
        )
        self._is_compared: cache.Cache[bytes, bool] = cache.Cache(most=_MOST)
        self._failures: cache.Cache[bytes, int] = cache.Cache(most=_MOST)
        self._locks = [threading.Lock() for _ in range(_LOCKS)]

    def shared(self, question: Question, challenge: Challenge | None, way: str | None) -> Shared | None:
        """Return what a context and a challenge were compiled to, where checks can share the context.

        None elsewhere. Raises BadChallenge for a context or a statement that Lean refuses.
        """
        if not self._may_share or (way or self._runner.way) != FORKED or not _has_text(question):
            return None
        if challenge is None or challenge.program[: challenge.context_end] != question.context:
            return None
        known = self._stated.get(_below(question, challenge))
        if isinstance(known, Shared) and self._is_compared.get(_key(question)):
            return known
        with self._alone(question) as has_turn:
            if not has_turn or (self._failures.get(_key(question)) or 0) >= _MOST_FAILURES:
                return None
            try:
                return self._compared(question, challenge)
            except NotShared as error:
                if not question.cancelled():
                    self.failed(question, error)
                return None

    @contextlib.contextmanager
    def _alone(self, question: Question) -> Iterator[bool]:
        """Have one thread at a time compile a context; gives False where the check was cancelled before."""
        lock = self._locks[_key(question)[0] % _LOCKS]
        while not lock.acquire(timeout=_LOOK_SECONDS):
            if question.cancelled():
                yield False
                return
        try:
            yield True
        finally:
            lock.release()

    def failed(self, question: Question, error: NotShared) -> None:
        """Count that a context could not be shared, with which no proof had to do."""
        key, more = _key(question), _MOST_FAILURES if isinstance(error, Unfit) else 1
        _log.info("A context is not shared: %s", error)
        self._failures.put(key, (self._failures.get(key) or 0) + more)

    def suspect(self, question: Question, error: NotShared) -> None:
        """Give up the image of a context in which a proof ended badly; the next image is compared again."""
        _log.info("The image of a context is given up: %s", error)
        self._is_compared.put(_key(question), value=False)
        self._runner.images.retire(*replace(question, shares_context=True).key)

    def _compared(self, question: Question, challenge: Challenge) -> Shared:
        """Return what context and challenge were compiled to, once the context's image has done the same.

        Raises NotShared and BadChallenge.
        """
        key, context = _below(question, challenge), _key(question)
        whole = question.instead(challenge.program, context_end=challenge.context_end)
        seconds = min(_SECONDS, FIRST_LOAD.wall_seconds)
        asked = replace(whole, limits=replace(FIRST_LOAD, wall_seconds=seconds))
        found = self._stated.get(key)
        if found is None:
            self._runner.images.prewarm(*replace(asked, shares_context=True).key)  # it reads meanwhile
            found = self._compiled(asked, challenge)
            self._stated.put(key, found)
        if isinstance(found, str):
            raise BadChallenge(found)
        if not self._is_compared.get(context):
            if self._compiled(replace(asked, shares_context=True), challenge) != found:
                raise NotShared("the context is not compiled to the same module each time")
            self._is_compared.put(context, value=True)
            self._failures.put(context, 0)
        return found

    def _compiled(self, asked: Question, challenge: Challenge) -> Shared | str:
        """Return what context and challenge are compiled to, or why Lean refuses them. Raises NotShared."""
        with self._runner.apart(asked) as reply:
            report = replace(reply.report, tier=Tier.LEAN)
            if report.run.limit is not None:
                raise Unfit(f"it takes too much for that: {judge(report).detail}")
            if not reads_to_the_end(report):
                raise NotShared(f"context and statement do not end well: {judge(report).detail}")
            if (refused := refusal(reply, challenge)) is not None:
                return refused
            if reply.module is None or reply.context is None:
                raise NotShared("no module was left of a context and its statement")
            return Shared(context=reply.context, challenge=reply.module.read())

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
        if report.environment_error is not None:
            return None
        if ending(report).may_be_the_machine:
            raise BoxFailed(f"the context was not read: {judge(report).detail}")
        if not reads_to_the_end(report):
            return f"the context does not end well alone: {judge(report).detail}"
        if lean_refused(report) and challenge is not None:
            # Lean may want the theorem itself behind what ends a context: with it the text decides.
            self._challenges.compiled(challenge, question)
        return report.run


def _has_text(question: Question) -> bool:
    """Whether there is more in a context than imports."""
    return bool(question.context[question.header_end :].strip())


def _below(question: Question, challenge: Challenge) -> bytes:
    return cache.key(question.environment.digest, question.context, challenge.sha256)


def _key(question: Question) -> bytes:
    return cache.key(question.environment.digest, question.context)
