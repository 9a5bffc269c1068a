"""Verdict step: what the facts of one check say a proof is worth, as a pure and total function.

Nothing here runs, reads or waits. Facts come in as a frozen `Report`; `judge` answers every possible report.
Three rules stand above the table:

- *The absence of an answer is never a pass.* `proved` needs exit status 0, no error, no sorry, the program
  read to its end, every byte of the output read, no limit hit, and, on the tiers kernel and audit, a compiled
  module that was found in order by processes that never saw the program.
- *The farm's failures are not the proof's.* What the box, the environment or someone outside did is
  `judge_error`; it is tried again and never shown as a failed proof.
- *Severity, kind and exit status decide, never a word in a text.* A text is compared only as a whole, and
  only to tell one way of failing from another. What Lean says decides only why something is not proved,
  unless the tier is lean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from farm.characters import first_unstorable
from farm.judging.places import at_line
from farm.judging.report import ADMITTED, COMPARED, UNCHECKED, Message, Report
from farm.judging.signals import LAST_SIGNAL, signal_name
from farm.judging.tiers import Tier
from farm.judging.words import WORDS, Words
from farm.lean_text.policy.rules import RULES
from farm.lean_text.positions import line_and_column


class Outcome(StrEnum):
    """What a proof is worth, in five words; `Reason` says more."""

    PROVED = "proved"
    REJECTED = "rejected"
    TIMEOUT = "timeout"
    MEMORY_LIMIT = "memory_limit"
    JUDGE_ERROR = "judge_error"


class Reason(StrEnum):
    """Why the outcome is what it is; each reason belongs to exactly one outcome (see `OUTCOMES`)."""

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
    AUDIT = "audit"
    MALFORMED_OLEAN = "malformed_olean"
    KERNEL = "kernel"
    KERNEL_LIMIT = "kernel_limit"
    KERNEL_TIME = "kernel_time"
    BAD_CHALLENGE = "bad_challenge"
    KERNELS_DISAGREE = "kernels_disagree"


#: The outcome that each reason belongs to.
OUTCOMES: dict[Reason, Outcome] = {
    Reason.OK: Outcome.PROVED,
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
    Reason.AUDIT: Outcome.REJECTED,
    Reason.MALFORMED_OLEAN: Outcome.REJECTED,
    Reason.KERNEL: Outcome.REJECTED,
    Reason.KERNEL_LIMIT: Outcome.REJECTED,
    Reason.KERNEL_TIME: Outcome.TIMEOUT,
    Reason.BAD_CHALLENGE: Outcome.JUDGE_ERROR,
    Reason.KERNELS_DISAGREE: Outcome.JUDGE_ERROR,
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

#: Reasons that another machine, or the same one on a calmer day, may not give again. A crash is one of them:
#: a library that is broken here, or a file that is gone, ends Lean as a program can.
_CHANCE = frozenset(
    {Reason.WALL_LIMIT, Reason.CPU_LIMIT, Reason.MEMORY_LIMIT, Reason.LEAN_MEMORY_LIMIT, Reason.PROCESS_LIMIT}
    | {Reason.KERNEL_TIME, Reason.KERNEL_LIMIT, Reason.CRASH}
)

#: Failures of the farm that another attempt would end in as well.
_FINAL = frozenset({Reason.BAD_CHALLENGE, Reason.KERNELS_DISAGREE})


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What a proof is worth, why, and the same in one short sentence for a person."""

    outcome: Outcome
    reason: Reason
    detail: str

    @property
    def proof_status(self) -> str:
        """The word that tools reading manifests know: completed, has_sorry, timeout, error or judge_error."""
        if self.reason is Reason.HAS_SORRY:
            return "has_sorry"
        by_outcome = {
            Outcome.PROVED: "completed",
            Outcome.TIMEOUT: "timeout",
            Outcome.JUDGE_ERROR: "judge_error",
        }
        return by_outcome.get(self.outcome, "error")

    @property
    def reproducible(self) -> bool:
        """Whether the same check would end the same way again, so that other jobs may share this verdict.

        Limits measured by a clock or in memory are chance; Lean's ``-M`` is one of them, for it looks at
        resident memory. So is a crash, which the machine can have a part in. Heartbeats are counted
        allocations and come out the same everywhere.
        """
        return self.outcome is not Outcome.JUDGE_ERROR and not self.by_chance

    @property
    def is_tried_again(self) -> bool:
        """Whether the farm failed, in a way that another attempt may not."""
        return self.outcome is Outcome.JUDGE_ERROR and self.reason not in _FINAL

    @property
    def may_be_the_machine(self) -> bool:
        """Whether a broken machine gives this verdict of any proof, so that the machine is examined first."""
        return self.is_tried_again or self.reason is Reason.CRASH

    @property
    def by_chance(self) -> bool:
        """Whether a clock, or the machine's state, decided: it then says nothing about another line."""
        return self.reason in _CHANCE


