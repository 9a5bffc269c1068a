"""The first process of a container: passes signals on to the command, and reaps orphans."""

from __future__ import annotations

import os
import signal
from typing import NoReturn

#: A shell's exit status for a command that a signal ended is this plus the signal's number.
_SIGNALLED = 128


def step_aside() -> None:
    """Turn process 1 into a loop that reaps and passes signals on, and return in its child.

    Returns at once in any other process. In process 1 it ends with the child's exit status.
    """
    if os.getpid() != 1:
        return
    signals = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    child = os.fork()
    if child:
        _serve(child, signals)
    _take_terminal()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _take_terminal() -> None:
    """Lead a process group, so that a signal typed at a terminal reaches the command once."""
    os.setpgid(0, 0)
    for descriptor in range(3):
        if os.isatty(descriptor):
            os.tcsetpgrp(descriptor, os.getpgrp())  # SIGTTOU, which this would bring, is blocked
            return


def _serve(child: int, signals: set[signal.Signals]) -> NoReturn:
    while True:
        number = signal.sigwait(signals)
        if number == signal.SIGCHLD:
            _reap(child)
        else:
            os.kill(child, number)  # there until it is reaped


def _reap(child: int) -> None:
    """Reap every process that has ended; end when the child is among them, and all others with it."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else _SIGNALLED - code)
