"""Verdict step, messages: which of a prover's messages are errors, sorries or limits. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from farm.judging.report import Message, Report

#: Whole lines that ``Lean.throwMaxHeartbeat`` and ``Lean.KernelException.toMessageData`` write. Not every
#: version tells the kind, and none does when the search for an instance, or the kernel, was what ran out.
_HEARTBEATS = re.compile(
    r"^(\(deterministic\) timeout at .*maximum number of heartbeats \(\d+\) has been reached"
    r"|\(kernel\) deterministic timeout)$",
    re.MULTILINE,
)
_LEAN_MEMORY = re.compile(r"(\(kernel\) )?excessive memory consumption detected")


#: Lean's names for two sorts of message; not every way of running it tells them.
SORRY_KIND, HEARTBEAT_KIND = "hasSorry", "runtime.maxHeartbeats"


def is_heartbeat(message: Message) -> bool:
    """Whether Lean says that its own limit of heartbeats ended something."""
    return message.kind == HEARTBEAT_KIND or _HEARTBEATS.search(message.text) is not None


def is_memory_limit(message: Message) -> bool:
    """Whether Lean says that its own limit of memory ended something."""
    return _LEAN_MEMORY.match(message.text) is not None


SORRY_TEXTS = frozenset({"declaration uses `sorry`", "declaration uses 'sorry'"})
_SORRY_AXIOM = re.compile(r"'[^'\n]+' depends on axioms:\s*\[(?:[^\]]*[\s,])?sorryAx[\s,\]]")


def most_telling(messages: Sequence[Message]) -> list[int]:
    """Return the places of messages, in the order in which they are kept where not all are.

    Errors decide first, then sorries; warnings come before information.
    """
    ranks = {"error": 0, "warning": 2, "information": 3}

    def rank(place: int) -> int:
        each = messages[place]
        return 1 if is_sorry(each) else ranks.get(each.severity, 3)

    return sorted(range(len(messages)), key=rank)


def says_sorry(message: Message) -> bool:
    """Whether Lean warns that a declaration is admitted, in any version's wording.

    The kind is there since Lean 4.9; backticks replaced the quotes in 4.28; the option ``warningAsError``
    makes errors of these warnings.
    """
    return message.kind == SORRY_KIND or message.text.strip() in SORRY_TEXTS


def is_sorry(message: Message) -> bool:
    """Whether a message tells of a sorry; what ``#print axioms`` says counts too."""
    return says_sorry(message) or _SORRY_AXIOM.match(message.text) is not None


def errors(report: Report) -> tuple[Message, ...]:
    """Return the errors of a report in order, without those that only say that something is admitted."""
    return tuple(each for each in report.answer.messages if each.severity == "error" and not is_sorry(each))


def cause(found: Sequence[Message]) -> Message:
    """Return the error that a verdict names, of errors in the order of their places.

    That is the first one, unless others stand inside the text that it is about: then the first of those.
    Lean finishes a piece of syntax after its parts, so an error of a part is no consequence of one about the
    whole, while "unsolved goals" of a whole proof can be one of an error inside it.
    """
    chosen = found[0]
    for each in found[1:]:
        if _is_within(each, chosen):
            chosen = each
    return chosen


def _is_within(inner: Message, outer: Message) -> bool:
    """Whether an error, which follows another in the text, is about a part of what that is about."""
    if outer.end_line is None or outer.end_column is None or inner.line == 0:
        return False
    last = inner.end_line or inner.line, inner.column if inner.end_column is None else inner.end_column
    end = outer.end_line, outer.end_column
    is_same = (inner.line, inner.column) == (outer.line, outer.column) and last == end
    return last <= end and not is_same


def admitted(report: Report) -> Message | None:
    """Return the first message of a sorry, apart from those about the dataset's own context.

    None where an audit has found that the statement holds the sorry, or is at fault itself.
    """
    audit = report.audit
    if audit is not None and (audit.statement_has_sorry or audit.of_challenge):
        return None
    said = report.answer.messages
    return next((each for each in said if is_sorry(each) and not report.is_of_context(each)), None)
