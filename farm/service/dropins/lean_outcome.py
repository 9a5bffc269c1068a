"""The outcome of a check as Lean alone would show it, for clients of other checkers. Pure.

Such a client takes a program without errors for a proof. So a program that Lean accepts and the farm does not
gets an error in the form of Lean's own, and only a verdict makes a `LeanOutcome` a success, never a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from farm.client.results import Message, Result
from farm.judging.messages import SORRY_TEXTS
from farm.judging.reward import OF_MACHINES
from farm.judging.verdict import Reason

#: Lean's warning in the wording that existing clients search for; Lean 4.28 has backticks for the quotes.
SORRY = "declaration uses 'sorry'"

#: The characters of the most important remark that always remain: a place, and Lean's warning of a sorry.
_LEAST = 120

#: Why a machine cannot vouch for a proof, by the words of `OF_MACHINES`.
_OF_MACHINES = {
    "forgeable": "no namespaces confined it, so it could have forged its verdict",
    "unrebuilt": "its Lean cannot be forked, so a checker read the program's own module",
}


class OutcomeKind(StrEnum):
    """The kinds of outcome of a program."""

    SUCCESS = "success"
    SORRY = "sorry"
    ERRORS = "errors"
    TIMEOUT = "timeout"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class Remark:
    """One message as Lean prints it; lines count from 1, columns from 0, in the client's program."""

    severity: str
    text: str
    line: int = 1
    column: int = 0
    end_line: int | None = None
    end_column: int | None = None

    @property
    def is_sorry(self) -> bool:
        """Whether this is Lean's warning that a declaration is admitted."""
        return self.text == SORRY


@dataclass(frozen=True, kw_only=True, slots=True)
class LeanOutcome:
    """The outcome of a program, with messages of Lean or, in Lean's form, of the farm.

    For an unknown outcome, `why` is the reason; `is_pending`: it may be known later; `is_final`: the client's
    challenge cannot be judged, so a repeated request changes nothing. `is_cut`: messages are missing.
    """

    kind: OutcomeKind
    remarks: tuple[Remark, ...] = ()
    is_cut: bool = False
    why: str = ""
    is_pending: bool = False
    is_final: bool = False
    seconds: float = 0.0


def refused(why: str) -> LeanOutcome:
    """Return the outcome of a program that cannot be given to Lean, by the client's own fault."""
    return LeanOutcome(kind=OutcomeKind.ERRORS, remarks=(_error(why),))


def read(result: Result, *, is_stated: bool) -> LeanOutcome:
    """Return the outcome of a `farm.client.results.Result`.

    With `is_stated` the client gave a statement, so a *proved* that was compared with no statement is not a
    success.
    """
    if result.status != "done":
        is_pending = result.status != "cancelled"
        return LeanOutcome(kind=OutcomeKind.UNKNOWN, why=_unfinished(result), is_pending=is_pending)
    if result.verdict == "judge_error":
        is_final = result.reason == Reason.BAD_CHALLENGE
        return LeanOutcome(kind=OutcomeKind.UNKNOWN, why=result.detail, is_final=is_final)
    lacking = set(result.weaker) - (set() if is_stated else {"unchecked"})
    if lacking and lacking <= OF_MACHINES:
        weak = [words for word, words in _OF_MACHINES.items() if word in lacking]
        why = f"This machine cannot vouch for the proof, because {' and '.join(weak)}."
        return LeanOutcome(kind=OutcomeKind.UNKNOWN, why=why)
    remarks = tuple(_remark(message) for message in result.messages)
    kind, remarks = _judged(result, remarks, lacking)
    return LeanOutcome(kind=kind, remarks=remarks, is_cut=result.messages_cut, seconds=_seconds(result))


def _judged(
    result: Result, remarks: tuple[Remark, ...], lacking: set[str]
) -> tuple[OutcomeKind, tuple[Remark, ...]]:
    has_errors = any(each.severity == "error" for each in remarks)
    if result.verdict == "proved" and not lacking:
        return OutcomeKind.SUCCESS, remarks
    if result.verdict == "timeout" and result.reason != Reason.HEARTBEAT_LIMIT:
        return OutcomeKind.TIMEOUT, remarks
    if result.reason == Reason.HAS_SORRY and not has_errors:
        admitted = Remark(severity="warning", text=SORRY)
        return OutcomeKind.SORRY, remarks if any(each.is_sorry for each in remarks) else (admitted, *remarks)
    if not has_errors:  # the farm's own error goes first: clients cut long output at its end
        remarks = (_error(_objection(result, lacking)), *remarks)
    return OutcomeKind.ERRORS, remarks


def _seconds(result: Result) -> float:
    return 0.0 if result.seconds is None else result.seconds.wall or 0.0


def _objection(result: Result, lacking: set[str]) -> str:
    if result.verdict != "proved":
        return f"the farm does not accept this program ({result.reason}): {result.detail}"
    return f"the farm accepts this program only in a weaker sense ({', '.join(sorted(lacking))})"


def _unfinished(result: Result) -> str:
    if result.status == "cancelled":
        return "The check was cancelled."
    return f"The farm has not judged this yet: {result.waits_for or 'other checks are ahead of it'}."


def _error(text: str) -> Remark:
    return Remark(severity="error", text=text)


def _remark(message: Message) -> Remark:
    text = message.text
    return Remark(
        severity=message.severity,
        text=SORRY if text.strip() in SORRY_TEXTS else text,
        line=max(1, message.line or 0),
        column=message.column or 0,
        end_line=message.end_line,
        end_column=message.end_column,
    )


def printed(remarks: Sequence[Remark], *, file: str) -> str:
    """Return the output of `lean` with these remarks about a file; information has no position in it."""
    return "".join(_line(each, file) for each in remarks)


def bounded(remarks: Sequence[Remark], *, file: str, most: int) -> tuple[str, bool]:
    """Return the output of `lean` in about `most` characters, and whether some of it was cut off.

    Remarks are dropped or cut in the order of their importance, and the others stand in their own order. The
    beginning of the most important one always remains: clients decide by it.
    """
    lines = [_line(each, file) for each in remarks]
    if (length := sum(map(len, lines))) <= most:
        return "".join(lines), False
    by_rank = sorted(range(len(lines)), key=lambda place: _rank(remarks[place]))
    room, kept = dict.fromkeys(by_rank[:1], _LEAST), dict[int, str]()
    for place in by_rank:
        kept[place] = _cut(lines[place], max(room.get(place, 0), most, 0))
        most -= len(kept[place])
    told = "".join(kept[place] for place in sorted(kept))
    return told, len(told) < length


def _cut(line: str, most: int) -> str:
    """Return the beginning of a line with a line end, at most so many characters."""
    if most == 0:
        return ""
    return line if len(line) <= most else f"{line[: most - 1]}\n"


def _rank(remark: Remark) -> int:
    """Return 0 for an error, 1 for Lean's warning of a sorry, 2 for other warnings, 3 for information."""
    return {"error": 0, "warning": 1 if remark.is_sorry else 2}.get(remark.severity, 3)


def _line(remark: Remark, file: str) -> str:
    text = remark.text.removesuffix("\n") + "\n"
    if remark.severity == "information":
        return text
    return f"{file}:{remark.line}:{remark.column}: {remark.severity}: {text}"
