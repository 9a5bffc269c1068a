"""Sealing step: gives a compiled module to a fork of an image, and returns the fork's audit to the checker.

The fork has run no code of any submission (`farm_workers.seal`). If no image can be made,
`farm_workers.checking.boxed` audits the module instead. If somebody else must read the module too, such as a
second kernel, the module that the fork has rebuilt is returned with the audit.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from farm.documents import decoded
from farm.judging.assurance import Assurance
from farm.judging.audit import Audit
from farm.judging.ending import says_nothing
from farm.judging.report import Execution
from farm.judging.tiers import Tier
from farm.lean_text.header import header_end
from farm.lean_text.positions import line_and_column
from farm.log import logger
from farm.task import Task
from farm_workers.audit.answers import AnswersAsked
from farm_workers.audit.dependencies import FAILED
from farm_workers.audit.kernel import SORRY
from farm_workers.audit.names import dotted
from farm_workers.box import once as box
from farm_workers.box.copy import as_file
from farm_workers.box.isolation import Isolation
from farm_workers.box.launch import FILE_BYTES
from farm_workers.box.supervisor import BoxFailed
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.images import protocol
from farm_workers.images.fork import Fork
from farm_workers.images.forking import forked, watched
from farm_workers.images.image import Image
from farm_workers.images.images import Images, NotWanted
from farm_workers.images.recipe import Recipe
from farm_workers.lean.way import FIRST_LOAD, Question

_log = logger(__name__)

#: The longest answer of a seal: the number of its findings is bounded, the length of names is not.
_ANSWER_KIB = 8192
#: A seal that dies is retried once: a single death does not show that the module caused it.
_TURNS = 2
#: The limits that are reported as the audit's, if a seal exceeds them before its kernel begins.
_OF_AUDIT = frozenset({"wall", "cpu", "memory"})


class KernelLimit(Exception):
    """Audit or kernel exceeded a limit; the message names it, as `Report.kernel_limit` does."""

    @classmethod
    def of(cls, run: Execution, *, kernel_asked: bool = True) -> KernelLimit:
        """Return the error for the limit that a run of a seal, or of a checker, exceeded."""
        limit = str(run.limit)
        if not kernel_asked and limit in _OF_AUDIT:
            return cls(f"audit_{limit}")
        return cls({"wall": "time", "cpu": "time", "memory": "memory"}.get(limit, "depth"))

    @property
    def is_of_time(self) -> bool:
        """Whether the limit is one of wall or processor time."""
        return str(self) in ("time", "audit_wall", "audit_cpu")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sealable:
    """A module to seal, with the statement that it is compared with and the question that it answers.

    `module` is a descriptor of a sealed file. `challenge` is the compiled statement, None if the line has no
    statement. `stated` is the program whose header names the imports: the challenge's, else the check's own.
    `context` is the compiled module of a shared context, whose declarations `module` then lacks. If the
    question keeps examples, the module must hold all declarations of the program; `declared` lists them if
    Lean drops some. With `returns_module` the rebuilt module is returned with its audit. `answers` are the
    definitions that the module may give, and the demands on them, None if there are none. For an answer to
    one hole of several, `parent` is the compiled module of the program with all of them, and `hole` the line
    and column of that one. `forbidden` are constants that the proof must not reach. With `states` the module
    is the statement's own, and the seal only returns its facts. A challenge that states a negation begins it
    at the offset `negates`, which is 0 for any other.
    """

    module: int
    challenge: bytes | None
    stated: str
    assurance: Assurance
    question: Question
    context: bytes = b""
    declared: Sequence[str] | None = None
    returns_module: bool = False
    task: Task = field(default_factory=Task)
    answers: AnswersAsked | None = None
    states: bool = False
    parent: bytes | None = None
    hole: tuple[int, int] | None = None
    forbidden: Sequence[str] = ()
    negates: int = 0
    table: Path | None = None

    @property
    def key(self) -> tuple[LeanEnvironment, Recipe]:
        """The environment and the recipe of the image whose fork seals the module."""
        header = self.stated[: header_end(self.stated)] + "\n"
        table = self.table if self.context else None
        return self.question.environment, Recipe(header=header, module=self.context, table=table)

    @property
    def ends(self) -> tuple[int, int] | None:
        """The end of the statement: line, from 1, and column, from 0; None without a statement."""
        if self.challenge is None and not self.states:
            return None
        return text_end(self.stated)

    @property
    def ends_above(self) -> tuple[int, int] | None:
        """The end of the statement whose negation has to be proved; None for any other challenge."""
        return text_end(self.stated[: self.negates]) if self.negates else None

    @property
    def parts_from(self) -> tuple[int, int] | None:
        """The line and column below which all open theorems must be proved; None if only the last must be."""
        return self.statement_from if self.assurance.requires_all_parts else None

    @property
    def statement_from(self) -> tuple[int, int] | None:
        """The line and column at which the statement begins; None without a statement."""
        return None if self.challenge is None else line_and_column(self.stated, self.question.context_end)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sealed:
    """The audit of a module, with the kernel's answer.

    `module` is the rebuilt module, if the seal accepted it and was asked to return it, else None. `texts` are
    what the seal says of the texts of the audit's answers, if it printed any.
    """

    audit: Audit
    module: bytes | None = None
    texts: tuple[AnswerText, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerText:
    """What the text of an answer can be held against: the digest of the value, and the value in full."""

    value_sha256: str
    full: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Texts:
    """The part of a seal's facts that is about the texts of answers."""

    answers: tuple[AnswerText, ...] = ()


