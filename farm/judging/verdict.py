"""Verdict step: judges the report on one check, by a pure and total function.

This module runs no program, reads no file and waits for nothing. `judge` returns a verdict for every possible
`Report`. Three rules stand above the table:

- *The absence of an answer is never a pass.* `proved` needs exit status 0, no error, no sorry, the program
  read to its end, every byte of the output read, no limit hit, and, on the tiers kernel and audit, a compiled
  module accepted by processes that never saw the program.
- *The farm's failures are not the proof's.* A failure of the box or the environment, or a signal from
  outside, is a `judge_error`; the farm retries the check and never shows it as a failed proof.
- *Severity, kind and exit status decide, never a word in a text.* The farm compares only whole texts, and
  only to distinguish one failure from another. Unless the tier is lean, Lean's messages decide only why a
  program is not proved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from farm.characters import first_unstorable
from farm.judging import causes
from farm.judging.audit import ADMITTED, COMPARED, FORBIDDEN, MISMATCHES, UNCHECKED, Audit, Replay
from farm.judging.ending import Ending, ending, limit, panic
from farm.judging.error_kinds import error_kind
from farm.judging.messages import admitted, errors
from farm.judging.places import Place, at_line
from farm.judging.report import Message, Report
from farm.judging.signals import signal_name
from farm.judging.tiers import Tier
from farm.lean_text.policy.rules import RULES
from farm.lean_text.positions import line_and_column


class Outcome(StrEnum):
    """The results of a check; `Reason` refines them.

    `DISPROVED`, `PARTIAL` and `STATED` answer tasks that ask for them: the negation is proved, a proof rests
    on permitted sorries, and a statement alone was examined.
    """

    PROVED = "proved"
    DISPROVED = "disproved"
    PARTIAL = "partial"
    STATED = "stated"
    REJECTED = "rejected"
    TIMEOUT = "timeout"
    MEMORY_LIMIT = "memory_limit"
    JUDGE_ERROR = "judge_error"


class Reason(StrEnum):
    """The reason of an outcome; each reason belongs to exactly one outcome (see `OUTCOMES`)."""

    OK = "ok"
    ERROR = "error"
    HAS_SORRY = "has_sorry"
    STOPPED_EARLY = "stopped_early"
    CRASH = "crash"
    OUTPUT_LIMIT = "output_limit"
    PROCESS_LIMIT = "process_limit"
    INVALID_TEXT = "invalid_text"
    NO_ANSWER = "no_answer"
    WALL_LIMIT = "wall_limit"
    CPU_LIMIT = "cpu_limit"
    HEARTBEAT_LIMIT = "heartbeat_limit"
    MEMORY_LIMIT = "memory_limit"
    LEAN_MEMORY_LIMIT = "lean_memory_limit"
    BOX_FAILED = "box_failed"
    KILLED = "killed"
    BAD_ENVIRONMENT = "bad_environment"
    NO_REPLY = "no_reply"
    WORKER_LOST = "worker_lost"
    POLICY = "policy"
    NATIVE_DECIDE = "native_decide"
    AXIOM = "axiom"
    STATEMENT_MISMATCH = "statement_mismatch"
    FORBIDDEN = "forbidden"
    AUDIT = "audit"
    MALFORMED_OLEAN = "malformed_olean"
    KERNEL = "kernel"
    KERNEL_LIMIT = "kernel_limit"
    KERNEL_TIME = "kernel_time"
    BAD_CHALLENGE = "bad_challenge"
    KERNELS_DISAGREE = "kernels_disagree"
    PARTIAL = "partial"
    ANSWER_MISSING = "answer_missing"
    ANSWER_SHAPE = "answer_shape"
    ANSWER_DIFFERS = "answer_differs"
    ANSWER_UNDECIDED = "answer_undecided"
    DISPROVED = "disproved"
    STATED = "stated"
    CONTRADICTION = "contradiction"


#: The outcome that each reason belongs to.
OUTCOMES: dict[Reason, Outcome] = {
    Reason.OK: Outcome.PROVED,
    Reason.PARTIAL: Outcome.PARTIAL,
    Reason.ERROR: Outcome.REJECTED,
    Reason.HAS_SORRY: Outcome.REJECTED,
    Reason.STOPPED_EARLY: Outcome.REJECTED,
    Reason.CRASH: Outcome.REJECTED,
    Reason.OUTPUT_LIMIT: Outcome.REJECTED,
    Reason.PROCESS_LIMIT: Outcome.REJECTED,
    Reason.INVALID_TEXT: Outcome.REJECTED,
    Reason.NO_ANSWER: Outcome.REJECTED,
    Reason.POLICY: Outcome.REJECTED,
    Reason.NATIVE_DECIDE: Outcome.REJECTED,
    Reason.AXIOM: Outcome.REJECTED,
    Reason.STATEMENT_MISMATCH: Outcome.REJECTED,
    Reason.FORBIDDEN: Outcome.REJECTED,
    Reason.AUDIT: Outcome.REJECTED,
    Reason.MALFORMED_OLEAN: Outcome.REJECTED,
    Reason.KERNEL: Outcome.REJECTED,
    Reason.KERNEL_LIMIT: Outcome.REJECTED,
    Reason.KERNEL_TIME: Outcome.TIMEOUT,
    Reason.BAD_CHALLENGE: Outcome.JUDGE_ERROR,
    Reason.KERNELS_DISAGREE: Outcome.JUDGE_ERROR,
    Reason.ANSWER_MISSING: Outcome.REJECTED,
    Reason.ANSWER_SHAPE: Outcome.REJECTED,
    Reason.ANSWER_DIFFERS: Outcome.REJECTED,
    Reason.ANSWER_UNDECIDED: Outcome.JUDGE_ERROR,
    Reason.DISPROVED: Outcome.DISPROVED,
    Reason.STATED: Outcome.STATED,
    Reason.CONTRADICTION: Outcome.JUDGE_ERROR,
    Reason.WALL_LIMIT: Outcome.TIMEOUT,
    Reason.CPU_LIMIT: Outcome.TIMEOUT,
    Reason.HEARTBEAT_LIMIT: Outcome.TIMEOUT,
    Reason.MEMORY_LIMIT: Outcome.MEMORY_LIMIT,
    Reason.LEAN_MEMORY_LIMIT: Outcome.MEMORY_LIMIT,
    Reason.BOX_FAILED: Outcome.JUDGE_ERROR,
    Reason.KILLED: Outcome.JUDGE_ERROR,
    Reason.BAD_ENVIRONMENT: Outcome.JUDGE_ERROR,
    Reason.NO_REPLY: Outcome.JUDGE_ERROR,
    Reason.WORKER_LOST: Outcome.JUDGE_ERROR,
}

#: Reasons that another machine, or the same machine under less load, may not give again. A crash is one of
#: them: a broken library or a missing file of this machine crashes Lean just as a program can.
_CHANCE = frozenset(
    {Reason.WALL_LIMIT, Reason.CPU_LIMIT, Reason.MEMORY_LIMIT, Reason.LEAN_MEMORY_LIMIT, Reason.PROCESS_LIMIT}
    | {Reason.KERNEL_TIME, Reason.KERNEL_LIMIT, Reason.CRASH}
)

#: Rejections that a broken machine may cause as well as a proof: a process that died, a module that is not
#: there or cannot be read, a kernel that did not get through.
_OF_MACHINE = frozenset({Reason.CRASH, Reason.MALFORMED_OLEAN, Reason.KERNEL, Reason.KERNEL_LIMIT})

#: Failures of the farm that a retry would repeat.
_FINAL = frozenset(
    {Reason.BAD_CHALLENGE, Reason.KERNELS_DISAGREE, Reason.ANSWER_UNDECIDED, Reason.CONTRADICTION}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The outcome of a check, its reason, and one short sentence for a person.

    `place` is the position in the program that the sentence names, None if it names none; `error_kind` is
    the kind of the error of Lean's that it names, "" for other reasons. `cut_short` says that a clock ended
    what belongs to the verdict besides the outcome.
    """

    outcome: Outcome
    reason: Reason
    detail: str
    place: Place | None = None
    error_kind: str = ""
    cut_short: bool = False

    @property
    def proof_status(self) -> str:
        """The word that tools reading manifests know, such as completed, has_sorry, timeout or error."""
        if self.reason is Reason.HAS_SORRY:
            return "has_sorry"
        by_outcome = {
            Outcome.PROVED: "completed",
            Outcome.DISPROVED: "disproved",
            Outcome.PARTIAL: "partial",
            Outcome.STATED: "stated",
            Outcome.TIMEOUT: "timeout",
            Outcome.JUDGE_ERROR: "judge_error",
        }
        return by_outcome.get(self.outcome, "error")

    @property
    def reproducible(self) -> bool:
        """Whether a retry would give the same verdict, so that other jobs may share this one.

        Limits of time and memory depend on the machine; so does Lean's ``-M``, which measures resident
        memory. A broken machine can cause a crash. Heartbeats count allocations, so every machine gives the
        same number.
        """
        return self.outcome is not Outcome.JUDGE_ERROR and not self.by_chance

    @property
    def is_tried_again(self) -> bool:
        """Whether the farm failed, and a retry may succeed."""
        return self.outcome is Outcome.JUDGE_ERROR and self.reason not in _FINAL

    @property
    def may_be_the_machine(self) -> bool:
        """Whether a broken machine gives this verdict on any proof, so that the worker tests it first."""
        return self.is_tried_again or self.reason in _OF_MACHINE

    @property
    def by_chance(self) -> bool:
        """Whether a clock or the machine's state decided, so that no other line may share the verdict."""
        return self.cut_short or self.reason in _CHANCE


