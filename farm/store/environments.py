"""Environments as the store knows them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from farm.kinds import Kind

#: Seconds without a worker's sign of life after which whoever waits for it is told.
UNSERVED_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """An environment that a worker serves.

    `kind` is a `farm.kinds.Kind`, or a newer farm's word for one. `tiers` are those that can be had there.
    `checker` is what is asked there besides the first checker, such as what replays a compiled module through
    the kernel; None where nothing is.
    """

    name: str
    digest: str
    toolchain: str
    tiers: Sequence[str]
    checker: str | None = None
    checker_version: str = ""
    kind: str = Kind.LEAN


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedEnvironment(Served):
    """An environment as its workers last told of it, and for how many seconds they have been silent since.

    That is infinitely long for one that was only declared; nothing but its name is certain then.
    """

    silent_seconds: float

    @property
    def is_only_declared(self) -> bool:
        """Whether no worker has ever served it."""
        return self.silent_seconds == math.inf
