"""Verdict step, facts: what is known of one check. `farm.judging.verdict` says what it is worth."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from farm.judging.audit import UNCHECKED, Audit
from farm.judging.places import Place
from farm.judging.tiers import Tier
from farm.kinds import Kind
from farm.lean_text.policy.rules import Hit


class Preamble(StrEnum):
    """Which of several programs of a check counted: the first, the second of three, or the last."""

    MODEL = "model"
    RESTATED = "restated"
    FARM = "farm"


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of Lean, as ``lean --json`` prints it.

    `severity` is ``error``, ``warning`` or ``information``; `kind` is Lean's name for the sort of message,
    ``""`` where the version prints none. Lines count from 1, columns from 0 in code points; line 0 stands for
    no place in the program.
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
    """What was to be proved at a place of a program: one or more goals, as Lean prints them.

    `kind` is ``sorry`` or ``error``; lines and columns count as those of a `Message`. A process that ran the
    program's own code wrote it, so it counts for nothing.
    """

    kind: str
    goal: str
    line: int
    column: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Execution:
    """How a command ran in a box; without an argument, that of one that never ran.

    `signal` is the one the process died by; it or `exit_status` is a number unless the box failed or a limit
    came first. `limit` names what made the box end it, or what was exceeded by the end: ``wall``, ``cpu``,
    ``memory``, ``output``, ``processes`` or None. `wall_seconds` begin when the command does; `cpu_seconds`
    is user and system time of the whole tree, `peak_memory_kib` is as in `farm_workers.box.procfs.Usage`.
    `output_bytes` counts all that was written to both streams, `output_cut` says that not all of it was kept.
    `stdout` and `stderr` are empty in a report, whose answer has what they say. `box_error` says how the box
    failed, which says nothing about the command. `isolation` names the level that held it.
    """

    exit_status: int | None = None
    signal: int | None = None
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_kib: int = 0
    limit: str | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    output_bytes: int = 0
    output_cut: bool = False
    box_error: str | None = None
    isolation: str = "none"

    @property
    def is_undisturbed(self) -> bool:
        """Whether neither a failure of the box nor a limit kept the command from its own end."""
        return self.box_error is None and self.limit is None


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What Lean said: its messages in order, and what else came out on stdout, then on stderr, bounded.

    `reached_end` says that Lean read the program to its end.
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
    """The facts of one check, with no opinion.

    `way` is how Lean was run: ``forked``, ``snapshot`` or ``cold``, ``none`` where it was not.
    `environment_error` says how the farm itself failed, as the run's `box_error` does, `text_error` why Lean
    was not even run on such a text, and `text_place` where in the text that is. `hits` is what the policy
    found in the submission's own part, `refused` the hit for which Lean was not even run. `challenge_error`
    says what is wrong with the statement that was to be proved, whatever the proof.

    `tier` is the one that the check was judged under. `audit` is what was found of the compiled module, None
    where no answer came or none was asked for.

    `kernel_limit` says how the kernel ended without an answer: ``time``, ``memory`` or ``depth``; or how the
    audit did before the kernel was asked: ``audit_wall``, ``audit_cpu``, ``audit_memory`` or
    ``audit_depth``.
    `context_ends` is where the dataset's own context ends in the program, line and column, None without one:
    what Lean says above it is not about the submission. `kind` is the proof system that all this is about.
    `preamble` says which of several programs was judged, None where there is one. `goals` are what was to be
    proved at errors and sorries, None where they were not asked for, or could not be had.
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
    preamble: Preamble | None = None
    goals: tuple[Goal, ...] | None = None
    kind: Kind = Kind.LEAN
    context_ends: tuple[int, int] | None = None

    def is_of_context(self, message: Message) -> bool:
        """Whether a message is about the dataset's own context; one without a place is not."""
        if self.context_ends is None or message.line == 0:
            return False
        return (message.line, message.column) < self.context_ends

    @property
    def statement(self) -> str:
        """Whether what was proved was `COMPARED` with the line's statement, or is `UNCHECKED`."""
        return UNCHECKED if self.audit is None else self.audit.statement or UNCHECKED

    @property
    def trusts(self) -> tuple[str, ...]:
        """What a proof rests on besides the kernel, in words."""
        return () if self.audit is None else self.audit.trusts

    @property
    def rests_on_sorry_of(self) -> tuple[str, ...]:
        """The constants that the dataset admits and the proof rests on."""
        return () if self.audit is None else self.audit.rests_on_sorry_of
