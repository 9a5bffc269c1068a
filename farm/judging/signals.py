"""Verdict step, signals: names the signals of a worker's kernel by their numbers.

The numbers are those of signal(7) for Linux on x86-64 and arm64, whatever machine reads them.
"""

from __future__ import annotations

#: The greatest number that Linux has for a signal, SIGRTMAX.
LAST_SIGNAL = 64
_NAMES = (
    *("HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE"),
    *("ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ"),
    *("VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS"),
)


def signal_name(number: int) -> str:
    """Return a signal's name, such as ``SIGKILL``, or ``signal 40`` for a number that has none."""
    return f"SIG{_NAMES[number - 1]}" if 0 < number <= len(_NAMES) else f"signal {number}"
