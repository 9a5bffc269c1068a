"""Defines for the store the states of lines and checks, their transitions, and the classes of runs."""

from __future__ import annotations

from enum import IntEnum, StrEnum

from farm.errors import UsageError


class Status(StrEnum):
    """The progress of a line or check, independent of its verdict."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


class CancelReason(StrEnum):
    """The reasons for which a line is cancelled; none of them depends on its proof."""

    USER = "user"
    DEADLINE = "deadline"
    GROUP = "group"


class Priority(IntEnum):
    """The classes of runs: workers begin the waiting checks of one class before those of the next."""

    INTERACTIVE = 0
    ONLINE = 1
    BATCH = 2

    @classmethod
    def named(cls, word: str) -> Priority:
        """Return the class of this name; raises `UsageError`."""
        if word.upper() not in cls.__members__:
            classes = ", ".join(each.name.lower() for each in cls)
            raise UsageError(f"--priority {word}: no such class; choose one of {classes}")
        return cls[word.upper()]


#: The state machine of a check: from each status, the statuses it may go to next. Every update in the store
#: repeats its row of this table as ``WHERE status = ...``, so a repeated delivery changes nothing.
TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.QUEUED: frozenset({Status.RUNNING, Status.DONE, Status.CANCELLED}),
    Status.RUNNING: frozenset({Status.QUEUED, Status.DONE, Status.CANCELLED}),
    Status.DONE: frozenset(),
    Status.CANCELLED: frozenset(),
}
