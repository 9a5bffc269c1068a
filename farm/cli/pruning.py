"""The command that deletes old runs: prune."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from farm.cli.options import AsJson, print_json
from farm.connections import Connections
from farm.errors import UsageError
from farm.limits import seconds_of

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from collections.abc import Sequence

    from farm.runs.prune import Pruned

#: At most this many runs are named.
_NAMED = 5

_WHY = {
    "unfinished": "unfinished",
    "recent": "judged, exported or cancelled since then",
    "unexported": "with verdicts that are not in the manifests",
    "in_use": "with items of a later batch, or in use at this moment",
}


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the `farm` command."""
    app.command(epilog="Example: farm prune --older-than 30d")(prune)


def prune(
    older_than: Annotated[
        str,
        Option(help="Delete runs to which nothing has happened for this time, such as 12h or 30d."),
    ],
    keep_verdicts: Annotated[
        bool,
        Option("--keep-verdicts", help="Delete runs only: equal proofs are still answered without Lean."),
    ] = False,
    unexported: Annotated[
        bool,
        Option("--unexported", help="Also delete runs whose verdicts were not written into their manifests."),
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Count the runs and lines that would go, and delete nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Delete finished runs that are old, and the programs and verdicts that only they needed."""
    from farm.cli import terminal
    from farm.runs import prune as pruning

    plan = pruning.PrunePlan(
        older_than_seconds=_seconds(older_than), keep_verdicts=keep_verdicts, unexported=unexported
    )
    store = Connections.here().store
    with terminal.busy("pruning"):
        found = pruning.look(store, plan) if dry_run else pruning.prune(store, plan)
    _say(found, dry_run=dry_run)
    if as_json:
        deleted = {} if dry_run else {"checks": found.checks, "programs": found.programs}
        print_json(dry_run=dry_run, runs=found.runs, lines=found.lines, **deleted, kept=found.kept)


def _seconds(words: str) -> float:
    # A number alone might be meant in days, and would delete nearly everything.
    if words[-1:].isdigit():
        raise UsageError(f"--older-than {words}: give the unit as well, such as {words}d or 12h")
    return seconds_of("--older-than", words)


def _say(found: Pruned, *, dry_run: bool) -> None:
    """Print the numbers of deleted rows, and the old runs that were kept."""
    from farm.cli import terminal

    words = f"{terminal.count(found.runs, 'run')} with {terminal.count(found.lines, 'line')}"
    if dry_run:
        terminal.say(f"Would delete {words}, and the checks that only they needed; nothing was deleted")
    else:
        checks = f"{terminal.count(found.checks, 'check')} and {terminal.count(found.programs, 'program')}"
        terminal.say(f"Deleted {words}, {checks}")
    for reason, runs in found.kept.items():
        terminal.say(f"Kept {terminal.count(len(runs), 'old run')} {_WHY[reason]}: {_some(runs)}")
    if "unexported" in found.kept:
        terminal.say("Write their verdicts with farm export RUN, or delete them with --unexported")


def _some(runs: Sequence[str]) -> str:
    more = len(runs) - _NAMED
    return ", ".join(runs[:_NAMED]) + (f" and {more} more" if more > 0 else "")
