"""Report step: decides which problems pass@k is averaged over, and estimates it for one problem. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from farm.reports.pools import Samples
from farm.reports.statistics import pass_at_k


class ProblemKind(NamedTuple):
    """The numbers that pass@k of a problem depends on; problems with equal samples are of one kind."""

    judged: int
    proved: int
    unknown: int
    timeouts: int
    stopped: bool

    @classmethod
    def of(cls, samples: Samples) -> ProblemKind:
        """Return the kind of a problem with these samples."""
        return cls(samples.judged, samples.proved, samples.unknown, samples.timeouts, samples.stopped)

    @property
    def samples(self) -> int:
        """How many samples there are, judged or not."""
        return self.judged + self.unknown

    def always_passes(self, k: int) -> bool:
        """Whether any k samples contain a proof, whatever the unknown ones are."""
        return self.samples - self.proved < k

    def is_told(self, k: int) -> bool:
        """Whether pass@k of the problem is known or can be estimated.

        Where a proof stopped the rest, the judged samples are no fair draw: they end with a proof.
        """
        return self.always_passes(k) or (self.judged >= k and not self.stopped)

    def pass_at(self, k: int) -> float:
        """Return pass@k, if it is known."""
        return 1.0 if self.always_passes(k) else pass_at_k(self.judged, self.proved, k)


#: How many problems are of each kind, here and, where runs are compared, there.
Kinds = Mapping[tuple[ProblemKind, ...], int]


def counted(kinds: Kinds, k: int) -> Kinds:
    """Return the problems whose pass@k is averaged, none if their mean would mislead.

    These are all problems with k samples if pass@k of each is known. Otherwise they are those with k judged
    samples: of the others pass@k is known for solved ones only, which would be too good. If the first proof
    cancelled other samples, the result is empty: mostly problems without a proof would remain.
    """
    sampled = {sides: number for sides, number in kinds.items() if all(each.samples >= k for each in sides)}
    if all(each.is_told(k) for sides in sampled for each in sides):
        return sampled
    if any(each.stopped for sides in sampled for each in sides):
        return {}
    return {sides: number for sides, number in sampled.items() if all(each.judged >= k for each in sides)}
