"""Asking step: has one program compiled by Lean, in one of three ways, and returns the facts."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from farm import tracing
from farm.judging.ending import Ending, ending
from farm.judging.report import Execution, Report
from farm.lean_text.header import header_end
from farm.log import logger
from farm_workers import cache
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.box.supervisor import BoxFailed
from farm_workers.cache import Cache
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.images.image import lean_image
from farm_workers.images.images import Images
from farm_workers.images.recipe import Recipe
from farm_workers.lean.cold import Cold
from farm_workers.lean.forked import Forked
from farm_workers.lean.snapshot import Snapshot
from farm_workers.lean.way import COLD, FORKED, SNAPSHOT, WAYS, Doubtful, NotShared, Question, Reply

_log = logger(__name__)


class LeanRunner:
    """Runs Lean on this machine; for many threads. `close` ends every process.

    `way` is how Lean is run unless a caller asks for another one: ``forked``, ``snapshot`` or ``cold``. A way
    that cannot answer gives the program to the next. `most_images` and `images_mib` bound the images that are
    kept, and their memory, `snapshot_mib` the snapshots in `home`.
    """

    def __init__(
        self,
        isolation: Isolation,
        *,
        home: Path,
        way: str,
        most_images: int,
        images_mib: int = 8192,
        snapshot_mib: int,
    ) -> None:
        self._isolation = isolation
        self.way = way
        self.images = Images(isolation, lean_image, most=most_images, most_mib=images_mib)
        self._forked = Forked(isolation, self.images)
        self._snapshot = Snapshot(isolation, home / "snapshots", most_mib=snapshot_mib)
        self._cold = Cold(isolation)
        self._refused: Cache[bytes, Report] = Cache(
            most=_MOST_REFUSED, most_bytes=_MOST_REFUSED_BYTES, size=_text_bytes
        )

    def close(self) -> None:
        """End every process; nothing may be asked any more."""
        self.images.close()

    def prewarm(self, environment: LeanEnvironment) -> None:
        """Begin to make images of the environment's headers, where Lean is forked."""
        if self.way == FORKED:
            for header in environment.headers:
                self.images.prewarm(environment, Recipe(header=header[: header_end(header)] + "\n"))

    @contextlib.contextmanager
    def compiled(self, question: Question, way: str | None = None) -> Iterator[Reply]:
        """Give what came of compiling a program; its module is closed at the end of the block.

        Raises NotShared for a question that shares its context, where that cannot be.
        """
        with tracing.step("farm.lean") as span:
            if question.shares_context:
                reply = self._shared(question, self._forked.compile)
            else:
                reply = self._compiled(question, way or self.way)
            span.tell(way=reply.report.way)
        with reply.module or contextlib.nullcontext():
            yield reply

    @contextlib.contextmanager
    def apart(self, question: Question) -> Iterator[Reply]:
        """Give what came of compiling a program, and its context as a module of its own.

        A question that shares its context is asked of an image that has read that, any other one of a fork
        of the header's image. Raises NotShared.
        """
        with tracing.step("farm.context"):
            reply = self._shared(question, self._forked.compile_apart)
        with reply.module or contextlib.nullcontext():
            yield reply

    def _shared(self, question: Question, ask: Callable[[Question], Reply]) -> Reply:
        """Return what a fork says of a program with a context that is shared, if it ends by itself.

        A context runs a stranger's code: where its image, or a fork, fails, that is no fault of a proof yet.
        """
        try:
            reply = ask(question)
        except (Doubtful, BoxFailed, OSError) as error:
            raise NotShared(str(error)) from error
        run = reply.report.run
        if run.box_error not in (None, box.CANCELLED) or ending(reply.report) is Ending.CRASHED:
            with reply.module or contextlib.nullcontext():
                raise NotShared(run.box_error or "a fork crashed")
        return reply

    def report(self, question: Question, reply: Reply) -> Report:
        """Return the facts of a reply, and what is wrong with the environment where that is to blame."""
        if self._refused.get(_short(question)) is not None:
            return reply.report
        wrong = self._environment_error(reply.report, question)
        if wrong is None and _refuses_header(reply.report):
            self._remember_refusal(question)
        return replace(reply.report, environment_error=wrong)

    def _remember_refusal(self, question: Question) -> None:
        """Remember that Lean refuses a header, where it does so of the header alone.

        The answer to a program only raises the question: its code can print such an error and end Lean.
        """
        alone = self._tried(question.instead(question.header), COLD)
        with alone.module or contextlib.nullcontext():
            if _refuses_header(alone.report):
                self._refused.put(_short(question), alone.report)

    def _compiled(self, question: Question, way: str) -> Reply:
        """Return what came of a program; where a fork crashes, the answer of a fresh Lean decides.

        A fork that crashes alone may have got that from its image, such as one whose file was replaced under
        the map. That image serves no further check. A program that crashes in a fork only, because it can
        tell, gains nothing: a fresh Lean's answer is sealed as any other, an end without one is no answer,
        and images are not given up for it again and again.
        """
        if (refused := self._refused.get(_short(question))) is not None:
            run = Execution(exit_status=1, isolation=self._isolation.name)
            return Reply(report=replace(refused, run=run))
        reply = self._tried(question, way)
        if reply.report.way != FORKED or ending(reply.report) is not Ending.CRASHED:
            return reply
        crashed_at = time.monotonic()
        again = self._tried(question, COLD)
        if ending(again.report).may_be_the_machine:
            with again.module or contextlib.nullcontext():
                return reply
        if self.images.retire(*question.key, before=crashed_at):
            _log.warning("A fork crashed where a fresh Lean does not; its image is given up")
        return again

    def _tried(self, question: Question, way: str) -> Reply:
        ways = {FORKED: self._forked.compile, SNAPSHOT: self._snapshot.compile, COLD: self._cold.compile}
        for each in WAYS[WAYS.index(way) :]:
            try:
                return ways[each](question)
            except Doubtful as doubt:
                _log.debug("Falling back from the way %s: %s", each, doubt)
            except (BoxFailed, OSError) as error:
                run = Execution(box_error=str(error), isolation=self._isolation.name)
                return Reply(report=Report(run=run, way=each))
        raise AssertionError("a fresh Lean has no doubts")

    def _environment_error(self, report: Report, question: Question) -> str | None:
        """Say what is broken when imports fail that the environment itself promises.

        A program may ask for a module that never was; then its own header is to blame. So the text of the
        error only asks the question: the environment's header, alone, answers it.
        """
        first = report.answer.first_error
        if first is None or not _IMPORT_FAILED.match(first.text):
            return None
        with self.compiled(question.instead(question.environment.header), COLD) as reply:
            found = reply.report.answer.first_error
        return None if found is None else found.text.partition("\n")[0]


#: How Lean begins to say that a module cannot be imported (``Lean.findOLean``, ``Lean.readModuleData``).
_IMPORT_FAILED = re.compile(
    r"unknown (module prefix|package) '|object file '.*' of module .* does not exist|failed to read file '",
)


#: How Lean says that a module is not there, which stays so for the digest of an environment. A file that
#: could not be read may be read the next time: it is not among them.
_NOT_THERE = re.compile(r"unknown (module prefix|package) '|object file '.*' of module .* does not exist")
#: So many headers that cannot be imported are remembered, with so many bytes of messages.
_MOST_REFUSED, _MOST_REFUSED_BYTES = 1000, 4 << 20


def _refuses_header(report: Report) -> bool:
    """Whether Lean came to an end of its own because a module that the header names is not there."""
    run, first = report.run, report.answer.first_error
    is_own_end = run.is_undisturbed and run.exit_status == 1 and not report.answer.reached_end
    return is_own_end and first is not None and _NOT_THERE.match(first.text) is not None


def _short(question: Question) -> bytes:
    return cache.key(question.environment.digest, question.header)


def _text_bytes(report: Report) -> int:
    return sum(len(message.text) for message in report.answer.messages)
