"""Environments as the store knows them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from farm.kinds import Kind

#: Seconds without a worker's heartbeat after which its waiting users get a message.
UNSERVED_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """An environment that a worker serves.

    `kind` is a `farm.kinds.Kind`, or a newer farm's word for one. `tiers` are those that it supports.
    `checker` is a second checker, such as one that replays compiled modules through the kernel; None without
    one.
    """

    name: str
    digest: str
    toolchain: str
    tiers: Sequence[str]
    checker: str | None = None
    checker_version: str = ""
    kind: str = Kind.LEAN


#: States of an environment that a worker is configured with and does not serve.
STARTING, UNFIT = "starting", "unfit"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending:
    """An environment that one worker is configured with and does not serve.

    `state` is `STARTING` or `UNFIT`, for `seconds`. An unfit one has a `reason`, and the worker examines it
    again in `retry_seconds`, None while it does so. `worker` is "" where the worker speaks of itself.
    """

    name: str
    state: str
    seconds: float
    kind: str = Kind.LEAN
    reason: str = ""
    retry_seconds: float | None = None
    worker: str = ""

    @property
    def is_unfit(self) -> bool:
        """Whether it was examined, and is not fit to judge."""
        return self.state == UNFIT

    @property
    def words(self) -> str:
        """The state in words, such as ``starting for 12 s on node:7``."""
        where = f" on {self.worker}" if self.worker else ""
        if self.state != UNFIT:
            return f"{self.state} for {self.seconds:.0f} s{where}"
        when = "now" if self.retry_seconds is None else f"in {self.retry_seconds:.0f} s"
        return f"unfit for {self.seconds:.0f} s{where}, is examined again {when}: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedEnvironment(Served):
    """An environment as its workers last reported it, and the seconds since then.

    These are infinite for one that was only declared; then nothing but its name is certain. `pending`
    are the workers that are configured with it and do not serve it.
    """

    silent_seconds: float
    pending: Sequence[Pending] = ()

    @property
    def is_only_declared(self) -> bool:
        """Whether no worker has ever served it."""
        return self.silent_seconds == math.inf

    @property
    def unfit_words(self) -> str:
        """Why no worker can serve it, where none ever has and none is about to; "" otherwise.

        Where workers have it as another kind than the one that is served, no line can be assembled for both.
        """
        if others := [each for each in self.pending if each.kind != self.kind]:
            told = "; ".join(f"{each.kind!r}, {each.words}" for each in others)
            return f"workers disagree what it is: it is known as {self.kind!r}, and as {told}"
        if not (self.is_only_declared and self.pending):
            return ""
        if any(each.state == STARTING for each in self.pending):
            return ""
        return "; ".join(each.words for each in self.pending)
