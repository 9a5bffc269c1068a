"""The first process of a container: passes signals on to the command, and reaps whatever loses its parent.

Linux treats process 1 of a pid namespace in two ways of its own, see pid_namespaces(7): a signal for which it
has no handler is ignored, so a command could not be stopped before it listens; and it becomes the parent of
every process whose parent has died, and each that it does not reap stays a zombie.
"""

from __future__ import annotations

import os
import signal
from typing import NoReturn

#: What a shell adds to the number of the signal by which a command ended.
_SIGNALLED = 128


def step_aside() -> None:
    """Leave process 1 to a loop that reaps and passes signals on, and return in a child of it.

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
    """Be a process group of one's own: what is typed at a terminal reaches the command once."""
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
