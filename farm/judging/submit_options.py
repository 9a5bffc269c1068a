"""Defines the options of a run, by which a submit assembles its lines and workers check them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from farm.asked import (
    BATCH,
    EVERYWHERE,
    NAME,
    RUN,
    SECONDS,
    WHETHER,
    Flag,
    Form,
    group,
    made,
    option,
    words,
)
from farm.assembly.program import AssemblyOptions
from farm.errors import UsageError
from farm.judging.assurance import Assurance
from farm.judging.states import Priority
from farm.judging.tiers import Tier
from farm.limits import CPU_PER_WALL, MOST_MEMORY_MIB, Limits, require_possible, seconds_of
from farm.task import UNAUDITED, Task, TaskFault

#: Treatments of lines without a generation.
NO_ANSWER = ("error", "reject")


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmitOptions:
    """How the lines of a run are assembled and checked; a line's own fields override some of them.

    Without `cpu_seconds` the limit of processor time follows each line's wall limit. With `share` equal
    checks share one verdict. Checks that have not begun `deadline_seconds` after the submit are cancelled;
    with `stop_on_first_proof` so are the unfinished lines of a group with a proved one. Lines without a
    generation are an error, or are rejected if `no_answer` is "reject". With `goals` checks also report the
    goals at errors and sorries; with `stop_at_error` they end at the first error that decides.
    `task` holds for lines that do not say otherwise.
    """

    assembly: AssemblyOptions = group(AssemblyOptions)
    environment: str = option(
        places=EVERYWHERE,
        form=NAME,
        default="`FARM_ENVIRONMENT`",
        meaning="the Lean environment; a line's own takes precedence",
        flag=Flag(takes=str | None, help="The Lean environment; a line's own takes precedence."),
        identity=True,
    )
    wall_seconds: float = option(
        30.0,
        name="timeout",
        places=EVERYWHERE,
        form=SECONDS,
        absent=30.0,
        meaning="time limit of a check in seconds; a line's own takes precedence",
        flag=Flag(help="Time limit of a check in seconds; a line's own takes precedence."),
        identity=True,
    )
    cpu_seconds: float | None = option(
        None,
        name="cpu",
        places=RUN | BATCH,
        form=Form(client="float", service="Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]"),
        default="twice the timeout",
        meaning="processor time limit of a check in seconds",
        flag=Flag(help="Processor time limit of a check in seconds; by default twice the timeout."),
        identity=True,
    )
    memory_mib: int = option(
        4096,
        places=RUN | BATCH,
        form=Form(client="int", service=f"Annotated[int, Field(ge=1, le={MOST_MEMORY_MIB})]"),
        default="`FARM_MEMORY_MIB`",
        meaning="memory limit of a check in MiB",
        flag=Flag(takes=int | None, help="Memory limit of a check in MiB."),
        identity=True,
    )
    assurance: Assurance = group(Assurance)
    share: bool = option(
        True,
        places=RUN | BATCH,
        form=WHETHER,
        absent=True,
        meaning="an item that equals one judged before gets that verdict",
        flag=Flag(help="Check equal programs once, also across runs."),
    )
    priority: Priority = option(
        Priority.BATCH,
        places=RUN | BATCH,
        form=words(*(each.name.lower() for each in Priority), alias="Priority"),
        absent="online",
        meaning="the class in the queue",
        reads=Priority.named,
        flag=Flag(
            takes=str,
            usual="batch",
            help="Priority class of the run: interactive, online or batch, in this order.",
        ),
    )
    deadline_seconds: float | None = option(
        None,
        places=RUN | BATCH,
        form=Form(client="", service="Annotated[float, Field(gt=0, le=1e8, allow_inf_nan=False)]"),
        meaning="seconds after which checks that have not begun are cancelled",
        flag=Flag(
            names=("--deadline",),
            takes=str | None,
            reads=partial(seconds_of, "--deadline"),
            help="Cancel lines that have not started after this time, such as 90s, 30m or 2h.",
        ),
    )
    stop_on_first_proof: bool = option(
        False,
        places=RUN | BATCH,
        form=WHETHER,
        absent=False,
        meaning="a proof of one item cancels the rest of its group",
        flag=Flag(
            names=("--stop-on-first-proof",),
            help="Cancel the rest of a group (or name) once one is proved.",
        ),
    )
    no_answer: str = option(
        "error",
        places=RUN,
        meaning="whether lines without a generation are an error or are rejected",
        flag=Flag(
            help="Lines whose generation is missing or null: error refuses the manifest, reject rejects them."
        ),
    )
    goals: bool = option(
        False,
        places=RUN | BATCH,
        form=WHETHER,
        absent=False,
        meaning="results list the goals at errors and sorries",
        flag=Flag(names=("--goals",), help="Store the goals at errors and sorries, for farm holes."),
        identity=True,
    )
    stop_at_error: bool = option(
        False,
        places=RUN | BATCH,
        form=WHETHER,
        absent=False,
        meaning="Lean is ended at the first error that decides, so failing answers cost less",
        flag=Flag(
            names=("--stop-at-error",),
            help="End Lean at the first error that decides: faster, with fewer messages.",
        ),
        identity=True,
    )
    task: Task = group(Task)

    def __post_init__(self) -> None:
        """Raise `UsageError` for an impossible limit, and for an unknown `no_answer`."""
        if self.no_answer not in NO_ANSWER:
            raise UsageError(f"--no-answer {self.no_answer}: choose one of {', '.join(NO_ANSWER)}")
        if self.assurance.tier == Tier.LEAN and (field_ := self.task.needs_audit) is not None:
            raise UsageError(f"{field_}: {UNAUDITED[0]}; {UNAUDITED[1]}")
        require_possible(
            wall_seconds=self.wall_seconds, memory_mib=self.memory_mib, cpu_seconds=self.cpu_seconds
        )

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> SubmitOptions:
        """Return the options that a command or request says by their names. Raises `UsageError`."""
        try:
            return made(cls, said)
        except TaskFault as fault:
            raise UsageError(str(fault)) from fault

    @property
    def columns(self) -> dict[str, object]:
        """The columns that all checks of the run share; JSON as text."""
        return {
            "goals": self.goals,
            "stop_at_error": self.stop_at_error,
            "tier": self.assurance.tier,
            "native": self.assurance.native,
            "axioms": json.dumps(list(self.assurance.axioms)),
            "policy": json.dumps(self.assurance.stored_policy),
        }

    @property
    def span_attributes(self) -> dict[str, object]:
        """Attributes of the span of a submit."""
        named = self.priority.name.lower()
        return {"environment": self.environment, "tier": self.assurance.tier, "priority": named}

    def stored(self, *, traceparent: str | None, **more: object) -> str:
        """Return the options of a run, its trace and `more` as JSON for the store."""
        traced = {} if traceparent is None else {"traceparent": traceparent}
        return json.dumps(asdict(self) | more | traced)

    def limits(self, timeout: float | None) -> Limits:
        """Return the limits of a line; `timeout` is the line's own wall limit in seconds, if it has one."""
        wall = timeout if timeout is not None else self.wall_seconds
        cpu = CPU_PER_WALL * wall if self.cpu_seconds is None else self.cpu_seconds
        return Limits(wall_seconds=wall, cpu_seconds=cpu, memory_mib=self.memory_mib)