@dataclass(frozen=True, kw_only=True, slots=True)
class Particulars:
    """The fields of a verdict that the store writes as one document: no SQL filters or sums them.

    A new field needs a default and no migration: verdicts of an earlier release get the default.
    """

    place: Place | None = None
    error_kind: str = ""
    task: str = ""

    @classmethod
    def of(cls, verdict: Verdict, *, task: str) -> Particulars:
        """Return the particulars of a verdict on a check with this task."""
        return cls(place=verdict.place, error_kind=verdict.error_kind, task=task)


def _verdict(reason: Reason, detail: str, place: Place | None = None) -> Verdict:
    return Verdict(outcome=OUTCOMES[reason], reason=reason, detail=detail, place=place)


def _placed(reason: Reason, before: str, at: tuple[int, int], behind: str) -> Verdict:
    """Return a verdict whose sentence names a line and column between two parts, and neither if line is 0."""
    place = Place(line=at[0], column=at[1], start=len(before)) if at[0] else None
    return _verdict(reason, f"{before}{at_line(*at)}{behind}", place)


#: The verdict on a line without a generation, if the run's options do not make that an error.
LACKS_ANSWER = _verdict(Reason.NO_ANSWER, "There is no answer: the line's generation is missing or null.")

#: The verdict on a line whose statement Lean cannot read, whatever its answer is.
UNREADABLE_STATEMENT = _verdict(
    Reason.BAD_CHALLENGE,
    "The header, context or formal_statement contains a NUL character or a lone surrogate: "
    "Lean cannot read it.",
)


