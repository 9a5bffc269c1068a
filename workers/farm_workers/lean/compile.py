"""Asking step: has one program compiled by Lean, in one of three ways, and returns the facts."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from farm import tracing
from farm.judging.ending import Ending, ending, limit
from farm.judging.report import Execution, Report
from farm.lean_text.header import header_end
from farm.log import logger
from farm_workers import cache
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.box.refused import lacks_memory
from farm_workers.box.supervisor import BoxFailed
from farm_workers.cache import Cache
from farm_workers.environments.lacking import damaged, remedy
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.images.image import NoImage, lean_image
from farm_workers.images.images import Images
from farm_workers.images.protocol import ExtractAsked, FillAsked, OutlineAsked, ReadAsked
from farm_workers.images.recipe import Recipe
from farm_workers.lean.cold import Cold
from farm_workers.lean.forked import Forked
from farm_workers.lean.pool import Pool
from farm_workers.lean.prepared import Prepared, is_possible
from farm_workers.lean.way import (
    COLD,
    FORKED,
    PREPARED,
    WAYS,
    Doubtful,
    NotShared,
    Question,
    Reply,
    stops_in_header,
)

_log = logger(__name__)


class LeanRunner:
    """Runs Lean on this machine; thread-safe. `close` ends every process."""

    def __init__(
        self,
        isolation: Isolation,
        *,
        way: str,
        most_images: int,
        images_mib: int = 8192,
    ) -> None:
        self._isolation = isolation
        self.way = way
        self.images = Images(isolation, lean_image, most=most_images, most_mib=images_mib)
        self._forked = Forked(isolation, self.images)
        self.pool = Pool(isolation, most=most_images, most_mib=images_mib, others=self._images_kept)
        self._prepared = Prepared(isolation, self.pool)
        self._cold = Cold(isolation)
        self._refused: Cache[bytes, Report] = Cache(
            most=_MOST_REFUSED, most_bytes=_MOST_REFUSED_BYTES, size=_text_bytes
        )
        self._known: dict[str, LeanEnvironment] = {}

    def close(self) -> None:
        """End every process; the object cannot be used afterwards."""
        self.pool.close()
        self.images.close()

    def _images_kept(self) -> tuple[int, int]:
        """Return the number of images, and their private memory in bytes."""
        kept = self.images.kept()
        return len(kept), sum(size for _, size in kept)

    def know(self, environments: Iterable[LeanEnvironment]) -> None:
        """Note environments of this machine, which may have the modules that another one lacks."""
        self._known |= {each.name: each for each in environments}

    def prewarm(self, environment: LeanEnvironment) -> None:
        """Begin to import the environment's headers, if Lean is forked or prepared."""
        self.know([environment])
        for header in (header[: header_end(header)] + "\n" for header in environment.headers):
            if self.way == FORKED:
                self.images.prewarm(environment, Recipe(header=header))
            elif self.way == PREPARED and is_possible(environment):
                with contextlib.suppress(Doubtful):
                    self.pool.prepare(environment, header)

    def cannot_fork(self, environment: LeanEnvironment) -> str:
        """Return why no image of the environment's header can be made, "" if it can."""
        header = environment.header
        recipe = Recipe(header=header[: header_end(header)] + "\n")
        try:
            with self.images.lease(environment, recipe, box.never):
                return ""
        except (NoImage, BoxFailed) as error:
            return str(error)

    @contextlib.contextmanager
    def compiled(self, question: Question) -> Iterator[Reply]:
        """Give the reply to a program; its module is closed at the end of the block.

        Raises NotShared if the question shares its context and no image can.
        """
        with tracing.step("farm.lean") as span:
            if question.shares_context:
                reply = self._shared(question, self._forked.compile)
            else:
                reply = self._with_remedy(question, self._compiled(question))
            span.set_attributes(way=reply.report.way)
        with reply.module or contextlib.nullcontext():
            yield reply

    def _with_remedy(self, question: Question, reply: Reply) -> Reply:
        """Return a reply with a sentence about the header's modules, if Lean cannot import the header."""
        first = reply.report.answer.first_error
        if first is None or not stops_in_header(question, reply.report):
            return reply
        said = remedy(question.header, question.environment, list(self._known.values()))
        if not said and _IMPORT_FAILED.match(first.text):
            said = damaged(question.environment)
        return replace(reply, report=replace(reply.report, remedy=said))

    def header_refusal(self, question: Question) -> str:
        """Return why a fresh Lean cannot import the header of a program, "" if it can."""
        alone = question.instead(question.header, way=COLD)
        with self.compiled(alone) as reply:
            report = self.report(alone, reply)
        first = report.answer.first_error
        if first is None or not stops_in_header(alone, report):
            return ""
        said = first.text.strip().partition("\n")[0]
        return f"the header cannot be imported: {said}. {report.remedy}".rstrip()

    @contextlib.contextmanager
    def apart(self, question: Question) -> Iterator[Reply]:
        """Give the reply to a program, with the module of its context apart from its own.

        If the question shares its context, a fork of an image that has read the context answers, otherwise a
        fork of the header's image. Raises NotShared.
        """
        with tracing.step("farm.context"):
            reply = self._shared(question, self._forked.compile_apart)
        with reply.module or contextlib.nullcontext():
            yield reply

    def read(self, question: Question, asked: ReadAsked) -> tuple[Execution, bytes | None]:
        """Have a program read and not elaborated, as `Forked.read` does. Raises NoImage and BoxFailed."""
        with tracing.step("farm.reading"):
            return self._forked.read(question, asked)

    def read_filling(self, question: Question, asked: FillAsked) -> tuple[Execution, bytes | None]:
        """Have an answer read in its hole, as `Forked.read_filling` does. Raises NoImage and BoxFailed."""
        with tracing.step("farm.filling"):
            return self._forked.read_filling(question, asked)

    def extract(self, question: Question, asked: ExtractAsked) -> tuple[Execution, bytes | None]:
        """Have a file elaborated, as `Forked.extract` does. Raises NoImage and BoxFailed."""
        with tracing.step("farm.extraction"):
            return self._forked.extract(question, asked)

    def outline(self, question: Question, asked: OutlineAsked) -> tuple[Execution, bytes | None]:
        """Have a file elaborated, as `Forked.outline` does. Raises NoImage and BoxFailed."""
        with tracing.step("farm.outline"):
            return self._forked.outline(question, asked)

    def _shared(self, question: Question, ask: Callable[[Question], Reply]) -> Reply:
        """Return the reply of a fork of a shared context, if the fork ends by itself.

        A context runs untrusted code: a failure of its image, or of a fork, is not yet a fault of the proof.
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
        """Return the facts of a reply, with the environment's error if the environment caused the failure."""
        if self._refused.get(_short(question)) is not None:
            return reply.report
        wrong = self._environment_error(reply.report, question)
        if wrong is None and _refuses_header(reply.report):
            self._remember_refusal(question)
        return replace(reply.report, environment_error=wrong)

    def _remember_refusal(self, question: Question) -> None:
        """Remember that Lean refuses a header, if it refuses the header alone."""
        alone = self._tried(question.instead(question.header, way=COLD))
        with alone.module or contextlib.nullcontext():
            if _refuses_header(alone.report):
                self._refused.put(_short(question), alone.report)

    def _compiled(self, question: Question) -> Reply:
        """Return the reply to a program; if a fork crashes, the reply of a fresh Lean decides.

        The image may have caused the crash of a fork, for example if a mapped file was replaced. That image
        serves no further check. A program that detects a fork and crashes in it only gains nothing: a fresh
        Lean's reply is sealed like any other, a run without one is no reply, and images are not given up for
        the same program again.
        """
        if (refused := self._refused.get(_short(question))) is not None:
            run = Execution(exit_status=1, isolation=self._isolation.name)
            return Reply(report=replace(refused, run=run))
        reply = self._tried(question)
        if question.stops_at is not None and _lacks_memory(reply.report):
            # Lean keeps its states where a check stops at an error: that memory is not the proof's.
            with reply.module or contextlib.nullcontext():
                return self._compiled(replace(question, stops_at=None))
        if reply.report.way != FORKED or ending(reply.report) is not Ending.CRASHED:
            return reply
        crashed_at = time.monotonic()
        again = self._tried(replace(question, way=COLD))
        if ending(again.report).may_be_the_machine:
            with again.module or contextlib.nullcontext():
                return reply
        if self.images.retire(*question.key, before=crashed_at):
            _log.warning("A fork crashed where a fresh Lean does not; its image is given up")
        return again

    def _tried(self, question: Question) -> Reply:
        with self.pool.working():
            reply = self._first_reply(question)
        if ending(reply.report) is not Ending.OUT_OF_MEMORY:
            return reply
        lacked = lacks_memory(question.limits.memory_mib)
        return replace(reply, report=replace(reply.report, run=replace(reply.report.run, lacked=lacked)))

    def _first_reply(self, question: Question) -> Reply:
        """Return the reply of the first way that has no doubts."""
        ways = {
            FORKED: self._forked.compile,
            PREPARED: self._prepared.compile,
            COLD: self._cold.compile,
        }
        for each in WAYS[WAYS.index(question.way or self.way) :]:
            try:
                return self._imported(question, ways[each](question))
            except Doubtful as doubt:
                _log.debug("Falling back from the way %s: %s", each, doubt)
            except (BoxFailed, OSError) as error:
                run = Execution(box_error=str(error), isolation=self._isolation.name)
                return Reply(report=Report(run=run, way=each))
        raise AssertionError("a fresh Lean has no doubts")

    def _imported(self, question: Question, reply: Reply) -> Reply:
        """Return the reply of a second Lean if the first one stopped in the header, else the reply given.

        The first may have lacked a descriptor or memory for the imports, or could not read a disk.
        """
        if reply.report.way == FORKED or not stops_in_header(question, reply.report):
            return reply
        with reply.module or contextlib.nullcontext():
            return self._cold.compile(question)

    def _environment_error(self, report: Report, question: Question) -> str | None:
        """Return the error of the environment if imports fail that it promises itself.

        A program may import a module that does not exist, which is its own fault. So the text of the error
        only prompts a check: the environment's header is compiled alone, and decides.
        """
        first = report.answer.first_error
        if first is None or not _IMPORT_FAILED.match(first.text):
            return None
        with self.compiled(question.instead(question.environment.header, way=COLD)) as reply:
            found = reply.report.answer.first_error
        return None if found is None else found.text.partition("\n")[0]


