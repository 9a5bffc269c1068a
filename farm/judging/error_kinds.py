"""Verdict step, kinds of errors: sorts Lean's errors for counting and for hints. Pure.

No verdict depends on a kind. Lean names some of its errors itself (`lean.unknownIdentifier`); the others are
sorted by the words with which Lean 4.9 to 4.35 begins them, and what begins otherwise is `OTHER`.
"""

from __future__ import annotations

import re
from enum import StrEnum

from farm.judging.messages import is_heartbeat
from farm.judging.report import Message


class ErrorKind(StrEnum):
    """What went wrong, in Lean's view."""

    SYNTAX = "syntax"
    UNKNOWN_TACTIC = "unknown_tactic"
    UNKNOWN_IDENTIFIER = "unknown_identifier"
    INVALID_FIELD = "invalid_field"
    TYPE_MISMATCH = "type_mismatch"
    FUNCTION_EXPECTED = "function_expected"
    MISSING_INSTANCE = "missing_instance"
    NOT_INFERRED = "not_inferred"
    UNSOLVED_GOALS = "unsolved_goals"
    NO_GOALS = "no_goals"
    TACTIC_FAILED = "tactic_failed"
    TERMINATION = "termination"
    RECURSION_DEPTH = "recursion_depth"
    HEARTBEATS = "heartbeats"
    ALREADY_DECLARED = "already_declared"
    KERNEL = "kernel"
    OTHER = "other"


#: Lean's own names of errors; a name can have more parts behind these.
_NAMED = {
    "lean.unknownIdentifier": ErrorKind.UNKNOWN_IDENTIFIER,
    "lean.invalidField": ErrorKind.INVALID_FIELD,
    "lean.synthInstanceFailed": ErrorKind.MISSING_INSTANCE,
    "runtime.maxRecDepth": ErrorKind.RECURSION_DEPTH,
    "runtime.maxHeartbeats": ErrorKind.HEARTBEATS,
}
#: The beginnings of errors, the first that fits counts.
_WORDED = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"unsolved goals", ErrorKind.UNSOLVED_GOALS),
        (r"no goals (to be|left)|the goal is already", ErrorKind.NO_GOALS),
        (r"unknown (identifier|constant|free variable|namespace)", ErrorKind.UNKNOWN_IDENTIFIER),
        (r"unknown tactic|tactic '[^'\n]*' has not been implemented", ErrorKind.UNKNOWN_TACTIC),
        (r"invalid (field|projection)", ErrorKind.INVALID_FIELD),
        (r"(application )?type mismatch|invalid [^\n]{0,200}has type", ErrorKind.TYPE_MISMATCH),
        (r"function expected", ErrorKind.FUNCTION_EXPECTED),
        (r"failed to synthesize|type class instance expected", ErrorKind.MISSING_INSTANCE),
        (r"don't know how to synthesize|typeclass instance problem is stuck", ErrorKind.NOT_INFERRED),
        (r"failed to infer", ErrorKind.NOT_INFERRED),
        (r"fail(ed)? to (show|prove) termination", ErrorKind.TERMINATION),
        (r"maximum recursion depth", ErrorKind.RECURSION_DEPTH),
        (r"\S{1,200} has already been declared", ErrorKind.ALREADY_DECLARED),
        (r"\(kernel\)", ErrorKind.KERNEL),
        (r"unexpected |expected |unterminated |missing end of|invalid escape|<input>", ErrorKind.SYNTAX),
        (
            r"(the )?(tactic )?[`'‘]?[\w.!?]{1,40}[`'’]? (tactic )?(failed|made no progress|could not)",
            ErrorKind.TACTIC_FAILED,
        ),
        (
            r"invalid (rewrite|induction|cases)|did not find|motive is not type correct",
            ErrorKind.TACTIC_FAILED,
        ),
    )
)


def error_kind(message: Message) -> ErrorKind:
    """Return the kind of one of Lean's errors."""
    if is_heartbeat(message):
        return ErrorKind.HEARTBEATS
    for name, kind in _NAMED.items():
        if message.kind == name or message.kind.startswith(f"{name}."):
            return kind
    text = message.text.lstrip()
    return next((kind for begins, kind in _WORDED if begins.match(text)), ErrorKind.OTHER)