def unusable_line(field: str, problem: str, remedy: str) -> Verdict:
    """Return the verdict on a line of which the assembly can make no program.

    For a fault in `predicted_proof` the submission is rejected; any other field is the dataset's fault.
    """
    reason = Reason.INVALID_TEXT if field == "predicted_proof" else Reason.BAD_CHALLENGE
    return _verdict(reason, f"The {field} cannot be used: {problem}. Remedy: {remedy}.")


def box_failed(why: str) -> Verdict:
    """Return the verdict of a check at which the box failed."""
    return _verdict(Reason.BOX_FAILED, f"The box failed: {why}.")


def judge(report: Report) -> Verdict:
    """Return the verdict on the report of one check; every report has one."""
    worded = _ENDED.get(ending(report))
    if worded is not None:
        found = worded(report)
    elif report.states:
        found = _stopped_early(report) or _stated(report)
    else:
        found = _sorry(report) or _stopped_early(report) or _partial(_sealed(report), report.audit)
        if found.outcome is Outcome.REJECTED and report.run.lacked is not None:  # such as `first | a | sorry`
            found = _lacking(report)
    if report.negates and found.outcome is Outcome.PROVED:
        found = _disproved(report, found)
    if not report.otherwise:
        return found
    as_other = "a proof" if report.negates else "a disproof"
    return replace(found, detail=f"{found.detail} As {as_other}: {report.otherwise}")


