"""The types of the options of items and calls.

`make settings` writes this file from the declarations (`farm.asked`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

Profile = Literal["farm", "nemo-2025-11", "nemo-2025-08"]
Tier = Literal["kernel", "audit", "lean"]
Priority = Literal["interactive", "online", "batch"]
Kind = Literal["prove", "disprove", "either", "statement"]
Weaker = Literal[
    "audit", "lean", "unchecked", "sorry", "answer", "native", "forgeable", "unrebuilt", "partial", "disproof"
]


class AnswerForm(TypedDict, total=False):
    """The form that an answer must have: numbers, and no use of the constants in `without`."""

    form: Literal["numeral", "numerals"]
    without: Sequence[str]


class TaskFields(TypedDict, total=False):
    """What a proof has to show beyond the usual."""

    #: All axioms that a proof may rest on, in place of Lean's own three.
    axioms: Sequence[str]
    #: Tactics and constants that a proof must not use.
    forbid: Sequence[str]
    #: Results have a verdict for each part of the statement and each declaration.
    declarations: bool
    #: Declarations that may contain a sorry, true for any: such a proof is *partial*.
    permit_sorry: bool | Sequence[str]
    #: True demands values for the definitions that the statement leaves open, false forbids them.
    answers: bool
    #: The form of these values, such as a numeral.
    answer_must: Literal["numeral", "numerals"] | AnswerForm
    #: The right value as a Lean text, or the values by the names of the definitions.
    expected_answer: str | Mapping[str, str]
    #: The answer proves the statement, disproves it, or one of the two; or there is no answer.
    task: Kind
    #: The statement is one that `farm submit --disprove --dry-run` wrote, and must state the negation of
    #: another.
    negates: bool | int


class LineFields(TaskFields, total=False):
    """The options that an item may set for itself."""

    #: The Lean environment; a line's own takes precedence.
    environment: str
    #: Time limit of a check in seconds; a line's own takes precedence.
    timeout: float


class Options(TaskFields, total=False):
    """The options of a call's checks; an absent option has the service's default."""

    #: How answers become programs.
    profile: Profile
    #: The Lean environment; a line's own takes precedence.
    environment: str
    #: Time limit of a check in seconds; a line's own takes precedence.
    timeout: float
    #: Processor time limit of a check in seconds.
    cpu: float
    #: Memory limit of a check in MiB.
    memory_mib: int
    #: How much a verdict trusts.
    tier: Tier
    #: A proof may rest on the compiler.
    native: bool
    #: A proof has to prove every theorem that the statement leaves open.
    require_all_parts: bool
    #: An item that equals one judged before gets that verdict.
    share: bool
    #: The class in the queue.
    priority: Priority
    #: A proof of one item cancels the rest of its group.
    stop_on_first_proof: bool
    #: Results list the goals at errors and sorries.
    goals: bool
    #: Lean is ended at the first error that decides, so failing answers cost less.
    stop_at_error: bool
    #: Results have a prompt to correct the answer.
    feedback: bool
    #: Weaker proofs that are worth 1.0, too.
    accept: Sequence[Weaker]
    #: The batch's name on the page.
    batch_name: str
