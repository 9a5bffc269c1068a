"""The revise step: what becomes of a run after it was submitted, because a user says so: cancel, retry."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from farm.errors import UsageError
from farm.judging.assurance import Assurance
from farm.judging.states import Cancelled, Status
from farm.judging.tiers import Tier
from farm.runs.pick import Pick
from farm.runs.prepare.problems import unfit
from farm.store import pruning, retrying, waiting
from farm.store.environments import ServedEnvironment
from farm.store.transitions import Store

_ORDER = list(Tier)  # from the fewest that are believed to the most


@dataclass(frozen=True, kw_only=True, slots=True)
class Stronger:
    """A tier on which lines are to be judged anew, and the environments that there are."""

    assurance: Assurance
    known: Sequence[ServedEnvironment]

    def require_possible(self, asked: Collection[tuple[str, str]]) -> None:
        """Raise `UsageError`, with all that speaks against it, for these environments and tiers of before.

        A weaker tier is another run: whoever submits this one again would take its verdicts for the run's.
        """
        tier = self.assurance.tier
        places, before = {place for place, _ in asked}, {each for _, each in asked}
        if stronger := [
            each for each in Tier if each in before and _ORDER.index(each) < _ORDER.index(Tier(tier))
        ]:
            raise UsageError(
                f"--tier {tier}: lines of this run ask for the tier {' and '.join(stronger)}, which trusts "
                f"less; nothing was changed. Judge them on {tier} in a run of its own: "
                f"farm submit MANIFEST --tier {tier}"
            )
        problems = [problem for each in self.known if each.name in places if (problem := self._problem(each))]
        if problems:
            raise UsageError(f"--tier {tier}: {'; '.join(problems)}; nothing was changed")

    def _problem(self, environment: ServedEnvironment) -> str:
        problem = unfit(environment, self.assurance)
        return "" if problem is None else problem.words


def cancel(
    store: Store, run_id: str, *, lines: Sequence[int] | None = None, groups: Sequence[str] | None = None
) -> int:
    """Cancel what is unfinished of a run, and return how many lines that were; raises `ServerDown`.

    Of those lines, or of those groups, where they are named. What is queued will not begin; the workers that
    check the rest hear of it within a second. A check that lines of other runs wait for goes on.
    """
    statuses = (Status.QUEUED, Status.RUNNING)
    with store.transaction() as connection:
        cancelled = waiting.cancel(connection, run_id, Cancelled.USER, statuses, lines=lines, groups=groups)
        if cancelled and lines is None and groups is None:
            retrying.mark_cancelled(connection, run_id)
    return cancelled


def retry(
    store: Store,
    run_id: str,
    pick: Pick,
    *,
    tier: Stronger | None = None,
    wall_seconds: float | None = None,
    cpu_seconds: float | None = None,
    memory_mib: int | None = None,
) -> int:
    """Check the lines of a run anew that are picked; returns how many.

    Each gets a check of its own, with other limits, or on another tier, where they are given: the limit of
    processor time grows with that of time, unless it is given itself. What the old ones found stays in the
    store. Raises `ServerDown`, `UnknownRun` when the run was deleted, and `UsageError` where some of the
    lines cannot be had on the tier, and for a pick of all lines or of unfinished ones.
    """
    _require_finished(pick)
    picked = {kind: list(words) for kind, words in asdict(pick).items()}
    changes = retrying.Changes(
        None if tier is None else tier.assurance.tier, wall_seconds, cpu_seconds, memory_mib
    )
    with store.transaction() as connection:
        pruning.hold(connection, run_id)
        if tier is not None:
            tier.require_possible(retrying.environments_and_tiers(connection, run_id, picked))
        return retrying.retry(connection, run_id, picked, changes)


def _require_finished(pick: Pick) -> None:
    if pick.is_empty:
        raise UsageError(
            "name the lines to check again: --verdict, --reason or --status; nothing was changed"
        )
    if going := [each for each in pick.status if each in (Status.QUEUED, Status.RUNNING)]:
        raise UsageError(
            f"--status {going[0]}: such a line has no verdict yet, so it cannot be checked again; "
            "choose done or cancelled"
        )
