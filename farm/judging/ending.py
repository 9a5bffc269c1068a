"""Verdict step, ending: classifies the end of a program's run, for workers and the verdict. Pure and total.

Workers choose their next step by the ending; `farm.judging.verdict` alone judges the proof.
"""

from __future__ import annotations

import re
from enum import StrEnum

from farm.judging.messages import admitted, errors, is_heartbeat, is_memory_limit, is_sorry
from farm.judging.report import Execution, Report
from farm.judging.signals import LAST_SIGNAL, signal_name
from farm.judging.tiers import Tier


class Ending(StrEnum):
    """How a run ended; the first that applies, in this order.

    A process that ended with status 0 or 1 is judged by Lean's messages, before memory and crashes.
    """

    #: Lean cannot read the text, or the policy rejects it: Lean did not run.
    UNREADABLE = "unreadable"
    BARRED = "barred"
    #: The statement, the box or the environment is at fault.
    FARM_FAILED = "farm_failed"
    #: A limit of the box ended the run; `limit` names it.
    LIMIT = "limit"
    #: The process left neither a status nor an error, so its result is unknown.
    SILENT = "silent"
    #: A signal from outside, which no fault of the program causes, ended the run.
    KILLED = "killed"
    #: It failed, and the machine may have refused it a resource, which `Execution.lacked` names.
    LACKING = "lacking"
    #: The system refused memory, or a thread.
    OUT_OF_MEMORY = "out_of_memory"
    NO_THREAD = "no_thread"
    CRASHED = "crashed"
    #: One of Lean's own limits caused every error; with any other error the run is `REFUSED`.
    LEAN_MEMORY = "lean_memory"
    HEARTBEATS = "heartbeats"
    #: Lean reports errors.
    REFUSED = "refused"
    #: Lean ended without an error.
    COMPLETE = "complete"

    @property
    def may_be_the_machine(self) -> bool:
        """Whether a broken machine can give any program this ending."""
        return self in _OF_MACHINE


_OF_MACHINE = frozenset(
    {Ending.FARM_FAILED, Ending.SILENT, Ending.KILLED, Ending.LACKING, Ending.NO_THREAD, Ending.CRASHED}
)
#: The endings that a refused process, thread or memory can cause: a tactic may report any error then.
_FOR_LACK = frozenset({Ending.OUT_OF_MEMORY, Ending.CRASHED, Ending.LEAN_MEMORY, Ending.REFUSED})

#: Signals that people, service managers and the kernel's out-of-memory killer send; and SIGXCPU, since the
#: box names the limit of a run that has used its processor time. A process causes all others by its faults or
#: limits, or requests them, such as SIGALRM.
_FROM_OUTSIDE = frozenset({"SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGTERM", "SIGXCPU"})
#: Signals of the limits that a process sets itself, by the word of the limit.
_OF_LIMITS = {"SIGXFSZ": "file"}

#: Whole lines that Lean's runtime and C++ print when the system refuses them memory or threads.
_OUT_OF_MEMORY = re.compile(
    r"^(INTERNAL PANIC: out of memory"
    r"|(libc\+\+abi: )?terminat(ing|e called).* of type '?std::bad_alloc.*)$",
    re.MULTILINE,
)
_NO_THREAD = re.compile(r"^libc\+\+abi: terminating .*: failed to create thread: .*$", re.MULTILINE)
#: The line that the runtime prints before it ends with status 1 at an operation that it cannot carry out.
_PANIC = re.compile(r"^INTERNAL PANIC: .*$", re.MULTILINE)


def ending(report: Report) -> Ending:
    """Return how a run ended."""
    if report.text_error is not None:
        return Ending.UNREADABLE
    if report.refused is not None:
        return Ending.BARRED
    failures = report.challenge_error, report.task_error, report.run.box_error, report.environment_error
    if any(each is not None for each in failures):
        return Ending.FARM_FAILED
    if limit(report) is not None:
        return Ending.LIMIT
    found = _of_process(report) or _of_messages(report) or _without_an_error(report)
    return Ending.LACKING if found in _FOR_LACK and report.run.lacked is not None else found


def limit(report: Report) -> str | None:
    """Return the limit that ended a run: that of the box, ``output``, or the one of its last signal."""
    run = report.run
    if run.limit is not None or run.output_cut:
        return run.limit or "output"
    return None if run.signal is None else _OF_LIMITS.get(signal_name(run.signal))


def lean_refused(report: Report) -> bool:
    """Return whether Lean reports an error that no limit of its own explains."""
    return ending(report) is Ending.REFUSED


def reads_to_the_end(report: Report) -> bool:
    """Return whether Lean read a text to its end, with or without errors."""
    how = ending(report)
    return how is Ending.REFUSED or (how is Ending.COMPLETE and report.answer.reached_end)


def needs_seal(report: Report, *, reads_open: bool = False) -> bool:
    """Return whether the verdict depends on the compiled module, so that a worker must audit it.

    With `reads_open` Lean's warnings decide nothing: the dataset's own text contains a sorry, or the line
    asks about modules with one.
    """
    if report.tier == Tier.LEAN or ending(report) is not Ending.COMPLETE or not report.answer.reached_end:
        return False
    if report.answer.first_error is not None:  # a sorry that the text makes an error of: there is no module
        return False
    return reads_open or admitted(report) is None


def says_nothing(run: Execution) -> bool:
    """Return whether a run without an answer ended for reasons outside of its input.

    Those are a failure of the box, a signal from outside, a failed exit, and a refusal by the system.
    """
    if run.box_error is not None or run.lacked is not None or run.signal is None:
        return True
    return signal_name(run.signal) in _FROM_OUTSIDE or _lacks_thread(run.stderr.decode(errors="replace"))


def _lacks_thread(output: str) -> bool:
    """Return whether the output of a process that died says that the system refused it a thread."""
    return _NO_THREAD.search(output) is not None


def panic(report: Report) -> str | None:
    """Return the line in which Lean's runtime names the operation that it gave up, None without one."""
    found = _PANIC.search(report.answer.foreign_output)
    return None if found is None else found.group()


def _of_process(report: Report) -> Ending | None:
    run = report.run
    if run.signal is None and run.exit_status in (0, 1):
        return None
    if run.signal is None:
        return Ending.SILENT if run.exit_status is None else _starved(report) or Ending.CRASHED
    if signal_name(run.signal) in _FROM_OUTSIDE or not 0 < run.signal <= LAST_SIGNAL:
        return Ending.KILLED
    return _starved(report) or Ending.CRASHED


def _starved(report: Report) -> Ending | None:
    if _OUT_OF_MEMORY.search(report.answer.foreign_output):
        return Ending.OUT_OF_MEMORY
    return Ending.NO_THREAD if _lacks_thread(report.answer.foreign_output) else None


def _of_messages(report: Report) -> Ending | None:
    found = errors(report)
    if not found:
        return None
    if all(map(is_memory_limit, found)):
        return Ending.LEAN_MEMORY
    return Ending.HEARTBEATS if all(map(is_heartbeat, found)) else Ending.REFUSED


def _without_an_error(report: Report) -> Ending:
    if report.run.exit_status == 0 or _mentions_sorry(report):
        return Ending.COMPLETE
    return _starved(report) or (Ending.SILENT if panic(report) is None else Ending.CRASHED)


def _mentions_sorry(report: Report) -> bool:
    return any(is_sorry(each) and not report.is_of_context(each) for each in report.answer.messages)
