"""Preparation step, what a run asks for, and which environments can give it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from farm.assembly.program import AssemblyOptions
from farm.errors import UsageError
from farm.judging.advisories import advisories
from farm.judging.assurance import Assurance
from farm.judging.states import Priority
from farm.judging.tiers import Tier
from farm.kinds import Kind
from farm.limits import CPU_PER_WALL, Limits, require_possible
from farm.manifest.lines import printable
from farm.store.environments import ServedEnvironment

#: Of the reasons of workers so many characters are shown.
_MOST_WORDS = 1000
#: What may become of lines without a generation.
NO_ANSWER = ("error", "reject")


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmitOptions:
    """How the lines of a run are assembled and checked, where a line does not say so itself.

    Without `cpu_seconds` the limit of processor time follows each line's wall limit. With `share` a line
    whose check is the same as one that was done already gets the verdict of that. What has not begun
    `deadline_seconds` after the submit is cancelled, and with `stop_on_first_proof` what is left of a group
    when one of it is proved. `no_answer` says what becomes of lines without a generation: they are an
    "error", or are judged, as "reject" says. With `goals` checks also tell the goals at errors and sorries.
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

    def __post_init__(self) -> None:
        """Raise `UsageError` for a limit that is none, and for an unknown `no_answer`."""
        if self.no_answer not in NO_ANSWER:
            raise UsageError(f"--no-answer {self.no_answer}: choose one of {', '.join(NO_ANSWER)}")
        require_possible(
            wall_seconds=self.wall_seconds, memory_mib=self.memory_mib, cpu_seconds=self.cpu_seconds
        )

    @property
    def columns(self) -> dict[str, object]:
        """What the store keeps with each check, the same for all of the run; JSON as text."""
        return {
            "goals": self.goals,
            "tier": self.assurance.tier,
            "native": self.assurance.native,
            "axioms": json.dumps(list(self.assurance.axioms)),
            "policy": json.dumps(self.assurance.stored_policy),
        }

    @property
    def span_attributes(self) -> dict[str, object]:
        """What a span tells of a run that is submitted with these."""
        named = self.priority.name.lower()
        return {"environment": self.environment, "tier": self.assurance.tier, "priority": named}

    def stored(self, *, traceparent: str | None, **more: object) -> str:
        """Return what the store keeps with a run, as JSON; no check and no other run depends on its trace."""
        traced = {} if traceparent is None else {"traceparent": traceparent}
        return json.dumps(asdict(self) | more | traced)

    def limits(self, timeout: float | None) -> Limits:
        """Return the limits of a line with this ``timeout`` of its own, in seconds, or with none."""
        wall = timeout if timeout is not None else self.wall_seconds
        cpu = CPU_PER_WALL * wall if self.cpu_seconds is None else self.cpu_seconds
        return Limits(wall_seconds=wall, cpu_seconds=cpu, memory_mib=self.memory_mib)


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Why lines cannot be checked in an environment, and what to do about it."""

    words: str
    remedy: str

    def error(self) -> UsageError:
        """Return it as the error of a run whose own environment it concerns."""
        return UsageError(f"{self.words}; {self.remedy}")


def problem_of(name: str, known: Mapping[str, ServedEnvironment], assurance: Assurance) -> Problem | None:
    """Return what speaks against checking in an environment of this name, None when nothing does."""
    if name not in known:
        words = f"no environment is called {printable(name)!r}"
        return Problem(words=words, remedy=_known_words(list(known)))
    return unfit(known[name], assurance)


def unfit(environment: ServedEnvironment, assurance: Assurance) -> Problem | None:
    """Return why an environment cannot give the assurance that a run asks for, None where it can."""
    if reason := " ".join(environment.unfit_words.split())[:_MOST_WORDS]:
        return Problem(
            words=f"the environment {environment.name!r} cannot be served: {reason}",
            remedy="mend that, and the worker serves it after its next examination",
        )
    if environment.kind not in set(Kind):
        return Problem(
            words=f"the environment {environment.name!r} is of the kind {printable(environment.kind)!r}, "
            "which this farm does not know",
            remedy="submit with the newer farm that its workers have",
        )
    if assurance.tier not in environment.tiers:
        had = [tier for tier in Tier if tier in environment.tiers]
        return Problem(
            words=f"the environment {environment.name!r} does not support the tier {assurance.tier}, only "
            f"{' and '.join(had) or 'none'}: {_WANTING[Tier(assurance.tier)]}",
            remedy=f"name another environment, or submit with --tier {had[0] if had else Tier.LEAN}",
        )
    if assurance.tier != Tier.KERNEL or environment.kind != Kind.LEAN:
        return None
    holes = advisories(environment.toolchain) or ()
    if holes and not assurance.accepts_advisories:
        ids = ", ".join(hole.id for hole in holes)
        return Problem(
            words=f"the kernel of Lean {environment.toolchain} has known holes ({ids})",
            remedy="use a newer Lean, or submit with --accept-advisories or --tier audit",
        )
    return None


#: What an environment lacks that cannot give a tier.
_WANTING = {
    Tier.KERNEL: "it has nothing to replay compiled modules through a kernel (checker in its table)",
    Tier.AUDIT: "its compiled modules cannot be audited",
    Tier.LEAN: "its workers do not serve it",
}


def _known_words(known: Sequence[str]) -> str:
    if not known:
        return "no worker has served any environment yet; start one: farm worker"
    return (
        f"there are: {', '.join(sorted(known))}; `farm doctor` says what is wrong with one of this machine, "
        "`farm environments declare` makes one known beforehand"
    )