def _verdict(reason: Reason, detail: str) -> Verdict:
    return Verdict(outcome=OUTCOMES[reason], reason=reason, detail=detail)


#: The verdict on a line that has no generation, where that is not an error of its manifest.
LACKS_ANSWER = _verdict(Reason.NO_ANSWER, "There is no answer: the line's generation is missing or null.")

#: The verdict on a line whose statement cannot be given to Lean, whatever its answer is.
UNREADABLE_STATEMENT = _verdict(
    Reason.BAD_CHALLENGE,
    "The header, context or formal_statement contains a NUL character or a lone surrogate: "
    "Lean cannot read it.",
)


def unusable_line(field: str, problem: str, remedy: str) -> Verdict:
    """Return the verdict on a line from which its proof system can make no program.

    A program that a submission brings in `predicted_proof` is its own fault, any other field the dataset's.
    """
    reason = Reason.INVALID_TEXT if field == "predicted_proof" else Reason.BAD_CHALLENGE
    return _verdict(reason, f"The {field} cannot be used: {problem}. Remedy: {remedy}.")


def _words(report: Report) -> Words:
    return WORDS[report.kind]


def box_failed(why: str) -> Verdict:
    """Return the verdict of a check that the farm itself failed at."""
    return _verdict(Reason.BOX_FAILED, f"The box failed: {why}.")


def judge(report: Report) -> Verdict:
    """Say what the facts of one check make of the proof; every report has an answer."""
    return _run(report) or _sorry(report) or _stopped_early(report) or _sealed(report)


def needs_seal(report: Report, *, statement_has_sorry: bool = False) -> bool:
    """Whether nothing but the compiled module can tell what a proof is worth.

    With `statement_has_sorry` the dataset's own text holds a sorry, so that Lean's warnings say nothing.
    """
    if report.tier == Tier.LEAN or _run(report) or _stopped_early(report):
        return False
    return statement_has_sorry or _sorry(report) is None


def _run(report: Report) -> Verdict | None:
    return (
        _not_run(report)
        or _refused_by_policy(report)
        or _farm_failed(report)
        or _limit_ended_it(report)
        or _process_died(report)
        or _errors(report)
        or _failed_without_an_error(report)
    )


def judge_text(text: str) -> Verdict | None:
    """Reject a program that cannot be given to Lean at all; None when it can.

    Lean reads UTF-8, which has no lone surrogates, and takes NUL for the end of a string.
    """
    at = first_unstorable(text)
    if at is None:
        return None
    line, column = line_and_column(text, at)
    what = "a NUL character" if text[at] == "\0" else f"the lone surrogate U+{ord(text[at]):04X}"
    return _verdict(Reason.INVALID_TEXT, f"The program contains {what}{at_line(line, column)}.")


def _not_run(report: Report) -> Verdict | None:
    return None if report.text_error is None else _verdict(Reason.INVALID_TEXT, report.text_error)


def _refused_by_policy(report: Report) -> Verdict | None:
    hit = report.refused
    if hit is None:
        return None
    reason = Reason.NATIVE_DECIDE if hit.rule == "native" else Reason.POLICY
    return _verdict(
        reason,
        f"The policy does not allow {_first_line(hit.text)!r}{at_line(hit.line, hit.column)}: "
        f"it {RULES[hit.rule].threat} (rule {hit.rule}).",
    )


