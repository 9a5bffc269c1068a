"""The command that hands a proof to others: bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from farm.cli.options import AsJson, print_json
from farm.connections import Connections


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the `farm` command."""
    app.command(epilog="Example: farm bundle k3m9 proof-12 --line 12")(bundle)


def bundle(
    run: Annotated[str, Argument(help="Id of a run, or a prefix of it.")],
    folder: Annotated[Path, Argument(help="The folder to write, which must not be there.")],
    line: Annotated[int, Option(min=1, help="The line of the manifest.")],
    manifest: Annotated[int, Option(min=0, help="The manifest's place in the run, from 0.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Write a proved line as files that others can check without the farm, with Lean's own comparator.

    The folder has the challenge, the solution, the allowed axioms, the verdict and a README.
    """
    from farm.cli import terminal
    from farm.runs.bundle import write_bundle

    queries = Connections.here().queries
    found = queries.run(run)
    judged, stated = queries.line(found.id, manifest, line), queries.stated(found.id, manifest, line)
    written = write_bundle(folder, judged, stated)
    if as_json:
        print_json(folder=str(folder), files=[each.name for each in written])
    else:
        terminal.say(f"Wrote {folder}: read its README.md")
