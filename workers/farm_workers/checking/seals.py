"""Sealing step: gives a compiled module to a fork of an image and returns what that finds in it.

The fork has run nothing of any submission (`farm_workers.seal`). Where no image can be made,
`farm_workers.checking.boxed` takes its place. Where another kernel is to be asked as well, the module that
the fork has built is returned too.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from farm.documents import decoded
from farm.judging.assurance import Assurance
from farm.judging.audit import Audit
from farm.judging.report import Execution
from farm.judging.tiers import Tier
from farm.lean_text.header import header_end
from farm.lean_text.positions import line_and_column
from farm.log import logger
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
#: A seal that dies is done once more: a single death says nothing about the module.
_TURNS = 2
#: Limits of which it matters whether the kernel has been asked.
_OF_AUDIT = frozenset({"wall", "cpu", "memory"})


class KernelLimit(Exception):
    """Audit or kernel went over a limit; the message names it, as `Report.kernel_limit` does."""

    @classmethod
    def of(cls, run: Execution, *, kernel_asked: bool = True) -> KernelLimit:
        """Return the one that the limit stands for which a run of a seal, or of a checker, went over."""
        limit = str(run.limit)
        if not kernel_asked and limit in _OF_AUDIT:
            return cls(f"audit_{limit}")
        return cls({"wall": "time", "cpu": "time", "memory": "memory"}.get(limit, "depth"))

    @property
    def is_of_time(self) -> bool:
        """Whether there was not enough time."""
        return str(self) in ("time", "audit_wall", "audit_cpu")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sealable:
    """A module to seal, with the statement that it is compared with and the question that it answers.

    `module` is a descriptor of a sealed file. `challenge` is the compiled statement, None where the line has
    none. `stated` is the program whose header names the imports: the challenge's, else the check's own.
    `context` is what its context was compiled to, where that is none of the module. With `accounts`
    the module has to have all that the program declares; `declared` lists that where Lean forgets some of it.
    """

    module: int
    challenge: bytes | None
    stated: str
    assurance: Assurance
    question: Question
    context: bytes = b""
    accounts: bool = False
    declared: Sequence[str] | None = None

    @property
    def key(self) -> tuple[LeanEnvironment, Recipe]:
        """The environment of the image in which the module is sealed, and what that has read."""
        header = self.stated[: header_end(self.stated)] + "\n"
        return self.question.environment, Recipe(header=header, module=self.context)

    @property
    def ends(self) -> tuple[int, int] | None:
        """Where the statement ends: line, from 1, and column, from 0; None where the line has none."""
        if self.challenge is None:
            return None
        text = self.stated.rstrip()
        return text.count("\n") + 1, len(text) - text.rfind("\n") - 1

    @property
    def parts_from(self) -> tuple[int, int] | None:
        """Where what has to be proved in all its parts begins, line and column; None where it need not be."""
        if self.challenge is None or not self.assurance.requires_all_parts:
            return None
        return line_and_column(self.stated, self.question.context_end)

    @property
    def needs_second_kernel(self) -> bool:
        """Whether the environment's checker has to accept what the seal accepts."""
        return self.assurance.tier == Tier.KERNEL and self.question.environment.has_second_kernel


@dataclass(frozen=True, kw_only=True, slots=True)
class Sealed:
    """What audit and kernel found in a module.

    `module` is the one that the seal has built, where it was accepted and a second kernel has to be asked.
    """

    audit: Audit
    module: bytes | None


class Seals:
    """Has modules sealed in forks of images; for many threads."""

    def __init__(self, isolation: Isolation, images: Images[LeanEnvironment]) -> None:
        self._isolation, self._images = isolation, images

    def seal(self, sealable: Sealable) -> Sealed:
        """Return what audit and kernel find in a module.

        Raises NoImage where no image can be made, KernelLimit when audit or kernel go over a limit, and
        BoxFailed when the farm fails.
        """
        for _ in range(_TURNS):
            run, written = self._run(sealable)
            asked = run.stdout.startswith(protocol.KERNEL_ASKED)
            if run.limit is not None:
                raise KernelLimit.of(run, kernel_asked=asked)
            if run.box_error is not None:
                raise BoxFailed(run.box_error)
            with contextlib.suppress(ValueError):
                return _sealed(decoded(Audit, json.loads(run.stdout)), written)
            _log.warning("A seal died: %s", run.stderr.decode(errors="replace")[-2000:].strip())
        # A module can only bring the kernel's code to a fault: who kills, or has no memory, is the machine.
        if run.signal in (None, signal.SIGKILL):
            raise BoxFailed("seals were killed, or failed; the worker's log and the machine's say why")
        self._require_working(sealable)
        raise KernelLimit("depth" if asked else "audit_depth")

    def _run(self, sealable: Sealable) -> tuple[Execution, bytes | None]:
        assurance = sealable.assurance
        asked = {
            "axioms": list(assurance.axioms),
            "native": assurance.native,
            "parts_from": sealable.parts_from,
            "replay": assurance.tier == Tier.KERNEL,
            "ends": sealable.ends,
            "accounts": sealable.accounts,
            "declared": sealable.declared,
        }
        request = {"with_challenge": sealable.challenge is not None, "request": asked}
        with as_file(sealable.challenge or b"\0") as challenge:
            files = [sealable.module, challenge]
            if not sealable.needs_second_kernel:
                return self._forked(sealable, request, files)
            with os.fdopen(os.memfd_create("sealed", os.MFD_CLOEXEC), "r+b") as into:
                return self._forked(sealable, request, files, into)

    def _forked(
        self, sealable: Sealable, request: dict[str, Any], files: list[int], into: BinaryIO | None = None
    ) -> tuple[Execution, bytes | None]:
        """Return the facts of a seal when its process is dead, and what it wrote to a file in memory."""
        limits = replace(sealable.question.limits, output_kib=_ANSWER_KIB)

        def begun(image: Image) -> Fork:
            return image.seal(request, limits, files, into.fileno() if into else None)

        cancelled = sealable.question.cancelled
        try:
            with forked(self._images, sealable.key, cancelled, begun) as fork:
                run = watched(fork, limits, self._isolation, cancelled)
                return run, _moved(into) if into else None
        except NotWanted:
            raise BoxFailed(box.CANCELLED) from None

    def of_challenge(self, sealable: Sealable) -> Execution:
        """Return how a seal of the statement's own module went, which may take as long as a first load.

        Its sorries are accepted: the kernel is asked only about what the audit accepts. Raises what `seal`
        does.
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
        """Seal the statement's own module; raises BoxFailed when that gets no answer either."""
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
    """Return what a dead process has written to a file in memory, and empty that: it counts as the cell's."""
    if os.fstat(file.fileno()).st_size > FILE_BYTES:  # which its limits do not let it write
        raise BoxFailed(f"a seal wrote more than {FILE_BYTES >> 20} MiB")
    file.seek(0)
    content = file.read()
    file.truncate(0)
    return content


def _sealed(audit: Audit, written: bytes | None) -> Sealed:
    """Return a seal's answer with the module that it is about. Raises BoxFailed for another module."""
    if written is None or not audit.accepted:
        return Sealed(audit=audit, module=None)
    if hashlib.sha256(written).hexdigest() != audit.sealed_sha256:
        raise BoxFailed("a seal wrote another module than the one it reported")
    return Sealed(audit=audit, module=written)
