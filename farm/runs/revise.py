"""The revise step: a user changes a submitted run: cancel, retry."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from farm.errors import UsageError
from farm.judging.assurance import Assurance
from farm.judging.states import CancelReason, Status
from farm.judging.tiers import Tier
from farm.runs.pick import Pick
from farm.runs.prepare.problems import unfit
from farm.store import pruning, retrying, waiting
from farm.store.environments import ServedEnvironment
from farm.store.transitions import Store

_ORDER = list(Tier)  # from the fewest that are believed to the most


@dataclass(frozen=True, kw_only=True, slots=True)
class Stronger:
    """The tier of a retry, and the known environments."""

    assurance: Assurance
    known: Sequence[ServedEnvironment]

    def require_possible(self, asked: Collection[tuple[str, str]]) -> None:
        """Raise `UsageError`, with every problem, for lines with these environments and tiers.

        A weaker tier needs another run: a second submit of this run would return its verdicts as the run's.
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
    """Cancel the unfinished lines of a run, and return their number; raises `ServerDown`.

    With ``lines`` or ``groups`` only those. Queued checks will not begin; the workers of running ones are
    notified within a second. A check that lines of other runs wait for continues.
    """
    statuses = (Status.QUEUED, Status.RUNNING)
    with store.transaction() as connection:
        cancelled = waiting.cancel(
            connection, run_id, CancelReason.USER, statuses, lines=lines, groups=groups
        )
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
    """Check the picked lines of a run again; returns their number.

    Each gets a check of its own, with the given limits and tier: the limit of processor time grows with that
    of time, unless it is given itself. The old verdicts stay in the store. Raises `ServerDown`, `UnknownRun`
    for a deleted run, and `UsageError` where an environment does not support the tier, and for a pick of all
    lines or of unfinished ones.
    """
    _require_finished(pick)
    picked = {kind: list(words) for kind, words in asdict(pick).items()}
    changes = retrying.CheckChanges(
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
