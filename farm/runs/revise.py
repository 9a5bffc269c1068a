"""The revise step: what becomes of a run after it was submitted, because a user says so: cancel, retry."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import text

from farm.errors import UsageError
from farm.judging.assurance import Assurance
from farm.judging.states import Cancelled, Status
from farm.judging.tiers import Tier
from farm.runs.pick import Pick
from farm.runs.prepare.options import unfit
from farm.store import pruning, waiting
from farm.store.environments import ServedEnvironment
from farm.store.postgres import hashing
from farm.store.transitions import Store

_ORDER = list(Tier)  # from the fewest that are believed to the most

_CANCELLED = text("UPDATE runs SET cancelled_at = now() WHERE id = :run_id")
_GOES_ON = text("UPDATE runs SET cancelled_at = NULL, deadline_at = NULL WHERE id = :run_id")

# Of a check, all but this is kept; the new ones begin at the turn that their class has come to.
_KEPT = waiting.WORK.replace(" wall_seconds, cpu_seconds, memory_mib,", "").replace(" tier,", "")
_KEPT = _KEPT.replace(" policy,", "")

_CHOSEN = """
    run_id = :run_id AND CASE
        WHEN cancelled IS NOT NULL THEN 'cancelled' = ANY(:status)
        ELSE verdict = ANY(:verdict) OR reason = ANY(:reason)
            OR verdict IS NOT NULL AND 'done' = ANY(:status) END
"""
_ASKED = """
    SELECT DISTINCT environment, tier
    FROM jobs JOIN checks ON checks.id = check_id LEFT JOIN verdicts USING (check_id) WHERE {chosen}
"""

# Above the tier lean a rule can only report: no check there may carry one that rejects.
# Materialized: where the queue begins is asked once and not for every line. Each check is locked before its
# job, and in the order of their ids, as `farm.store.waiting` wants it.
_RETRY = """
    WITH chosen AS (
        SELECT run_id, manifest, line, check_id, nextval(pg_get_serial_sequence('checks', 'id')) AS new_id
        FROM checks JOIN jobs ON check_id = checks.id LEFT JOIN verdicts USING (check_id)
        WHERE {chosen}
        ORDER BY check_id FOR NO KEY UPDATE OF checks, jobs
    ), begun AS MATERIALIZED (
        SELECT environment, priority, coalesce((
            SELECT turn FROM checks
            WHERE status = 'queued' AND checks.environment = named.environment
              AND checks.priority = named.priority AND attempt = 0
            ORDER BY turn LIMIT 1), 0) AS turn
        FROM (
            SELECT DISTINCT environment, priority FROM checks JOIN chosen ON check_id = checks.id
        ) AS named
    ), made AS (
        INSERT INTO checks (id, status, turn, tier, policy, wall_seconds, cpu_seconds, memory_mib, {kept})
        SELECT new_id, 'queued', begun.turn + row_number() OVER (ORDER BY manifest, line) - 1,
               coalesce(:tier, tier),
               CASE coalesce(:tier, tier) WHEN 'lean' THEN policy ELSE (
                   SELECT coalesce(jsonb_object_agg(key, value), '{{}}') FROM jsonb_each(policy)
                   WHERE value <> '"reject"') END,
               coalesce(:wall, wall_seconds),
               coalesce(CAST(:cpu AS float8),
                        cpu_seconds * (CAST(:wall AS float8) / wall_seconds), cpu_seconds),
               coalesce(:memory_mib, memory_mib), {kept}
        FROM chosen JOIN checks ON check_id = checks.id JOIN begun USING (environment, priority)
    )
    UPDATE jobs SET check_id = new_id, shared = false, cancelled = NULL FROM chosen
    WHERE (jobs.run_id, jobs.manifest, jobs.line) = (chosen.run_id, chosen.manifest, chosen.line)
    RETURNING chosen.check_id
"""


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
            connection.execute(_CANCELLED, {"run_id": run_id})
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
    limits = {"wall": wall_seconds, "cpu": cpu_seconds, "memory_mib": memory_mib}
    words = {kind: list(chosen) for kind, chosen in asdict(pick).items()}
    values: dict[str, object] = {"run_id": run_id, **words, **limits}
    values["tier"] = None if tier is None else tier.assurance.tier
    with store.transaction() as connection:
        pruning.hold(connection, run_id)
        with hashing(connection):
            if tier is not None:
                asked = connection.execute(text(_ASKED.format(chosen=_CHOSEN)), values)
                tier.require_possible([(place, before) for place, before in asked])
            retried = text(_RETRY.format(kept=_KEPT, chosen=_CHOSEN))
            left = connection.scalars(retried, values).all()
        if left:
            waiting.leave_behind(connection, left)
            connection.execute(_GOES_ON, {"run_id": run_id})
    return len(left)


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
