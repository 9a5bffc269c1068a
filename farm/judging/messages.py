"""Verdict step, messages: finds the errors, sorries and limits among a prover's messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from farm.judging.report import Message, Report

#: Whole lines that ``Lean.throwMaxHeartbeat`` and ``Lean.KernelException.toMessageData`` write. Some versions
#: print no kind, and no version does if the search for an instance, or the kernel, ran out of heartbeats.
_HEARTBEATS = re.compile(
    r"^(\(deterministic\) timeout at .*maximum number of heartbeats \(\d+\) has been reached"
    r"|\(kernel\) deterministic timeout)$",
    re.MULTILINE,
)
_LEAN_MEMORY = re.compile(r"(\(kernel\) )?excessive memory consumption detected")


#: Lean's names for two sorts of message; a worker does not get them from every way of running Lean.
SORRY_KIND, HEARTBEAT_KIND = "hasSorry", "runtime.maxHeartbeats"


def is_heartbeat(message: Message) -> bool:
    """Return whether a message reports that Lean's own limit of heartbeats ended an elaboration."""
    return message.kind == HEARTBEAT_KIND or says_heartbeats(message.text)


def says_heartbeats(text: str) -> bool:
    """Return whether Lean's words report that its limit of heartbeats ended an elaboration."""
    return _HEARTBEATS.search(text) is not None


def is_memory_limit(message: Message) -> bool:
    """Return whether a message reports that Lean's own limit of memory ended an elaboration."""
    return _LEAN_MEMORY.match(message.text) is not None


SORRY_TEXTS = frozenset({"declaration uses `sorry`", "declaration uses 'sorry'"})
_SORRY_AXIOM = re.compile(r"'[^'\n]+' depends on axioms:\s*\[(?:[^\]]*[\s,])?sorryAx[\s,\]]")


def most_telling(messages: Sequence[Message]) -> list[int]:
    """Return the indexes of messages in their order of importance, for answers that leave some out.

    Errors come first, then Lean's warnings of sorries, then prints of axioms with a sorry among them, then
    warnings, then information.
    """
    ranks = {"error": 0, "warning": 3, "information": 4}

    def rank(place: int) -> int:
        each = messages[place]
        if is_sorry(each):
            return 1 if says_sorry(each) else 2
        return ranks.get(each.severity, 4)

    return sorted(range(len(messages)), key=rank)


def says_sorry(message: Message) -> bool:
    """Return whether Lean warns that a declaration is admitted, in any version's wording.

    Lean prints the kind since 4.9; backticks replaced the quotes in 4.28; the option ``warningAsError`` makes
    errors of these warnings.
    """
    return message.kind == SORRY_KIND or message.text.strip() in SORRY_TEXTS


def is_sorry(message: Message) -> bool:
    """Return whether a message reports a sorry; the output of ``#print axioms`` counts too."""
    return says_sorry(message) or _SORRY_AXIOM.match(message.text) is not None


def errors(report: Report) -> tuple[Message, ...]:
    """Return the errors of a report in order, without those that only report a sorry."""
    return tuple(each for each in report.answer.messages if each.severity == "error" and not is_sorry(each))


def cause(found: Sequence[Message]) -> Message:
    """Return the error that a verdict names, from errors in the order of their positions.

    That is the first error, unless the range of text that it covers contains others: then the first of those.
    Lean finishes a piece of syntax after its parts, so an error in the whole cannot cause one in a part,
    while an error in a part can cause one in the whole, such as "unsolved goals".
    """
    chosen = found[0]
    for each in found[1:]:
        if _is_within(each, chosen):
            chosen = each
    return chosen


def _is_within(inner: Message, outer: Message) -> bool:
    """Return whether an error lies inside the range of an earlier one, and covers less than that range."""
    if outer.end_line is None or outer.end_column is None or inner.line == 0:
        return False
    last = inner.end_line or inner.line, inner.column if inner.end_column is None else inner.end_column
    end = outer.end_line, outer.end_column
    is_same = (inner.line, inner.column) == (outer.line, outer.column) and last == end
    return last <= end and not is_same


def admitted(report: Report) -> Message | None:
    """Return the first message about a sorry below the dataset's own context.

    None if an audit has found that the statement contains a sorry, that the statement is at fault, or that
    sorries of the submission are permitted.
    """
    audit = report.audit
    if audit is not None and (audit.statement_has_sorry or audit.of_challenge or audit.permitted):
        return None
    said = report.answer.messages
    return next((each for each in said if is_sorry(each) and not report.is_of_context(each)), None)
