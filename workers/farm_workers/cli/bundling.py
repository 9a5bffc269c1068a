"""The command that hands a proof to others: bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from farm.cli.options import AsJson, print_json
from farm.connections import Connections
from farm.errors import FarmError
from farm.exit_status import ExitStatus
from farm.settings import Settings

# Slow imports stand in the commands that need them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.runs.bundle import Bundle, SealedModule


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the `farm` command."""
    app.command(epilog="Example: farm bundle k3m9 proof-12 --line 12")(bundle)


def bundle(
    run: Annotated[str, Argument(help="Id of a run, or a prefix of it.")],
    folder: Annotated[Path, Argument(help="The folder to write, which must not be there.")],
    line: Annotated[int, Option(min=1, help="The line of the manifest.")],
    manifest: Annotated[int, Option(min=0, help="The manifest's place in the run, from 0.")] = 0,
    with_module: Annotated[
        bool,
        Option(
            "--with-module",
            help="Make the sealed module again, for other kernels; needs the line's environment here.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a proved line as files that others can check without the farm, with Lean's own comparator.

    The folder has the challenge, the solution, the allowed axioms, the verdict and a README. The exit status
    is 3 if the module cannot be had; the other files are written all the same.
    """
    from farm.cli import terminal
    from farm.runs.bundle import Bundle

    queries = Connections.here().queries
    found = queries.run(run)
    proof = Bundle.of(queries.line(found.id, manifest, line), queries.stated(found.id, manifest, line))
    module, problem = _module(proof, folder) if with_module else (None, "")
    written = proof.write(folder, module)
    if as_json:
        print_json(folder=str(folder), files=[each.name for each in written], problem=problem or None)
    else:
        terminal.say(f"Wrote {folder}: read its README.md")
    if problem:
        terminal.say(f"The module is not in it: {problem}")
        raise typer.Exit(ExitStatus.UNJUDGED)


def _module(proof: Bundle, folder: Path) -> tuple[SealedModule | None, str]:
    """Return the sealed module of a bundle, or the reason for its absence; neither for an old folder."""
    from farm_workers.machine.opening import opened
    from farm_workers.machine.resealing import resealed

    if folder.exists():
        return None, ""  # writing says so
    try:
        with opened(Settings.load()) as machine:
            return resealed(machine, proof), ""
    except FarmError as error:
        return None, str(error)
