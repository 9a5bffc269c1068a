"""The prune step: deletes old finished runs, and the checks and texts that only they referred to.

A run is deleted first, in one transaction with its manifests and keys, so that no query finds it any more.
Its lines follow, then checks that no line waits for, in many short transactions. If a prune is killed, the
next one continues; no query shows a half-deleted run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from farm.store import pruning
from farm.store.pruning import OldRun
from farm.store.transitions import Store

#: Rows that one transaction deletes: it takes a tenth of a second.
_LINES, _CHECKS = 5000, 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class PrunePlan:
    """Which runs to delete: those without a change for `older_than_seconds`.

    With `keep_verdicts` checks and verdicts stay, and still answer equal proofs without Lean. Runs that were
    not exported stay, except with `unexported`.
    """

    older_than_seconds: float
    keep_verdicts: bool = False
    unexported: bool = False


@dataclass(kw_only=True, slots=True)
class Pruned:
    """The numbers of deleted rows, and the old runs that stay, by reason."""

    runs: int = 0
    lines: int = 0
    checks: int = 0
    programs: int = 0
    kept: Mapping[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def prune(store: Store, plan: PrunePlan) -> Pruned:
    """Delete according to the plan, and return the numbers of deleted rows.

    Safe at any time, also beside another prune. Raises `ServerDown`; the next prune continues then.
    """
    found = Pruned()
    before = pruning.moment(store.engine, seconds_ago=plan.older_than_seconds)
    for run_id in _left_over(store):
        _delete_lines(store, run_id, found)
    for runs in pruning.old_runs(store.engine, before):
        for group in _groups(_chosen(runs, plan, found)):
            _delete(store, group, found)
    for check_ids in _checks(store, plan, before):
        _delete_checks(store, check_ids, found)
    return found


def look(store: Store, plan: PrunePlan) -> Pruned:
    """Return which runs a prune would delete, with how many lines; raises `ServerDown`."""
    found = Pruned()
    before = pruning.moment(store.engine, seconds_ago=plan.older_than_seconds)
    for runs in pruning.old_runs(store.engine, before):
        for run in _chosen(runs, plan, found):
            found.runs += 1
            found.lines += run.lines
    return found


def _chosen(runs: Sequence[OldRun], plan: PrunePlan, found: Pruned) -> Iterator[OldRun]:
    """Yield the runs that may go, and note why the others stay."""
    for run in runs:
        if run.reason is None or (run.reason == "unexported" and plan.unexported):
            yield run
        else:
            found.kept[run.reason].append(run.id)


def _groups(runs: Iterator[OldRun]) -> Iterator[list[OldRun]]:
    """Group runs up to the number of lines that one transaction deletes; a longer run is alone."""
    group: list[OldRun] = []
    lines = 0
    for run in runs:
        if group and lines + run.lines > _LINES:
            yield group
            group, lines = [], 0
        group.append(run)
        lines += run.lines
    if group:
        yield group


def _delete(store: Store, runs: Sequence[OldRun], found: Pruned) -> None:
    lines = sum(run.lines for run in runs)
    with store.transaction() as connection:
        pruning.be_short(connection)
        gone = pruning.delete_runs(connection, runs)
        if gone and lines <= _LINES:
            found.lines += pruning.delete_lines(connection, gone)
    found.runs += len(gone)
    if left := [run.id for run in runs if run.id not in gone]:
        found.kept["in_use"] += left
    if lines > _LINES:
        for run_id in gone:
            _delete_lines(store, run_id, found)


def _left_over(store: Store) -> list[str]:
    with store.transaction() as connection:
        return pruning.left_over(connection)


def _delete_lines(store: Store, run_id: str, found: Pruned) -> None:
    """Delete the lines of a deleted run, some at a time."""
    last: tuple[int, int] | None = (-1, 0)
    while last is not None:
        with store.transaction() as connection:
            pruning.be_short(connection)
            lines, last = pruning.delete_some_lines(connection, run_id, last, most=_LINES)
            found.lines += lines
            if last is None:
                pruning.forget(connection, [run_id])


def _checks(store: Store, plan: PrunePlan, before: datetime) -> Iterator[str]:
    """Yield the checks that may go, as many as one transaction deletes."""
    yield from pruning.cancelled_checks(store.engine, step=_CHECKS)
    if not plan.keep_verdicts:
        yield from pruning.unreferred_checks(store.engine, before, step=_CHECKS)


def _delete_checks(store: Store, check_ids: str, found: Pruned) -> None:
    with store.transaction() as connection:
        pruning.be_short(connection)
        deleted = pruning.delete_checks(connection, check_ids)
    found.checks += deleted.checks
    found.programs += deleted.programs
