"""Turns of tenants: in each queue a worker gives one tenant after the other its checks; pure.

A tenant is an API key, or a database login of `farm submit`. However many runs a tenant has, it gets as many
checks as another one, or `weight` times as many (deficit round robin: Shreedhar and Varghese, SIGCOMM 1995).
Each worker goes round by itself: workers share no counters, and a claim costs the same for any number of
tenants, because the index of the queue leads from one tenant to the next.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

#: Numbers of tenants are bigint; turns too, and none is below 0.
FIRST, LAST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a queue: its tenants from `first` to `last`, of the first one only turns from `turn` on."""

    first: int = FIRST
    turn: int = 0
    last: int = LAST

    def parts(self, turns: Mapping[int, int]) -> list[Span]:
        """Return the parts of the span, where some of its tenants have no checks before these turns."""
        parts, first = [], self.first
        for tenant in sorted(each for each in turns if self.first <= each <= self.last):
            parts += [Span(first, 0, tenant - 1)] if first < tenant else []
            parts.append(Span(tenant, turns[tenant], tenant))
            first = tenant + 1
        return [*parts, Span(first, 0, self.last)] if first <= self.last else parts


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """A claimed check: its tenant with its weight; `in_order` if no check before it was passed over."""

    tenant: int
    weight: int
    in_order: bool = True


class Round:
    """One worker's round through the tenants of one queue."""

    def __init__(self) -> None:
        self._tenant: int | None = None
        self._left = 0

    def spans(self, turn: int = 0) -> list[Span]:
        """Return the whole queue, beginning with the tenant whose turn it is.

        Of the tenant that was served last only turns from `turn` on are included.
        """
        if self._tenant is None:
            return [Span()]
        own, others = [Span(self._tenant, turn, self._tenant)], []
        if self._tenant < LAST:
            others.append(Span(first=self._tenant + 1))
        if self._tenant > FIRST:
            others.append(Span(last=self._tenant - 1))
        return own + others if self._left > 0 else others + own

    def took(self, taken: Collection[Taken], most: int) -> None:
        """Note the checks of one claim of at most `most`, in their order.

        A tenant keeps its turn until it got `weight` times as many. One whose check was passed over, because
        it needs another image, comes next.
        """
        in_order = [each for each in taken if each.in_order]
        if not in_order:
            return
        last = in_order[-1]
        if last.tenant != self._tenant or self._left <= 0:
            self._left = last.weight * most
        self._tenant = last.tenant
        self._left -= sum(each.tenant == last.tenant for each in in_order)
