"""Context step: has Lean read a dataset's text above a theorem once for all its proofs, if it can be shared.

A context is no part of a proof: its reading time is added to the limits of every check that reads it, and its
errors count as faults of the statement. Two images hold a shared context: one has read the text, and in the
other the kernel has checked the compiled module (`farm_workers.seal.above`).

Proofs run in forks of the image that has read the context, in one cell with it, so that image is not trusted
with the statement. A fork of the header's image, in which no proof has run, compiles context and statement;
the context's image serves only after it has compiled both to the same bytes.
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
from farm_workers.checking.challenges import BadChallenge, Challenges, makes_errors_of_sorries, refusal
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import FIRST_LOAD, FORKED, NotShared, Question, Unfit

_log = logger(__name__)

#: The most contexts in each cache: of reading times or errors, and of compiled modules, which also take at
#: most this many bytes.
_MOST, _MOST_BYTES = 1000, 256 << 20
#: A context is no longer shared after this many failures that no proof can have caused.
_MOST_FAILURES = 3
#: The most contexts that are compiled at once; the seconds after which a waiting thread polls `cancelled`.
_LOCKS, _LOOK_SECONDS = 64, 0.25
#: The most seconds to compile a context and a statement for sharing: an image has as many to read a context.
_SECONDS = 120.0
#: The reading time of a context is measured once; limits allow for this multiple of it, since the machine may
#: be busier during a check.
TIMES = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Shared:
    """The compiled modules of a shared context and of the challenge's text below it."""

    context: bytes
    challenge: bytes

    @property
    def size(self) -> int:
        """The bytes of both modules together."""
        return len(self.context) + len(self.challenge)


class Contexts:
    """Reads each context once alone, and caches the run and the modules; thread-safe."""

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

    def shared(self, question: Question, challenge: Challenge | None) -> Shared | None:
        """Return the modules of a context and a challenge; None if checks cannot share the context.

        Raises BadChallenge for a context or a statement that Lean refuses.
        """
        if not self._may_share or (question.way or self._runner.way) != FORKED or not _has_text(question):
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
        """Let one thread at a time compile a context; yields False for a check that is cancelled meantime."""
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
        """Count a failure to share a context that no proof can have caused."""
        key, more = _key(question), _MOST_FAILURES if isinstance(error, Unfit) else 1
        _log.info("A context is not shared: %s", error)
        self._failures.put(key, (self._failures.get(key) or 0) + more)

    def suspect(self, question: Question, error: NotShared) -> None:
        """Retire a context's image after the run of a proof in it failed; its successor is compared again."""
        _log.info("The image of a context is given up: %s", error)
        self._is_compared.put(_key(question), value=False)
        self._runner.images.retire(*replace(question, shares_context=True).key)

    def _compared(self, question: Question, challenge: Challenge) -> Shared:
        """Return the modules of context and challenge, after the context's image has compiled the same bytes.

        Raises NotShared and BadChallenge.
        """
        key, context = _below(question, challenge), _key(question)
        whole = question.instead(challenge.text, context_end=challenge.context_end)
        seconds = min(_SECONDS, FIRST_LOAD.wall_seconds)
        asked = replace(whole, limits=replace(FIRST_LOAD, wall_seconds=seconds))
        found = self._stated.get(key)
        if found is None:
            self._runner.images.prewarm(*replace(asked, shares_context=True).key)  # it reads in parallel
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
        """Return the modules of context and challenge, or Lean's error; raises NotShared."""
        with self._runner.apart(asked) as reply:
            report = replace(reply.report, tier=Tier.LEAN)
            if report.run.limit is not None:
                raise Unfit(f"it takes too much for that: {judge(report).detail}")
            if not reads_to_the_end(report):
                raise NotShared(f"context and statement do not end well: {judge(report).detail}")
            if (refused := refusal(reply, challenge)) is not None:
                if makes_errors_of_sorries(report):
                    self._challenges.compiled(challenge, asked)
                    raise Unfit("it makes errors of warnings, also of that about the farm's own sorry")
                return refused
            if reply.module is None or reply.context is None:
                raise NotShared("no module was left of a context and its statement")
            return Shared(context=reply.context, challenge=reply.module.read())

    def reading(self, question: Question, challenge: Challenge | None) -> Execution:
        """Return the run in which Lean read a question's context alone; zero seconds without a context.

        The run has the time limits of a first load and the check's memory limit. A context that only imports
        is not read. Raises BadChallenge if Lean refuses the context or does not reach its end, and BoxFailed
        when the farm fails.
        """
        if not _has_text(question):
            return Execution()
        words = question.environment.digest, question.way or self._runner.way, str(question.limits.memory_mib)
        key = cache.key(*words, question.context)
        found = self._kept.get(key)
        if found is None:
            found = self._read(question, challenge)
            if found is None:
                return Execution()
            self._kept.put(key, found)
        if isinstance(found, str):
            raise BadChallenge(found)
        return found

    def _read(self, question: Question, challenge: Challenge | None) -> Execution | str | None:
        """Return the run in which Lean read a context, or an error; None if the check will show the fault."""
        limits = replace(FIRST_LOAD, memory_mib=question.limits.memory_mib)
        alone = replace(question.instead(question.context, way=question.way), limits=limits)
        with self._runner.compiled(alone) as reply:
            report = replace(self._runner.report(alone, reply), tier=Tier.LEAN)
        if report.environment_error is not None:
            return None
        if ending(report).may_be_the_machine:
            raise BoxFailed(f"the context was not read: {judge(report).detail}")
        if not reads_to_the_end(report):
            return f"the context does not end well alone: {judge(report).detail}"
        if lean_refused(report) and challenge is not None:
            # The end of a context, as `open ... in`, may need the theorem below it: the challenge has both.
            self._challenges.compiled(challenge, question)
        return report.run


def _has_text(question: Question) -> bool:
    """Return whether a context has more text than its imports."""
    return bool(question.context[question.header_end :].strip())


def _below(question: Question, challenge: Challenge) -> bytes:
    return cache.key(question.environment.digest, question.context, challenge.sha256)


def _key(question: Question) -> bytes:
    return cache.key(question.environment.digest, question.context)
