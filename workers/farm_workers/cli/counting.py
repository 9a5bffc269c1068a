"""The command `farm tactics`: counts the tactics of a run's proofs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from farm.cli.options import AsJson, print_json
from farm.cli.reporting import Format, TableName, print_formatted, require_form
from farm.connections import Connections
from farm.exit_status import ExitStatus
from farm.settings import Settings

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.reports.tactics import TacticFigures
    from farm.store.queries import Queries
    from farm_workers.machine.counting import Counting

_Runs = Annotated[
    list[str] | None,
    Argument(metavar="[RUN]...", help="Ids of runs, or prefixes of them; the newest run by default."),
]
_Sample = Annotated[
    int | None,
    Option(min=1, help="Programs of each run to count, a random sample.", show_default=False),
]


def add_to(app: typer.Typer) -> None:
    """Add `farm tactics` to the `farm` command."""
    app.command("tactics", epilog="Example: farm tactics k3m9 7xwp --format latex --table tactics")(tactics)


def tactics(
    run: _Runs = None,
    sample: _Sample = None,
    form: Format = None,
    table: TableName = None,
    as_json: AsJson = False,
) -> None:
    """Count the tactics of the proofs of runs, which Lean reads again on this machine.

    The tables are tactics, with the numbers of each run, and words, with the tactics that it uses. The exit
    status is 3 when a proof could not be counted.
    """
    from farm.cli.report_tables import print_table
    from farm.reports.reading import require_distinct
    from farm.reports.tactics import tactic_tables
    from farm_workers.machine.counting import Counting
    from farm_workers.machine.opening import opened

    require_form(form, table, as_json=as_json)
    settings, queries = Settings.load(), Connections.here().queries
    runs = [queries.run(each) for each in run] if run else [queries.run(None)]
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
