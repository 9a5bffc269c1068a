"""Verdict step, the ending: how the run of a program ended, as a fact. Pure and total.

Control flow asks for the ending; `farm.judging.verdict` alone decides what a proof is worth.
"""

from __future__ import annotations

import re
from enum import StrEnum

from farm.judging.messages import admitted, errors, is_heartbeat, is_memory_limit, is_sorry
from farm.judging.report import Report
from farm.judging.signals import LAST_SIGNAL, signal_name
from farm.judging.tiers import Tier


class Ending(StrEnum):
    """How a run ended; the first that applies, in this order."""

    #: Lean cannot be given such a text, or the policy does not allow it: it was not run.
    UNREADABLE = "unreadable"
    BARRED = "barred"
    #: The statement, the box or the environment is at fault.
    FARM_FAILED = "farm_failed"
    #: A limit of the box ended the run, which `limit` names.
    LIMIT = "limit"
    #: The process left neither a status nor an error: nothing is known.
    SILENT = "silent"
    #: A signal that a program does not get for what it does.
    KILLED = "killed"
    #: The system refused memory, or a thread.
    OUT_OF_MEMORY = "out_of_memory"
    NO_THREAD = "no_thread"
    CRASHED = "crashed"
    #: Lean's own limits ended it, and nothing else is wrong: with more time the rest would still be refused.
    LEAN_MEMORY = "lean_memory"
    HEARTBEATS = "heartbeats"
    #: Lean reports errors.
    REFUSED = "refused"
    #: Nothing of this.
    COMPLETE = "complete"

    @property
    def may_be_the_machine(self) -> bool:
        """Whether a machine that is broken can end any program so."""
        return self in _OF_MACHINE


_OF_MACHINE = frozenset({Ending.FARM_FAILED, Ending.SILENT, Ending.KILLED, Ending.NO_THREAD, Ending.CRASHED})

#: Signals that people, service managers and the kernel's out-of-memory killer send. A process gets all others
#: for faults or limits of its own, or because it has asked for them, such as SIGALRM.
_FROM_OUTSIDE = frozenset({"SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGTERM"})
#: Signals of the limits that a process sets itself, by the word of the limit.
_OF_LIMITS = {"SIGXFSZ": "file", "SIGXCPU": "cpu"}

#: What Lean's runtime and C++ say, each as a whole line, when the system refuses them memory or threads.
_OUT_OF_MEMORY = re.compile(
    r"^(INTERNAL PANIC: out of memory"
    r"|(libc\+\+abi: )?terminat(ing|e called).* of type '?std::bad_alloc.*)$",
    re.MULTILINE,
)
_NO_THREAD = re.compile(r"^libc\+\+abi: terminating .*: failed to create thread: .*$", re.MULTILINE)
#: What the runtime says before it ends with status 1 at an operation that it cannot carry out.
_PANIC = re.compile(r"^INTERNAL PANIC: .*$", re.MULTILINE)


def ending(report: Report) -> Ending:
    """Return how a run ended."""
    if report.text_error is not None:
        return Ending.UNREADABLE
    if report.refused is not None:
        return Ending.BARRED
    if (report.challenge_error, report.run.box_error, report.environment_error) != (None, None, None):
        return Ending.FARM_FAILED
    if limit(report) is not None:
        return Ending.LIMIT
    return _of_process(report) or _of_messages(report) or _without_an_error(report)


def limit(report: Report) -> str | None:
    """Return the limit that ended a run: that of the box, ``output``, or the one of its last signal."""
    run = report.run
    if run.limit is not None or run.output_cut:
        return run.limit or "output"
    return None if run.signal is None else _OF_LIMITS.get(signal_name(run.signal))


def lean_refused(report: Report) -> bool:
    """Whether Lean reports an error that no limit of its own explains."""
    return ending(report) is Ending.REFUSED


def reads_to_the_end(report: Report) -> bool:
    """Whether Lean came to the end of a text, whatever it says of it."""
    how = ending(report)
    return how is Ending.REFUSED or (how is Ending.COMPLETE and report.answer.reached_end)


def needs_seal(report: Report, *, statement_has_sorry: bool = False) -> bool:
    """Whether nothing but the compiled module can tell what a proof is worth.

    With `statement_has_sorry` the dataset's own text holds a sorry, so that Lean's warnings say nothing.
    """
    if report.tier == Tier.LEAN or ending(report) is not Ending.COMPLETE or not report.answer.reached_end:
        return False
    return statement_has_sorry or admitted(report) is None


def panic(report: Report) -> str | None:
    """Return the line in which Lean's runtime says at what it gave up."""
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
    return Ending.NO_THREAD if _NO_THREAD.search(report.answer.foreign_output) else None


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
