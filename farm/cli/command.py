"""The `farm` command: registers all its commands, and turns errors into messages and exit statuses."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Annotated

import typer
from typer import Option

from farm import log, tracing
from farm.cli import (
    filling,
    keys,
    metrics,
    operating,
    proving,
    pruning,
    revising,
    roles,
    serving,
    show,
    submitting,
    watching,
)
from farm.cli.help import CommandGroup
from farm.errors import FarmError, RoleRefused
from farm.exit_status import ExitStatus
from farm.version import farm_version

app = typer.Typer(
    name="farm",
    cls=CommandGroup,
    help="Judge machine-written Lean 4 proofs: manifests in, honest verdicts out.",
    epilog="Example: farm submit results/*.jsonl\n\n"
    "Exit status: " + "; ".join(f"{each.value} {each.meaning}" for each in ExitStatus) + ".",
    no_args_is_help=True,
    # Tables of rich cut the names of options where a terminal has 80 columns; click's own help wraps.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"farm {farm_version()}")
        raise typer.Exit


_MODULES = (
    *(submitting, show, watching, revising, pruning, proving),
    filling,
    *(serving, operating, keys, metrics),
)
for _module in _MODULES:
    _module.add_to(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit status."""
    for point in entry_points(group="farm.commands"):
        join: Callable[[typer.Typer], None] = point.load()
        join(app)
    run(app, "farm", arguments)


def run(app: typer.Typer, name: str, arguments: Sequence[str] | None = None) -> None:
    """Run a command line; an error that the farm raises on purpose is one line and an exit status."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name=name)
    except FarmError as error:
        words = str(error)
        if isinstance(error, RoleRefused):
            words += roles.remedy(error, sys.argv[1:] if arguments is None else arguments)
        if log.is_json():
            log.logger("farm").error("%s", words)
        else:
            typer.echo(f"farm: {words}", err=True)
        raise SystemExit(error.exit_status) from error
    except Exception as error:  # the process edge: an unforeseen error is the farm's own, and says so
        if log.is_json():
            log.logger("farm").exception("internal error; please report it with its traceback")
        else:
            traceback.print_exc()
            typer.echo("farm: internal error; please report it with the lines above", err=True)
        raise SystemExit(ExitStatus.FARM_FAILED) from error
    finally:
        tracing.flush()
