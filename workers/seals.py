"""Sealing step: gives a compiled module to a fork of an image and returns what that finds in it.

The fork has run nothing of any submission (`workers.seal`). Where no image can be made, `workers.boxed` takes
its place.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from farm.assurance import Assurance
from farm.header import header_end
from farm.job import Limits
from farm.log import logger
from farm.tiers import Tier
from workers.box import once as box
from workers.box.isolation import Isolation
from workers.box.once import as_file
from workers.box.supervisor import BoxFailed
from workers.environments import LeanEnvironment
from workers.images.fork import Fork
from workers.images.image import Image
from workers.images.images import Images, NotWanted
from workers.ways.forked import forked, watched

_log = logger(__name__)

#: The longest answer of a seal: the number of its findings is bounded, the length of names is not.
_ANSWER_KIB = 8192
_KERNEL_LIMITS = {"wall": "time", "cpu": "time", "memory": "memory"}
#: A seal that dies is done once more: a single death says nothing about the module.
_TURNS = 2


class KernelLimit(Exception):
    """Audit or kernel went over a limit; the message names it: ``time``, ``memory`` or ``depth``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sealable:
    """A module to seal, with the statement that it is compared with and the limits that hold.

    `module` is a descriptor of a sealed file. `challenge` is the compiled statement, None where the line has
    none. `stated` is the program whose header names the imports: the challenge's, else the check's own.
    """

    module: int
    challenge: bytes | None
    stated: str
    assurance: Assurance
    environment: LeanEnvironment
    limits: Limits
    cancelled: Callable[[], bool]

    @property
    def key(self) -> tuple[LeanEnvironment, str]:
        """The environment and header of the image in which the module is sealed."""
        return self.environment, self.stated[: header_end(self.stated)] + "\n"


class Seals:
    """Has modules sealed in forks of images; for many threads."""

    def __init__(self, isolation: Isolation, images: Images) -> None:
        self._isolation, self._images = isolation, images

    def seal(self, sealable: Sealable) -> dict[str, Any]:
        """Return what audit and kernel find in a module, as ``audit`` of `farm.verdict.Report` has it.

        Raises NoImage where no image can be made, KernelLimit when audit or kernel go over a limit, and
        BoxFailed when the farm fails.
        """
        for _ in range(_TURNS):
            run = self._run(sealable)
            if run.limit is not None:
                raise KernelLimit(_KERNEL_LIMITS.get(run.limit, "depth"))
            if run.box_error is not None:
                raise BoxFailed(run.box_error)
            with contextlib.suppress(ValueError):
                facts: dict[str, Any] = json.loads(run.stdout)
                return facts
            _log.warning("A seal died: %s", run.stderr.decode(errors="replace")[-2000:].strip())
        self._require_working(sealable)
        raise KernelLimit("depth")

    def _run(self, sealable: Sealable) -> box.Run:
        assurance = sealable.assurance
        asked = {
            "axioms": list(assurance.axioms),
            "native": assurance.native,
            "replay": assurance.tier == Tier.KERNEL,
        }
        request = {"with_challenge": sealable.challenge is not None, "request": asked}
        with as_file(sealable.challenge or b"\0") as challenge:
            return self._forked(sealable, request, [sealable.module, challenge])

    def _forked(self, sealable: Sealable, request: dict[str, Any], files: list[int]) -> box.Run:
        limits = replace(sealable.limits, output_kib=_ANSWER_KIB)

        def begun(image: Image) -> Fork:
            return image.seal(request, limits, files)

        try:
            with forked(self._images, sealable.key, sealable.cancelled, begun) as fork:
                return watched(fork, limits, self._isolation, sealable.cancelled)
        except NotWanted:
            raise BoxFailed(box.CANCELLED) from None

    def _require_working(self, sealable: Sealable) -> None:
        """Seal the statement's own module; raises BoxFailed when that gets no answer either."""
        if sealable.challenge is None:
            return
        with as_file(sealable.challenge) as module:
            request = {"with_challenge": False, "request": {"replay": True}}
            run = self._forked(sealable, request, [module, module])
        try:
            json.loads(run.stdout)
        except ValueError:
            raise BoxFailed("no module can be sealed") from None