def _farm_failed(report: Report) -> Verdict | None:
    if report.challenge_error is not None:
        return _verdict(
            Reason.BAD_CHALLENGE, f"The statement itself {_words(report).faulty}: {report.challenge_error}"
        )
    if report.run.box_error is not None:
        return box_failed(report.run.box_error)
    if report.environment_error is not None:
        return _verdict(Reason.BAD_ENVIRONMENT, f"The environment is broken: {report.environment_error}.")
    return None


_LIMITS: dict[str, tuple[Reason, str]] = {
    "wall": (
        Reason.WALL_LIMIT,
        "{words.prover} did not finish within the time limit (it ran for {0.wall_seconds:.1f} s).",
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
    "processes": (Reason.PROCESS_LIMIT, "The program started more processes than allowed."),
}


def _limit_ended_it(report: Report) -> Verdict | None:
    limit = report.run.limit or ("output" if report.run.output_cut else None)
    if limit is None:
        return None
    if limit not in _LIMITS:
        return box_failed(f"it reported an unknown limit, {limit!r}")
    return _over(limit, report)


def _over(limit: str, report: Report) -> Verdict:
    reason, detail = _LIMITS[limit]
    return _verdict(reason, detail.format(report.run, words=_words(report)))


#: Signals that people, service managers and the kernel's out-of-memory killer send. A process gets all others
#: for faults or limits of its own, or because it has asked for them, such as SIGALRM.
_FROM_OUTSIDE = frozenset({"SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGTERM"})

#: What Lean's runtime and C++ say, each as a whole line, when the system refuses them memory or threads.
_OUT_OF_MEMORY = re.compile(
    r"^(INTERNAL PANIC: out of memory"
    r"|(libc\+\+abi: )?terminat(ing|e called).* of type '?std::bad_alloc.*)$",
    re.MULTILINE,
)
#: What the runtime says before it ends with status 1 at an operation that it cannot carry out.
_PANIC = re.compile(r"^INTERNAL PANIC: .*$", re.MULTILINE)
_NO_THREAD = re.compile(r"^libc\+\+abi: terminating .*: failed to create thread: .*$", re.MULTILINE)


def _process_died(report: Report) -> Verdict | None:
    ended_by_itself = report.run.signal is None and report.run.exit_status in (0, 1)
    if ended_by_itself:
        return None
    if report.run.signal is None:
        if report.run.exit_status is None:
            return _verdict(
                Reason.NO_REPLY, f"{_words(report).prover} ended with neither an exit status nor a signal."
            )
        return _refused(report) or _crashed(report, f"it ended with status {report.run.exit_status}.")
    name = signal_name(report.run.signal)
    if name == "SIGXFSZ":
        return _verdict(Reason.OUTPUT_LIMIT, "The program wrote a larger file than allowed.")
    if name == "SIGXCPU":
        return _over("cpu", report)
    if name in _FROM_OUTSIDE or not 0 < report.run.signal <= LAST_SIGNAL:
        return _verdict(Reason.KILLED, f"{_words(report).prover} was killed from outside by {name}.")
    return _refused(report) or _crashed(report, f"it ended by {name}.")


def _crashed(report: Report, how: str) -> Verdict:
    return _verdict(Reason.CRASH, f"{_words(report).prover} crashed: {how}")


def _refused(report: Report) -> Verdict | None:
    if _OUT_OF_MEMORY.search(report.answer.foreign_output):
        who = _words(report).prover
        return _verdict(
            Reason.MEMORY_LIMIT, f"{who} could not allocate the memory that it needed and gave up."
        )
    if _NO_THREAD.search(report.answer.foreign_output):
        return box_failed("Lean could not start a thread")
    return None


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


def _errors(report: Report) -> Verdict | None:
    errors = [m for m in report.answer.messages if m.severity == "error" and not _is_sorry(m)]
    if not errors:
        return None
    # A limit of Lean's own is the verdict only when nothing else is wrong: with more time the rest would
    # still be refused.
    if all(_LEAN_MEMORY.match(message.text) for message in errors):
        return _verdict(
            Reason.LEAN_MEMORY_LIMIT, f"Lean's own memory limit stopped the program{_at(errors[0])}."
        )
    if all(map(is_heartbeat, errors)):
        return _verdict(
            Reason.HEARTBEAT_LIMIT, f"Lean's own heartbeat limit stopped the program{_at(errors[0])}."
        )
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return _verdict(Reason.ERROR, f"Error{_at(errors[0])}: {_first_line(errors[0].text)}{more}")


def _at(message: Message) -> str:
    return at_line(message.line, message.column)


def _first_line(text: str, length: int = 160) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= length else line[: length - 1] + "…"


def _failed_without_an_error(report: Report) -> Verdict | None:
    if report.run.exit_status == 0 or next(_sorries(report), None) is not None:
        return None
    return _refused(report) or _panicked(report) or _unanswered(report)


def _panicked(report: Report) -> Verdict | None:
    found = _PANIC.search(report.answer.foreign_output)
    return _crashed(report, _first_line(found.group())) if found else None


def _unanswered(report: Report) -> Verdict:
    said = _first_line(report.answer.foreign_output) or "nothing"
    return _verdict(
        Reason.NO_REPLY, f"{_words(report).prover} failed without reporting an error; its output: {said}"
    )


SORRY_TEXTS = frozenset({"declaration uses `sorry`", "declaration uses 'sorry'"})
_SORRY_AXIOM = re.compile(r"'[^'\n]+' depends on axioms:\s*\[(?:[^\]]*[\s,])?sorryAx[\s,\]]")


def most_telling(messages: Sequence[Message]) -> list[int]:
    """Return the places of messages, in the order in which they are kept where not all are.

    Errors decide first, then sorries; warnings come before information.
    """
    ranks = {"error": 0, "warning": 2, "information": 3}

    def rank(place: int) -> int:
        each = messages[place]
        return 1 if _is_sorry(each) else ranks.get(each.severity, 3)

    return sorted(range(len(messages)), key=rank)


def says_sorry(message: Message) -> bool:
    """Whether Lean warns that a declaration is admitted, in any version's wording.

    The kind is there since Lean 4.9; backticks replaced the quotes in 4.28; the option ``warningAsError``
    makes errors of these warnings.
    """
    return message.kind == SORRY_KIND or message.text.strip() in SORRY_TEXTS


def _is_sorry(message: Message) -> bool:
    """Whether a message tells of a sorry; what ``#print axioms`` says counts too."""
    return says_sorry(message) or _SORRY_AXIOM.match(message.text) is not None


def _sorries(report: Report) -> Iterator[Message]:
    """Yield the messages of a sorry, apart from those about the dataset's own context."""
    return (each for each in report.answer.messages if _is_sorry(each) and not report.is_of_context(each))


def _sorry(report: Report) -> Verdict | None:
    """Say where Lean warns of a sorry, unless an audit has found that the statement holds it, or is none."""
    admitted = next(_sorries(report), None)
    audit = report.audit or {}
    if admitted is None or audit.get("statement_has_sorry") or next(_of_challenge(audit), None):
        return None
    # The first that Lean warns of may be the dataset's own; an audit knows which is not.
    found = (each["sentence"] for each in audit.get("findings", ()) if each["word"] == Reason.HAS_SORRY)
    return _verdict(Reason.HAS_SORRY, next(found, f"A declaration{_at(admitted)} is admitted, not proved."))


def _sealed(report: Report) -> Verdict:
    """Say what became of the module of a program that Lean accepted."""
    if report.tier == Tier.LEAN:
        return _verdict(Reason.OK, f"Lean accepted the program{_worth(report)}.")
    audit = report.audit
    if audit is not None and audit["accepted"] is False:
        return _found_at_fault(audit)
    if report.kernel_limit is not None:
        return _kernel_ended(report.kernel_limit)
    if audit is None or audit["accepted"] is not True:
        return _verdict(
            Reason.NO_REPLY, "Lean accepted the program, but the audit of its module gave no answer."
        )
    replay = audit.get("replay")
    if replay is not None and replay["accepted"] is False:
        words = _words(report)
        said = _first_line(replay["said"])
        return _verdict(Reason.KERNEL, f"{words.kernel} rejected {words.made}: {said}")
    if report.tier == Tier.AUDIT:
        return _verdict(
            Reason.OK, f"Lean accepted the program, and the audit accepted its module{_worth(report)}."
        )
    if replay is None or replay["accepted"] is not True:
        return _verdict(Reason.NO_REPLY, "The audit accepted the module, but the kernel gave no answer.")
    return _accepted(report, audit.get("second"))


def _accepted(report: Report, second: Mapping[str, Any] | None) -> Verdict:
    """Say what a module is worth that the kernel has accepted, and the second one, where there is one."""
    words = _words(report)
    if second is None:
        return _verdict(Reason.OK, f"{words.kernel} accepted {words.made}{_worth(report)}.")
    if second["accepted"] is True:
        both = f"{words.kernel} and {second['checker']}"
        return _verdict(Reason.OK, f"{both} accepted {words.made}{_worth(report)}.")
    said = _first_line(second["said"]) or "no output"
    detail = f"{words.kernel} accepted {words.made}, but {second['checker']} rejected it: {said}"
    return _verdict(Reason.KERNELS_DISAGREE, detail)


def _worth(report: Report) -> str:
    """Return in words what *proved* leaves open."""
    unchecked = f"; statement: {UNCHECKED}" if report.statement != COMPARED else ""
    trusts = (f"; trusts {what}" for what in report.trusts if what != ADMITTED)
    return unchecked + _open_parts(report.rests_on_sorry_of) + "".join(trusts)


def _open_parts(names: Sequence[str]) -> str:
    """Return in words on which admitted constants a proof rests, the first few by name."""
    shown = [_first_line(name, 60) for name in names[:_MOST_NAMES]]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"; rests on the sorry of {', '.join(shown)}{more}" if names else ""


#: How many admitted constants a sentence names.
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


#: What the words of an audit's findings are as a reason; all others are `Reason.AUDIT`.
_FINDINGS = {
    "has_sorry": Reason.HAS_SORRY,
    "native_decide": Reason.NATIVE_DECIDE,
    "axiom": Reason.AXIOM,
    "kernel": Reason.KERNEL,
    "kernel_limit": Reason.KERNEL_LIMIT,
    "kernel_time": Reason.KERNEL_TIME,
    "kernel_memory": Reason.MEMORY_LIMIT,
    "statement_mismatch": Reason.STATEMENT_MISMATCH,
    "universe_mismatch": Reason.STATEMENT_MISMATCH,
    "target_missing": Reason.STATEMENT_MISMATCH,
    "not_a_theorem": Reason.STATEMENT_MISMATCH,
    "prerequisite_differs": Reason.STATEMENT_MISMATCH,
    "bad_challenge": Reason.BAD_CHALLENGE,
    "malformed_olean": Reason.MALFORMED_OLEAN,
}


def _of_challenge(audit: Mapping[str, Any]) -> Iterator[Mapping[str, str]]:
    """Yield what was found against the statement itself."""
    return (each for each in audit.get("findings", ()) if each["word"] == "bad_challenge")


def _found_at_fault(audit: Mapping[str, Any]) -> Verdict:
    if audit.get("reason") == Reason.MALFORMED_OLEAN:
        what = f"The compiled module is not what Lean writes: {audit['what']}."
        return _verdict(Reason.MALFORMED_OLEAN, what)
    first = next(_of_challenge(audit), audit["findings"][0])
    more = f" (and {len(audit['findings']) - 1} more)" if len(audit["findings"]) > 1 else ""
    return _verdict(_FINDINGS.get(first["word"], Reason.AUDIT), f"{first['sentence']}{more}")


def _stopped_early(report: Report) -> Verdict | None:
    if report.answer.reached_end:
        return None
    return _verdict(
        Reason.STOPPED_EARLY, "Lean stopped before the end of the program, at an #exit or similar."
    )
