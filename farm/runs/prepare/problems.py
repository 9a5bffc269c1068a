"""Preparation step: whether an environment can give the assurance that a run requires."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farm.errors import UsageError
from farm.judging.advisories import advisories
from farm.judging.assurance import Assurance
from farm.judging.tiers import Tier
from farm.kinds import Kind
from farm.manifest.lines import printable
from farm.store.environments import ServedEnvironment

#: Longest part of a worker's reason that a message quotes, in characters.
_MOST_WORDS = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvironmentProblem:
    """A reason why lines cannot be checked in an environment, with a remedy."""

    words: str
    remedy: str

    def error(self) -> UsageError:
        """Return it as the error of a run whose own environment it concerns."""
        return UsageError(f"{self.words}; {self.remedy}")


def problem_of(
    name: str, known: Mapping[str, ServedEnvironment], assurance: Assurance
) -> EnvironmentProblem | None:
    """Return the problem with checks in the environment of this name, None without one."""
    if name not in known:
        words = f"no environment is called {printable(name)!r}"
        return EnvironmentProblem(words=words, remedy=_known_words(list(known)))
    return unfit(known[name], assurance)


def unfit(environment: ServedEnvironment, assurance: Assurance) -> EnvironmentProblem | None:
    """Return why an environment cannot give the assurance that a run asks for, None where it can."""
    if reason := " ".join(environment.unfit_words.split())[:_MOST_WORDS]:
        return EnvironmentProblem(
            words=f"the environment {environment.name!r} cannot be served: {reason}",
            remedy="mend that, and the worker serves it after its next examination",
        )
    if environment.kind not in set(Kind):
        return EnvironmentProblem(
            words=f"the environment {environment.name!r} is of the kind {printable(environment.kind)!r}, "
            "which this farm does not know",
            remedy="submit with the newer farm that its workers have",
        )
    if assurance.tier not in environment.tiers:
        had = [tier for tier in Tier if tier in environment.tiers]
        return EnvironmentProblem(
            words=f"the environment {environment.name!r} does not support the tier {assurance.tier}, only "
            f"{' and '.join(had) or 'none'}: {_WANTING[Tier(assurance.tier)]}",
            remedy=f"name another environment, or submit with --tier {had[0] if had else Tier.LEAN}",
        )
    if assurance.tier != Tier.KERNEL or environment.kind != Kind.LEAN:
        return None
    holes = advisories(environment.toolchain) or ()
    if holes and not assurance.accepts_advisories:
        ids = ", ".join(hole.id for hole in holes)
        return EnvironmentProblem(
            words=f"the kernel of Lean {environment.toolchain} has known holes ({ids})",
            remedy="use a newer Lean, or submit with --accept-advisories or --tier audit",
        )
    return None


#: The reason why an environment lacks a tier.
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