#: The beginnings of Lean's messages about a module that cannot be imported (``Lean.findOLean``,
#: ``Lean.readModuleData``).
_IMPORT_FAILED = re.compile(
    r"unknown (module prefix|package) '|object file '.*' of module .* does not exist|failed to read file '",
)


#: How Lean says that a module is not there, which stays so for the digest of an environment. A file that
#: could not be read may be read the next time: it is not among them.
_NOT_THERE = re.compile(r"unknown (module prefix|package) '|object file '.*' of module .* does not exist")
#: At most this many headers that cannot be imported are cached, with at most this many bytes of messages.
_MOST_REFUSED, _MOST_REFUSED_BYTES = 1000, 4 << 20


def _refuses_header(report: Report) -> bool:
    """Whether Lean ended by itself because a module of the header is missing."""
    run, first = report.run, report.answer.first_error
    is_own_end = run.is_undisturbed and run.exit_status == 1 and not report.answer.reached_end
    return is_own_end and first is not None and _NOT_THERE.match(first.text) is not None


def _lacks_memory(report: Report) -> bool:
    """Whether a run might end otherwise with more memory."""
    return limit(report) == "memory" or ending(report) in {Ending.OUT_OF_MEMORY, Ending.LEAN_MEMORY}


def _short(question: Question) -> bytes:
    return cache.key(question.environment.digest, question.header)


def _text_bytes(report: Report) -> int:
    return sum(len(message.text) for message in report.answer.messages)
