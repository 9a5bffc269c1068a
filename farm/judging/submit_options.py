"""Defines the options of a run, by which a submit assembles its lines and workers check them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from farm.assembly.program import AssemblyOptions
from farm.errors import UsageError
from farm.judging.assurance import Assurance
from farm.judging.states import Priority
from farm.judging.tiers import Tier
from farm.limits import CPU_PER_WALL, Limits, require_possible
from farm.task import UNAUDITED, Task

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

    assembly: AssemblyOptions
    environment: str
    wall_seconds: float = 30.0
    cpu_seconds: float | None = None
    memory_mib: int = 4096
    assurance: Assurance = field(default_factory=Assurance)
    share: bool = True
    priority: Priority = Priority.BATCH
    deadline_seconds: float | None = None
    stop_on_first_proof: bool = False
    no_answer: str = "error"
    goals: bool = False
    stop_at_error: bool = False
    task: Task = field(default_factory=Task)

    def __post_init__(self) -> None:
        """Raise `UsageError` for an impossible limit, and for an unknown `no_answer`."""
        if self.no_answer not in NO_ANSWER:
            raise UsageError(f"--no-answer {self.no_answer}: choose one of {', '.join(NO_ANSWER)}")
        if self.assurance.tier == Tier.LEAN and (field_ := self.task.needs_audit) is not None:
            raise UsageError(f"{field_}: {UNAUDITED[0]}; {UNAUDITED[1]}")
        require_possible(
            wall_seconds=self.wall_seconds, memory_mib=self.memory_mib, cpu_seconds=self.cpu_seconds
        )

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