def _disproved(report: Report, accepted: Verdict) -> Verdict:
    """Return the verdict on an accepted proof of a negation."""
    if report.contradicts:
        detail = "The answer was accepted as a proof of the statement and as one of its negation."
        return _verdict(Reason.CONTRADICTION, detail)
    if report.rests_on_sorry_of:  # such as the statement itself, which stands above, admitted
        return _verdict(Reason.HAS_SORRY, f"The disproof{_open_parts(report.rests_on_sorry_of)[1:]}.")
    if report.statement != COMPARED:
        return _verdict(Reason.AUDIT, "Nothing compared the proof with the negation of the statement.")
    return _verdict(Reason.DISPROVED, f"The statement is false. {accepted.detail}")


def contradiction(checks: str) -> Verdict:
    """Return the verdict on the proofs and disproofs of one statement, which `checks` name."""
    detail = (
        f"The statement is proved and disproved ({checks}): its header or context is inconsistent, or the "
        "farm is wrong."
    )
    return _verdict(Reason.CONTRADICTION, detail)


def _stated(report: Report) -> Verdict:
    """Return the verdict on a statement alone that Lean accepted."""
    audit = report.audit
    if audit is not None and audit.of_challenge is not None:
        return _verdict(Reason.AUDIT, audit.of_challenge.sentence)
    found = _sealed(report)
    if found.outcome is not Outcome.PROVED:
        return found
    if audit is None or audit.stated is None:
        return _verdict(Reason.NO_REPLY, "The seal did not say what the statement is.")
    return replace(_verdict(Reason.STATED, audit.stated.sentence), cut_short=audit.stated.cut_short)


def judge_text(text: str) -> Verdict | None:
    """Return the rejection of a program that Lean cannot read, None for any other program.

    Lean reads UTF-8, which has no lone surrogates, and takes NUL for the end of a string.
    """
    at = first_unstorable(text)
    if at is None:
        return None
    what = "a NUL character" if text[at] == "\0" else f"the lone surrogate U+{ord(text[at]):04X}"
    return _placed(Reason.INVALID_TEXT, f"The program contains {what}", line_and_column(text, at), ".")


def _unreadable(report: Report) -> Verdict:
    return _verdict(Reason.INVALID_TEXT, report.text_error or "", report.text_place)


def _barred(report: Report) -> Verdict:
    hit = report.refused
    assert hit is not None  # noqa: S101 - that is this ending
    return _placed(
        Reason.NATIVE_DECIDE if hit.rule == "native" else Reason.POLICY,
        f"The policy does not allow {_first_line(hit.text)!r}",
        (hit.line, hit.column),
        f": it {RULES[hit.rule]} (rule {hit.rule}).",
    )


