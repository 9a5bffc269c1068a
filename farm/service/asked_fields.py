"""The fields of a batch and of an item that are options.

`make settings` writes this file from the declarations (`farm.asked`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from farm.service.exact import AnswerForm, Group, Tasked, Timeout, Word

Profile = Literal["farm", "nemo-2025-11", "nemo-2025-08"]
Tier = Literal["kernel", "audit", "lean"]
Priority = Literal["interactive", "online", "batch"]
Kind = Literal["prove", "disprove", "either", "statement"]
Weaker = Literal[
    "audit", "lean", "unchecked", "sorry", "answer", "native", "forgeable", "unrebuilt", "partial", "disproof"
]


class BatchFields(Tasked):
    """The options of a batch's checks, and of how its results are shown."""

    profile: Annotated[Profile, Field(description="how answers become programs")] = "farm"
    environment: Annotated[
        Word | None, Field(description="the Lean environment; a line's own takes precedence")
    ] = None
    timeout: Annotated[
        Timeout, Field(description="time limit of a check in seconds; a line's own takes precedence")
    ] = 30.0
    cpu: Annotated[
        Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None,
        Field(description="processor time limit of a check in seconds"),
    ] = None
    memory_mib: Annotated[
        Annotated[int, Field(ge=1, le=1048576)] | None, Field(description="memory limit of a check in MiB")
    ] = None
    tier: Annotated[Tier, Field(description="how much a verdict trusts")] = "kernel"
    native: Annotated[bool, Field(description="a proof may rest on the compiler")] = False
    require_all_parts: Annotated[
        bool, Field(description="a proof has to prove every theorem that the statement leaves open")
    ] = False
    share: Annotated[bool, Field(description="an item that equals one judged before gets that verdict")] = (
        True
    )
    priority: Annotated[Priority, Field(description="the class in the queue")] = "online"
    deadline_seconds: Annotated[
        Annotated[float, Field(gt=0, le=1e8, allow_inf_nan=False)] | None,
        Field(description="seconds after which checks that have not begun are cancelled"),
    ] = None
    stop_on_first_proof: Annotated[
        bool, Field(description="a proof of one item cancels the rest of its group")
    ] = False
    goals: Annotated[bool, Field(description="results list the goals at errors and sorries")] = False
    stop_at_error: Annotated[
        bool, Field(description="Lean is ended at the first error that decides, so failing answers cost less")
    ] = False
    axioms: Annotated[
        list[Word] | None,
        Field(description="all axioms that a proof may rest on, in place of Lean's own three"),
    ] = None
    forbid: Annotated[
        list[Word] | None, Field(description="tactics and constants that a proof must not use")
    ] = None
    declarations: Annotated[
        bool | None,
        Field(description="results have a verdict for each part of the statement and each declaration"),
    ] = None
    permit_sorry: Annotated[
        bool | list[Word] | None,
        Field(description="declarations that may contain a sorry, true for any: such a proof is *partial*"),
    ] = None
    answers: Annotated[
        bool | None,
        Field(
            description="true demands values for the definitions that the statement leaves open, false forbids them"
        ),
    ] = None
    answer_must: Annotated[
        Literal["numeral", "numerals"] | AnswerForm | None,
        Field(description="the form of these values, such as a numeral"),
    ] = None
    expected_answer: Annotated[
        str | dict[Word, str] | None,
        Field(description="the right value as a Lean text, or the values by the names of the definitions"),
    ] = None
    task: Annotated[
        Kind | None,
        Field(
            description="the answer proves the statement, disproves it, or one of the two; or there is no answer"
        ),
    ] = None
    negates: Annotated[
        bool | Annotated[int, Field(strict=True, ge=1)] | None,
        Field(
            description="the statement is one that `farm submit --disprove --dry-run` wrote, and must state the negation of another"
        ),
    ] = None
    feedback: Annotated[bool, Field(description="results have a prompt to correct the answer")] = False
    accept: Annotated[
        Annotated[list[Weaker], Field(max_length=10)],
        Field(description="weaker proofs that are worth 1.0, too", default_factory=list),
    ]
    batch_name: Annotated[Group | None, Field(description="the batch's name on the page")] = None


class LineFields(Tasked):
    """The options that an item may set for itself."""

    environment: Annotated[
        Word | None, Field(description="the Lean environment; a line's own takes precedence")
    ] = None
    timeout: Annotated[
        Timeout | None, Field(description="time limit of a check in seconds; a line's own takes precedence")
    ] = None
    axioms: Annotated[
        list[Word] | None,
        Field(description="all axioms that a proof may rest on, in place of Lean's own three"),
    ] = None
    forbid: Annotated[
        list[Word] | None, Field(description="tactics and constants that a proof must not use")
    ] = None
    declarations: Annotated[
        bool | None,
        Field(description="results have a verdict for each part of the statement and each declaration"),
    ] = None
    permit_sorry: Annotated[
        bool | list[Word] | None,
        Field(description="declarations that may contain a sorry, true for any: such a proof is *partial*"),
    ] = None
    answers: Annotated[
        bool | None,
        Field(
            description="true demands values for the definitions that the statement leaves open, false forbids them"
        ),
    ] = None
    answer_must: Annotated[
        Literal["numeral", "numerals"] | AnswerForm | None,
        Field(description="the form of these values, such as a numeral"),
    ] = None
    expected_answer: Annotated[
        str | dict[Word, str] | None,
        Field(description="the right value as a Lean text, or the values by the names of the definitions"),
    ] = None
    task: Annotated[
        Kind | None,
        Field(
            description="the answer proves the statement, disproves it, or one of the two; or there is no answer"
        ),
    ] = None
    negates: Annotated[
        bool | Annotated[int, Field(strict=True, ge=1)] | None,
        Field(
            description="the statement is one that `farm submit --disprove --dry-run` wrote, and must state the negation of another"
        ),
    ] = None
