"""The counts of `farm report --tactics`: the tactics of the proofs of runs, which Lean reads again here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from farm.cli.options import print_json
from farm.cli.reporting import print_formatted, require_form
from farm.connections import Connections
from farm.exit_status import ExitStatus
from farm.settings import Settings

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.reports.tactics import TacticFigures
    from farm.store.queries import Queries
    from farm_workers.machine.counting import Counting


def tactics(
    run: Sequence[str] | None, *, sample: int | None, form: str | None, table: str | None, as_json: bool
) -> None:
    """Count the tactics of the proofs of runs. Exits with UNJUDGED when a proof could not be counted."""
    from farm.cli.report_tables import print_table
    from farm.reports.reading import require_distinct
    from farm.reports.tactics import tactic_tables
    from farm_workers.machine.counting import Counting
    from farm_workers.machine.opening import opened

    require_form(form, table, as_json=as_json)
    settings, queries = Settings.load(), Connections.here().queries
    runs = queries.chosen(run)
    require_distinct(runs)
    with opened(settings, concurrency=settings.concurrency) as machine:
        machine.installed.require_any()
        counting = Counting(
            checker=machine.checker, environment_of=machine.installed.lean, at_once=settings.concurrency
        )
        found = [_counted(queries, stored.id, counting, sample) for stored in runs]
    tables = list(tactic_tables(found))
    if as_json:
        print_json(runs=[asdict(each) for each in found])
    elif form is None:
        for each in tables:
            print_table(each)
    elif tables:
        print_formatted(tables, form, table)
    _say_not_counted(found)


def _counted(queries: Queries, run: str, counting: Counting, sample: int | None) -> TacticFigures:
    from farm.cli.terminal import trying
    from farm.reports.tactics import TacticFigures
    from farm.store.proofs import proved_checks, proved_programs

    checks = _drawn(proved_checks(queries.engine, run), sample)
    with trying(len(checks)) as done:
        return TacticFigures.of(run, counting.counted(proved_programs(queries.engine, checks), done))


def _drawn(checks: Mapping[int, int], sample: int | None) -> Mapping[int, int]:
    """Return so many checks, drawn by chance; the same ones each time."""
    from random import Random

    if sample is None or sample >= len(checks):
        return checks
    return {each: checks[each] for each in sorted(Random(0).sample(list(checks), sample))}  # noqa: S311


def _say_not_counted(found: Sequence[TacticFigures]) -> None:
    from farm.cli.terminal import count, say

    for each in found:
        for why, lines in each.not_counted.items():
            say(f"{each.run}: {count(lines, 'proved line')} not counted: {why}")
        if not each.proofs and not each.not_counted:
            say(f"{each.run} has no proved line")
    if any(each.not_counted for each in found):
        raise typer.Exit(ExitStatus.UNJUDGED)
