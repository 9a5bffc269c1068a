"""The exit statuses of every command, each with one meaning."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """The exit status of a command, with its meaning."""

    def __new__(cls, status: int, meaning: str) -> ExitStatus:
        """Return the status of this number."""
        made = int.__new__(cls, status)
        made._value_ = status
        made.meaning = meaning
        return made

    meaning: str

    DONE = 0, "every line is judged; where a command judges on this machine, all are proved or sound"
    FARM_FAILED = 1, "the farm failed"
    BAD_INPUT = 2, "bad usage or bad input"
    UNJUDGED = 3, "some lines could not be judged"
    NOT_PROVED = 4, "a command that judges on this machine found something unproved or unsound"
    NOT_WRITTEN = 5, "some manifests could not be written; `farm export` writes the stored verdicts"
    LOST = 6, "lines that were proved are not proved any more (`farm rejudge`)"
    DIFFERENT = 7, "an environment differs from its record (`farm environments verify`)"
    #: The status for a temporary failure in the sysexits.h of BSD: EX_TEMPFAIL.
    TRY_AGAIN = 75, "the queue is full, or an API key has reached its limit; try again later"
    #: The status that shells give a command that SIGINT ended: 128 + 2.
    INTERRUPTED = 130, "interrupted"