def _farm_failed(report: Report) -> Verdict:
    if report.challenge_error is not None:
        return _verdict(
            Reason.BAD_CHALLENGE, f"The statement itself {report.words.faulty}: {report.challenge_error}"
        )
    if report.task_error is not None:
        return _verdict(Reason.BAD_CHALLENGE, report.task_error)
    if report.run.box_error is not None:
        return box_failed(report.run.box_error)
    return _verdict(Reason.BAD_ENVIRONMENT, f"The environment is broken: {report.environment_error}.")


_LIMITS: dict[str | None, tuple[Reason, str]] = {
    "wall": (
        Reason.WALL_LIMIT,
        "{words.prover} did not finish within the time limit (it ran for {0.counted_seconds:.1f} s{waits}).",
    ),
    "cpu": (
        Reason.CPU_LIMIT,
        "{words.prover} used more processor time than allowed ({0.cpu_seconds:.1f} s).",
    ),
    "memory": (
        Reason.MEMORY_LIMIT,
        "{words.prover} used more memory than allowed (peak: {0.peak_memory_kib} KiB).",
    ),
    "output": (Reason.OUTPUT_LIMIT, "The program wrote more output than allowed ({0.output_bytes} bytes)."),
    "file": (Reason.OUTPUT_LIMIT, "The program wrote a larger file than allowed."),
    "processes": (Reason.PROCESS_LIMIT, "The program started more processes than allowed."),
}


#: The sentence omits a shorter wait for a core, in seconds.
_SHOWN_WAIT = 0.1


def _limit_ended_it(report: Report) -> Verdict:
    word = limit(report)
    if word not in _LIMITS:
        return box_failed(f"it reported an unknown limit, {word!r}")
    reason, detail = _LIMITS[word]
    waited = report.run.waited_seconds
    waits = f", not counting {waited:.1f} s in which it waited for a core" if waited >= _SHOWN_WAIT else ""
    return _verdict(reason, detail.format(report.run, words=report.words, waits=waits))


def _silent(report: Report) -> Verdict:
    prover = report.words.prover
    if report.run.exit_status is None:
        return _verdict(Reason.NO_REPLY, f"{prover} ended with neither an exit status nor a signal.")
    said = _first_line(report.answer.foreign_output) or "nothing"
    return _verdict(Reason.NO_REPLY, f"{prover} failed without reporting an error; its output: {said}")


def _killed(report: Report) -> Verdict:
    name = signal_name(report.run.signal or 0)
    return _verdict(Reason.KILLED, f"{report.words.prover} was killed from outside by {name}.")


def _out_of_memory(report: Report) -> Verdict:
    prover = report.words.prover
    detail = f"{prover} could not allocate the memory that it needed and gave up."
    return _verdict(Reason.MEMORY_LIMIT, detail)


def _lacking(report: Report) -> Verdict:
    return box_failed(f"{report.run.lacked or 'the machine refused something'}, and the program failed")


def _no_thread(_report: Report) -> Verdict:
    return box_failed("Lean could not start a thread")


def _crashed(report: Report) -> Verdict:
    run = report.run
    how = f"it ended with status {run.exit_status}."
    if run.signal is not None:
        how = f"it ended by {signal_name(run.signal)}."
    elif run.exit_status in (0, 1):
        how = _first_line(panic(report) or "")
    return _verdict(Reason.CRASH, f"{report.words.prover} crashed: {how}")


def _own_limit(reason: Reason, what: str) -> Callable[[Report], Verdict]:
    def worded(report: Report) -> Verdict:
        named = errors(report)[0]
        said = _placed(reason, f"Lean's own {what} limit stopped the program", _at(named), ".")
        return replace(said, error_kind=error_kind(named))

    return worded


def _refused(report: Report) -> Verdict:
    found = errors(report)
    told = causes.named(found)
    remedy = f". {report.remedy}" if report.remedy else ""
    words = f": {_first_line(told.text)}{causes.counted(found)}{remedy}"
    return replace(_placed(Reason.ERROR, "Error", _at(told), words), error_kind=error_kind(told))


