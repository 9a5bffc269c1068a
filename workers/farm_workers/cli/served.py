"""Known programs through the whole farm: submitted, queued, and judged by whichever worker takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from farm.api import Farm, Verdict
from farm.connections import Connections
from farm.errors import FarmError
from farm.judging.assurance import Assurance
from farm.judging.tiers import Tier
from farm_workers.checking.canary import ERROR, OTHER, PROVED, REPLAYED, SORRY, LeanCanary
from farm_workers.lean.way import FIRST_LOAD

#: These distinguish the verdicts; a starting worker has already judged the other canaries.
_ASKED = (PROVED, ERROR, SORRY)
_COMPARED = (REPLAYED, OTHER)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedAnswer:
    """The verdict of the farm's workers on a known program."""

    canary: LeanCanary
    verdict: Verdict

    @property
    def is_right(self) -> bool:
        """Whether it came out as it must, and was compared with its statement where it has one."""
        compared = not self.canary.statement or self.verdict.statement == "compared"
        expected = {self.canary.expected, *self.canary.also}
        return self.verdict.reason in expected and (compared or not self.verdict.proved)

    @property
    def words(self) -> str:
        """The program's name and verdict, in a sentence."""
        found = self.verdict
        return f"{self.canary.name} came out as {found.reason or found.status}: {found.detail}"


def asked(farm: Farm, environment: str, *, header: str, seconds: float) -> list[ServedAnswer]:
    """Have the workers of an environment judge the known programs, and return their verdicts.

    Verdicts of earlier programs are not shared. Raises `FarmError` when no worker judges them within
    `seconds`, and `UsageError` for an environment that is not known.
    """
    tier = _tier(environment)
    canaries = _ASKED if tier == Tier.LEAN else (*_ASKED, *_COMPARED)
    options = replace(
        farm.options_for(environment=environment, timeout=FIRST_LOAD.wall_seconds, priority="interactive"),
        assurance=Assurance(tier=tier, accepts_advisories=True),
        share=False,
    )
    verdicts = farm.check_all(list(_items(canaries, header)), options, deadline=seconds)
    if any(each.verdict is None for each in verdicts):
        raise FarmError(
            f"no worker of {environment} judged {len(canaries)} known programs within {seconds:g} s; "
            "see who serves it, and that worker's log: farm status --workers"
        )
    return [ServedAnswer(canary=each, verdict=found) for each, found in zip(canaries, verdicts, strict=True)]


def _tier(environment: str) -> Tier:
    """Return the tier that believes least of those that can be had there."""
    connections = Connections.here()
    try:
        served = {each.name: each.tiers for each in connections.environments()}
    finally:
        connections.close()
    return next((tier for tier in Tier if tier in served.get(environment, Tier)), Tier.KERNEL)


def _items(canaries: Sequence[LeanCanary], header: str) -> Iterator[dict[str, object]]:
    for canary in canaries:
        stated = {"formal_statement": canary.statement, "header": header} if canary.statement else {}
        yield {"name": canary.name, "program": header + canary.body, **stated}
