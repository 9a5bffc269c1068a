"""The limits of one check. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from farm.errors import UsageError

#: The longest timeout that a line may ask for, in seconds.
LONGEST_TIMEOUT = 24 * 60 * 60.0
#: The largest memory limit of a check.
MOST_MEMORY_MIB = 1 << 20
#: The longest timeout on many cores.
_MOST_CPU_SECONDS = 100 * LONGEST_TIMEOUT
#: A check may use this many times its wall limit in CPU time, unless it is given a limit of its own: Lean's
#: own threads run beside its elaborator.
CPU_PER_WALL = 2.0
#: A check that waits for a core may take this many times its wall limit, or these seconds more.
_GUARD_TIMES, _GUARD_SECONDS = 4.0, 60.0


def guard_seconds(wall_seconds: float) -> float:
    """Return the wall time after which a check with this limit is ended, whatever it waited for."""
    return max(_GUARD_TIMES * wall_seconds, wall_seconds + _GUARD_SECONDS)


def require_possible(*, wall_seconds: float, memory_mib: int, cpu_seconds: float | None = None) -> None:
    """Raise `UsageError` for limits that a check cannot be given."""
    if not 0 < wall_seconds <= LONGEST_TIMEOUT:
        raise UsageError(
            f"a timeout of {wall_seconds:g} s is out of range; "
            f"give seconds, above 0 and at most {LONGEST_TIMEOUT:.0f}"
        )
    if cpu_seconds is not None and not 0 < cpu_seconds <= _MOST_CPU_SECONDS:
        raise UsageError(
            f"a processor time limit of {cpu_seconds:g} s is out of range; "
            f"give seconds, above 0 and at most {_MOST_CPU_SECONDS:.0f}"
        )
    if not 0 < memory_mib <= MOST_MEMORY_MIB:
        raise UsageError(
            f"a memory limit of {memory_mib} MiB is out of range; "
            f"give a number above 0 and at most {MOST_MEMORY_MIB}"
        )


def seconds_of(flag: str, words: str) -> float:
    """Return the seconds of a duration such as 90s, 30m or 2h. Raises UsageError."""
    found = re.fullmatch(r"(\d{1,7}(?:\.\d{1,3})?)([smhd]?)", words, flags=re.ASCII)
    if found is None or not float(found[1]):
        raise UsageError(f"{flag} {words}: give a time such as 90s, 30m, 2h or 1d")
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """The resources that one check may use; each is a hard limit of the box around it.

    ``wall_seconds`` is the timeout users set; time in which the check waits for a core does not count.
    ``cpu_seconds`` counts user and system time of the whole
    process tree; ``memory_mib`` is private memory; ``output_kib`` bounds the stored part of stdout and
    stderr.
    """

    wall_seconds: float = 30.0
    cpu_seconds: float = 60.0
    memory_mib: int = 4096
    output_kib: int = 1024
    processes: int = 64