def text_end(text: str) -> tuple[int, int]:
    """Return where a text ends but for white space: line, from 1, and column, from 0."""
    text = text.rstrip()
    return text.count("\n") + 1, len(text) - text.rfind("\n") - 1


def asked_of(sealable: Sealable) -> protocol.SealAsked:
    """Return the fields of a line's task for a seal; none for a line without one."""
    task = sealable.task
    if not task.reads_open_modules:
        return {}
    return {
        "permitted": task.permit_sorry or (),
        "statement_from": sealable.statement_from,
        "lists": bool(task.declarations),
        "hole": sealable.hole,
        "hole_below": line_and_column(sealable.question.program, sealable.question.context_end),
    }


class Seals:
    """Has modules sealed in forks of images; thread-safe."""

    def __init__(self, isolation: Isolation, images: Images[LeanEnvironment]) -> None:
        self._isolation, self._images = isolation, images

    def seal(self, sealable: Sealable) -> Sealed:
        """Return the audit of a module and, on the tier kernel, the kernel's answer.

        Raises NoImage if no image can be made, KernelLimit if audit or kernel exceed a limit, and BoxFailed
        when the farm fails.
        """
        for _ in range(_TURNS):
            run, written = self._run(sealable)
            asked = run.stdout.startswith(protocol.KERNEL_ASKED)
            if run.limit is not None:
                raise KernelLimit.of(run, kernel_asked=asked)
            if run.box_error is not None:
                raise BoxFailed(run.box_error)
            with contextlib.suppress(ValueError):
                facts = json.loads(run.stdout)
                if FAILED in facts:
                    raise BoxFailed(facts[FAILED])
                texts = decoded(_Texts, facts).answers
                return replace(_sealed(decoded(Audit, facts), written), texts=texts)
            _log.warning("A seal died: %s", run.stderr.decode(errors="replace")[-2000:].strip())
        # A module can make the kernel's code crash by a signal; signals from outside, failed exits and
        # refused threads are the machine's.
        if says_nothing(run):
            raise BoxFailed("seals were killed, or failed; the worker's log and the machine's say why")
        self._require_working(sealable)
        raise KernelLimit("depth" if asked else "audit_depth")

    def _run(self, sealable: Sealable) -> tuple[Execution, bytes | None]:
        assurance = sealable.assurance
        asked = {
            "axioms": list(assurance.axioms),
            "forbidden": list(sealable.forbidden),
            "native": assurance.native,
            "parts_from": sealable.parts_from,
            **asked_of(sealable),
            "answers": sealable.answers,
            "replay": assurance.tier == Tier.KERNEL,
            "ends": sealable.ends,
            "negates": sealable.ends_above,
            "states": sealable.states,
            "accounts": sealable.question.keeps_examples,
            "declared": sealable.declared,
            "permits_library": sealable.question.environment.permits_library_sorries,
        }
        request = {"with_challenge": sealable.challenge is not None, "request": asked}
        with as_file(sealable.challenge or b"\0") as challenge, as_file(sealable.parent or b"\0") as parent:
            files = [sealable.module, challenge, *([] if sealable.parent is None else [parent])]
            if not sealable.returns_module:
                return self._forked(sealable, request, files)
            with os.fdopen(os.memfd_create("sealed", os.MFD_CLOEXEC), "r+b") as into:
                return self._forked(sealable, request, files, into)

    def _forked(
        self,
        sealable: Sealable,
        request: Mapping[str, object],
        files: list[int],
        into: BinaryIO | None = None,
    ) -> tuple[Execution, bytes | None]:
        """Return the run of a seal after its process has ended, and the bytes that it wrote to `into`."""
        limits = replace(sealable.question.limits, output_kib=_ANSWER_KIB)

        def begun(image: Image) -> Fork:
            if sealable.table is None:
                return image.seal(request, limits, files, into.fileno() if into else None)
            with sealable.table.open("rb") as table:
                return image.seal(request, limits, files, into.fileno() if into else None, table.fileno())

        cancelled = sealable.question.cancelled
        try:
            with forked(self._images, sealable.key, cancelled, begun) as fork:
                run = watched(fork, limits, self._isolation, cancelled)
                return run, _moved(into) if into else None
        except NotWanted:
            raise BoxFailed(box.CANCELLED) from None

    def of_challenge(self, sealable: Sealable) -> Execution:
        """Return the run of a seal of the statement's own module, within the limits of a first load.

        The request allows its sorries, because the kernel checks only modules that the audit accepts. Raises
        the same errors as `seal`.
        """
        if sealable.challenge is None:
            return Execution()
        with as_file(sealable.challenge) as module:
            asked = {
                "axioms": [*sealable.assurance.axioms, dotted(SORRY)],
                "native": True,
                "replay": sealable.assurance.tier == Tier.KERNEL,
            }
            request = {"with_challenge": False, "request": asked}
            alone = replace(sealable, question=replace(sealable.question, limits=FIRST_LOAD))
            run, _ = self._forked(alone, request, [module, module])
        if run.limit is not None:
            raise KernelLimit.of(run)
        if run.box_error is not None:
            raise BoxFailed(run.box_error)
        return run

    def _require_working(self, sealable: Sealable) -> None:
        """Seal the statement's own module; raises BoxFailed if that seal gives no answer either."""
        if sealable.challenge is None:
            return
        with as_file(sealable.challenge) as module:
            request = {"with_challenge": False, "request": {"replay": True}}
            run, _ = self._forked(sealable, request, [module, module])
        try:
            json.loads(run.stdout)
        except ValueError:
            raise BoxFailed("modules cannot be sealed") from None


def _moved(file: BinaryIO) -> bytes:
    """Return the content of a memory file, and truncate it: its pages count against the cell's memory."""
    if os.fstat(file.fileno()).st_size > FILE_BYTES:  # more than the limits of the process allow
        raise BoxFailed(f"a seal wrote more than {FILE_BYTES >> 20} MiB")
    file.seek(0)
    content = file.read()
    file.truncate(0)
    return content


def is_checked(audit: Audit) -> bool:
    """Return whether the kernel has accepted a module about whose declarations the line asks."""
    asks = audit.parts is not None or audit.declarations is not None
    return asks and audit.replay is not None and audit.replay.accepted


def _sealed(audit: Audit, written: bytes | None) -> Sealed:
    """Return a seal's audit with the module that it wrote; raises BoxFailed if their digests differ."""
    if written is None or not (audit.accepted or is_checked(audit)):
        return Sealed(audit=audit)
    if hashlib.sha256(written).hexdigest() != audit.sealed_sha256:
        raise BoxFailed("a seal wrote another module than the one it reported")
    return Sealed(audit=audit, module=written)