#: The verdict on each ending except `Ending.COMPLETE`.
_ENDED: dict[Ending, Callable[[Report], Verdict]] = {
    Ending.UNREADABLE: _unreadable,
    Ending.BARRED: _barred,
    Ending.FARM_FAILED: _farm_failed,
    Ending.LIMIT: _limit_ended_it,
    Ending.SILENT: _silent,
    Ending.KILLED: _killed,
    Ending.LACKING: _lacking,
    Ending.OUT_OF_MEMORY: _out_of_memory,
    Ending.NO_THREAD: _no_thread,
    Ending.CRASHED: _crashed,
    Ending.LEAN_MEMORY: _own_limit(Reason.LEAN_MEMORY_LIMIT, "memory"),
    Ending.HEARTBEATS: _own_limit(Reason.HEARTBEAT_LIMIT, "heartbeat"),
    Ending.REFUSED: _refused,
}


def _at(message: Message) -> tuple[int, int]:
    return message.line, message.column


def _first_line(text: str, length: int = 160) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= length else line[: length - 1] + "…"


def _sorry(report: Report) -> Verdict | None:
    warned = admitted(report)
    if warned is None:
        return None
    # Lean's first warning may be about the dataset's own sorry; an audit names one of the submission.
    for reason in (Reason.ANSWER_MISSING, Reason.HAS_SORRY):
        if report.audit and (found := report.audit.first(reason)):
            return _verdict(reason, found.sentence)
    return _placed(Reason.HAS_SORRY, "A declaration", _at(warned), " is admitted, not proved.")


def _sealed(report: Report) -> Verdict:
    """Return the verdict on a program that Lean accepted, by the audit and replay of its module."""
    if report.tier == Tier.LEAN:
        return _verdict(Reason.OK, f"Lean accepted the program{_worth(report)}.")
    audit = report.audit
    if audit is not None and not audit.accepted:
        return _found_at_fault(audit)
    if report.kernel_limit is not None:
        return _kernel_ended(report.kernel_limit)
    if audit is None:
        return _verdict(
            Reason.NO_REPLY, "Lean accepted the program, but the audit of its module gave no answer."
        )
    if audit.replay is not None and not audit.replay.accepted:
        words = report.words
        said = _first_line(audit.replay.said)
        return _verdict(Reason.KERNEL, f"{words.kernel} rejected {words.made}: {said}")
    if report.tier == Tier.AUDIT:
        return _verdict(
            Reason.OK, f"Lean accepted the program, and the audit accepted its module{_worth(report)}."
        )
    if audit.replay is None:
        return _verdict(Reason.NO_REPLY, "The audit accepted the module, but the kernel gave no answer.")
    return _accepted(report, audit.others)


def _partial(found: Verdict, audit: Audit | None) -> Verdict:
    """Return the verdict on a module without faults: *partial* where sorries of it are permitted."""
    if found.outcome is not Outcome.PROVED or audit is None or not audit.permitted:
        return found
    proved, parts = audit.parts_proved
    of_parts = f"; proved: {proved} of {parts} parts" if parts else ""
    return _verdict(
        Reason.PARTIAL, f"{found.detail.rstrip('.')}{of_parts}; sorry in {_named(audit.permitted)}."
    )


def _accepted(report: Report, others: Sequence[Replay]) -> Verdict:
    """Return the verdict on a module that the kernel has accepted, by the answers of other kernels."""
    words = report.words
    rejecting = next((each for each in others if not each.accepted), None)
    if rejecting is not None:
        said = _first_line(rejecting.said) or "no output"
        detail = f"{words.kernel} accepted {words.made}, but {rejecting.checker} rejected it: {said}"
        return _verdict(Reason.KERNELS_DISAGREE, detail)
    all_of_them = " and ".join([words.kernel, *(str(each.checker) for each in others)])
    return _verdict(Reason.OK, f"{all_of_them} accepted {words.made}{_worth(report)}.")


