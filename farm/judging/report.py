"""Verdict step, facts: the report of a worker on one check, which `farm.judging.verdict` judges."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from farm.judging.audit import UNCHECKED, Audit
from farm.judging.places import Place
from farm.judging.tiers import Tier
from farm.judging.words import LEAN, Words
from farm.lean_text.policy.rules import Hit


class Preamble(StrEnum):
    """The stored word for one of a check's candidates: the first, the second of three, or the last."""

    MODEL = "model"
    RESTATED = "restated"
    FARM = "farm"


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of Lean, as ``lean --json`` prints it.

    `severity` is ``error``, ``warning`` or ``information``; `kind` is Lean's name for the sort of message,
    ``""`` if the version prints none. Lines count from 1, columns from 0 in code points; a message without a
    position has line 0.
    """

    severity: str
    kind: str
    text: str
    line: int
    column: int
    end_line: int | None
    end_column: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """The open goals at a position in a program, as Lean prints them.

    `kind` is ``sorry`` or ``error``; lines and columns count as those of a `Message`. The process that writes
    goals also runs the program's own code, so no verdict depends on them.

    `start` and `end` are offsets in the program: a proof of the goals can stand there instead. For a sorry
    that is its own text, a term if `is_term` or else a tactic. For an error it is the tactic that fails, to
    the end of its block; where the block leaves goals open, both are its end, and `indent` is the column of
    its tactics. They are None where Lean names no such place, and in goals of earlier releases.
    `open_goals` counts the goals that `goal` shows.
    """

    kind: str
    goal: str
    line: int
    column: int
    start: int | None = None
    end: int | None = None
    is_term: bool = False
    open_goals: int = 1
    indent: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Execution:
    """The run of a command in a box; the defaults stand for a command that never ran.

    `signal` ended the process; either it or `exit_status` is a number, unless the box failed or a limit ended
    the run. `limit` names the limit for which the box ended the run, or which the run had exceeded at its
    end: ``wall``, ``cpu``, ``memory``, ``output``, ``processes`` or None. `wall_seconds` begin when the
    command does; `waited_seconds` of them it waited for a core, which the limit does not count;
    `cpu_seconds` is user and system time of the whole process tree, `peak_memory_kib` is as in
    `farm_workers.box.procfs.Usage`. `output_bytes` counts the bytes written to both streams; `output_cut`
    means that the box dropped some of them. `stdout` and `stderr` are empty in a report, whose `Answer` holds
    their contents. `box_error` is the failure of the box, which is no fact about the command. `lacked`
    names the resource that the machine may have refused the command within its limits, such as a process or
    memory; None if it refused nothing. `isolation` names the isolation level of the box.
    """

    exit_status: int | None = None
    signal: int | None = None
    wall_seconds: float = 0.0
    waited_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_kib: int = 0
    limit: str | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    output_bytes: int = 0
    output_cut: bool = False
    box_error: str | None = None
    lacked: str | None = None
    isolation: str = "none"

    @property
    def counted_seconds(self) -> float:
        """The time that a wall limit counts: without the waits for a core."""
        return self.wall_seconds - self.waited_seconds

    @property
    def is_undisturbed(self) -> bool:
        """Whether the command ended by itself: the box did not fail, and no limit ended the run."""
        return self.box_error is None and self.limit is None


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The output of Lean: its messages in order, and all other text on stdout, then on stderr, bounded.

    `reached_end` is true if Lean read the program to its end.
    """

    messages: tuple[Message, ...] = ()
    foreign_output: str = ""
    reached_end: bool = False

    @property
    def first_error(self) -> Message | None:
        """Lean's first error, if it reports one."""
        return next((each for each in self.messages if each.severity == "error"), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """The facts of one check, without a judgement.

    `way` names the start of Lean: ``forked``, ``prepared`` or ``cold``, or ``none`` if Lean did
    not run. `environment_error` describes a failure of the farm, as the run's `box_error` does. `text_error`
    is the reason for which the worker did not run Lean on this text, and `text_place` its position. `hits`
    are the policy's matches in the submission's spans, and `refused` is the hit for which the worker did not
    run Lean. `challenge_error` describes a fault of the statement, whatever the proof is, and `task_error` a
    fault of what is asked about it.

    `tier` is the tier of the check. `audit` is the audit of the compiled module, None if the audit did not
    run or gave no answer. `kernel_limit` names the limit that ended the kernel without an answer: ``time``,
    ``memory`` or ``depth``; or the limit that ended the audit before the kernel began: ``audit_wall``,
    ``audit_cpu``, ``audit_memory`` or ``audit_depth``.

    `context_ends` is the line and column of the program at which the dataset's context ends, None without
    one; messages above it are not about the submission. `words` name the programs of the proof system.
    `candidate` is the place of the judged candidate in the check's list, from 0. `goals` are the goals at
    errors and sorries, None if the check does not want them or Lean could not print them.

    With `negates` that candidate was a disproof. With `contradicts` one answer was accepted as a proof of
    both. `otherwise` is the verdict's sentence about the other of the two. With `states` there was no answer,
    and the statement alone was examined. `remedy` is a sentence about the modules of a header that cannot be
    imported.
    """

    run: Execution = Execution()
    answer: Answer = Answer()
    way: str = "none"
    tier: str = Tier.KERNEL
    environment_error: str | None = None
    text_error: str | None = None
    text_place: Place | None = None
    hits: tuple[Hit, ...] = ()
    refused: Hit | None = None
    audit: Audit | None = None
    kernel_limit: str | None = None
    challenge_error: str | None = None
    task_error: str | None = None
    candidate: int = 0
    goals: tuple[Goal, ...] | None = None
    words: Words = LEAN
    context_ends: tuple[int, int] | None = None
    negates: bool = False
    contradicts: bool = False
    otherwise: str = ""
    states: bool = False
    remedy: str = ""

    def is_of_context(self, message: Message) -> bool:
        """Return whether a message is about the dataset's own context; one without a position is not."""
        if self.context_ends is None or message.line == 0:
            return False
        return (message.line, message.column) < self.context_ends

    @property
    def statement(self) -> str:
        """`COMPARED` if the audit compared the module with the line's statement, or else `UNCHECKED`."""
        return UNCHECKED if self.audit is None else self.audit.statement or UNCHECKED

    @property
    def trusts(self) -> tuple[str, ...]:
        """The phrases for everything besides the kernel that the proof rests on."""
        return () if self.audit is None else self.audit.trusts

    @property
    def rests_on_sorry_of(self) -> tuple[str, ...]:
        """The constants that the dataset admits and the proof rests on."""
        return () if self.audit is None else self.audit.rests_on_sorry_of
