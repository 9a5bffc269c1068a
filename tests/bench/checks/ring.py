"""Bench step: what everything is measured with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from farm_workers.bench.measure import Ask, asked
from farm_workers.box.isolation import Isolation
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import FORKED

from farm.judging.tiers import Tier
from tests.bench.checks import bare
from tests.bench.checks.turns import Crew

#: Who checks without the farm.
BARE = "bare"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ring:
    """The environment with its header, the checker, a thread for each check at once, and how many turns.

    `larger` is the same environment with a header of more declarations, if there is one. `say` is told what
    is under way.
    """

    environment: LeanEnvironment
    larger: LeanEnvironment | None
    checker: Checker
    isolation: Isolation
    home: Path
    crew: Crew
    rounds: int
    say: Callable[[str], None]

    @property
    def header(self) -> str:
        """The header of programs."""
        return self.environment.header

    def farm(self, tier: Tier = Tier.KERNEL, environment: LeanEnvironment | None = None) -> Sequence[Ask]:
        """Return what the farm's lanes do."""
        return [asked(self.checker, environment or self.environment, tier)] * self.crew.lanes

    @contextlib.contextmanager
    def beside_bare(self, *tiers: Tier) -> Iterator[Mapping[str, Sequence[Ask]]]:
        """Give bare resident LeanRunner, one for each lane, and the farm on these tiers, by name."""
        with contextlib.ExitStack() as kept:
            leans = [
                kept.enter_context(bare.resident(self.environment, self.header))
                for _ in range(self.crew.lanes)
            ]
            yield {BARE: [each.check for each in leans], **{tier.value: self.farm(tier) for tier in tiers}}

    @contextlib.contextmanager
    def leans(self) -> Iterator[LeanRunner]:
        """Give a Lean runner of their own to those who look at single processes."""
        leans = LeanRunner(self.isolation, way=FORKED, most_images=1)
        with contextlib.closing(leans):
            yield leans