def _worth(report: Report) -> str:
    """Return the phrases that list the weaknesses of a *proved*."""
    unchecked = f"; statement: {UNCHECKED}" if report.statement != COMPARED else ""
    trusts = (f"; trusts {what}" for what in report.trusts if what != ADMITTED)
    return unchecked + _open_parts(report.rests_on_sorry_of) + "".join(trusts)


def _open_parts(names: Sequence[str]) -> str:
    """Return the phrase that lists the admitted constants that a proof rests on, the first few by name."""
    return f"; rests on the sorry of {_named(names)}" if names else ""


def _named(names: Sequence[str]) -> str:
    shown = [_first_line(name, 60) for name in names[:_MOST_NAMES]]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"{', '.join(shown)}{more}"


#: The most admitted constants that a sentence names.
_MOST_NAMES = 3


_KERNEL_LIMITS: dict[str, tuple[Reason, str]] = {
    "time": (
        Reason.KERNEL_TIME,
        "Lean accepted the program; the kernel did not finish checking its module in time.",
    ),
    "memory": (
        Reason.MEMORY_LIMIT,
        "Lean accepted the program; the kernel needs more memory for its module than allowed.",
    ),
    "depth": (
        Reason.KERNEL_LIMIT,
        "Lean accepted the program; its module exceeds the kernel's recursion depth.",
    ),
    "audit_wall": (
        Reason.WALL_LIMIT,
        "Lean accepted the program; the audit of its module took longer than allowed, "
        "before the kernel began.",
    ),
    "audit_cpu": (
        Reason.CPU_LIMIT,
        "Lean accepted the program; the audit of its module used more processor time than allowed, before "
        "the kernel began.",
    ),
    "audit_depth": (
        Reason.KERNEL_LIMIT,
        "Lean accepted the program; a term of its module is too deep or too large for Lean to rebuild it.",
    ),
    "audit_memory": (
        Reason.MEMORY_LIMIT,
        "Lean accepted the program; the audit of its module needs more memory than allowed.",
    ),
}


def _kernel_ended(limit: str) -> Verdict:
    if limit not in _KERNEL_LIMITS:
        return box_failed(f"the seal reported an unknown limit, {limit!r}")
    reason, detail = _KERNEL_LIMITS[limit]
    return _verdict(reason, detail)


#: The reasons for an audit's findings, by their words; all other words are `Reason.AUDIT`.
_FINDINGS = {
    "has_sorry": Reason.HAS_SORRY,
    "native_decide": Reason.NATIVE_DECIDE,
    "axiom": Reason.AXIOM,
    "kernel": Reason.KERNEL,
    "kernel_limit": Reason.KERNEL_LIMIT,
    "kernel_time": Reason.KERNEL_TIME,
    "kernel_memory": Reason.MEMORY_LIMIT,
    **dict.fromkeys(MISMATCHES, Reason.STATEMENT_MISMATCH),
    "bad_challenge": Reason.BAD_CHALLENGE,
    FORBIDDEN: Reason.FORBIDDEN,
    "malformed_olean": Reason.MALFORMED_OLEAN,
    **{each.value: each for each in Reason if each.value.startswith("answer_")},
}


def _found_at_fault(audit: Audit) -> Verdict:
    first = audit.decisive
    if first is None:
        return _verdict(Reason.NO_REPLY, "The audit rejected the module without naming a fault.")
    others = len(audit.findings) - 1 + audit.findings_left_off
    more = f" (and {others} more)" if others else ""
    return _verdict(_FINDINGS.get(first.word, Reason.AUDIT), f"{first.sentence}{more}")


def _stopped_early(report: Report) -> Verdict | None:
    if report.answer.reached_end:
        return None
    return _verdict(
        Reason.STOPPED_EARLY, "Lean stopped before the end of the program, at an #exit or similar."
    )
