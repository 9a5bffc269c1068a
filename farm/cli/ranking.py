"""The command that ranks runs on a page to publish: leaderboard."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from farm.cli.options import AsJson, print_json
from farm.connections import Connections
from farm.errors import UsageError
from farm.files import write_whole

# Slow imports stand in the commands that need them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.reports.leaderboard import Solved
    from farm.store.queries import Queries, StoredRun

_Runs = Annotated[list[str], Argument(metavar="RUN", help="Runs; MODEL=RUN names the model of one.")]
_Output = Annotated[Path, Option("--output", "-o", help="The folder to write; a new one, or an empty one.")]
_Title = Annotated[str, Option(help="The page's title.")]
_Bundles = Annotated[bool, Option("--bundles", help="Write a bundle of each solved problem's first proof.")]


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the `farm` command."""
    app.command(epilog="Example: farm leaderboard prover-a=k3m9 prover-b=7xwp -o board --bundles")(
        leaderboard
    )


def leaderboard(
    run: _Runs,
    output: _Output,
    title: _Title = "Leaderboard",
    bundles: _Bundles = False,
    as_json: AsJson = False,
) -> None:
    """Write a page that ranks runs by pass@1, with intervals, libraries and the problems that each solved.

    The folder has index.html, leaderboard.json and, with --bundles, a folder for each proof that says how to
    check it without the farm. Nothing on the page comes from elsewhere.
    """
    from farm.cli import terminal
    from farm.reports.leaderboard import facts, page, require_common, rows, solved_by
    from farm.reports.report import report

    _require_new(output)
    queries = Connections.here().queries
    models, runs = _named(run, queries)
    with terminal.busy("ranking"):
        found = report(queries, runs)
        require_common(found)
        solved = {each.id: list(solved_by(queries, each)) for each in runs}
    output.mkdir(exist_ok=True)
    if bundles:
        solved = {each.id: _bundled(queries, each.id, solved[each.id], output) for each in runs}
    judges = {each.id: queries.judged_by(each.id) for each in runs}
    made = rows(found, models, judges, solved)
    newest = max(each.created_at for each in runs)
    write_whole(output / "index.html", page(made, found, title=title, made_at=newest).encode())
    told = facts(made, found)
    write_whole(output / "leaderboard.json", (json.dumps(told, ensure_ascii=False, indent=1) + "\n").encode())
    if as_json:
        print_json(folder=str(output), **told)
    else:
        terminal.say(f"Wrote {output}: open its index.html")


def _require_new(output: Path) -> None:
    if not output.parent.is_dir():
        raise UsageError(f"-o {output}: there is no folder {output.parent}; make it first")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(f"-o {output}: it is there already; name a new folder, or an empty one")


def _named(given: Sequence[str], queries: Queries) -> tuple[dict[str, str], list[StoredRun]]:
    """Return the names of models by run, and the runs. A run without a name is called by its id."""
    models: dict[str, str] = {}
    runs: list[StoredRun] = []
    for each in given:
        model, equals, word = each.rpartition("=")
        found = queries.run(word)
        if equals and not model.strip():
            raise UsageError(f"{each}: there is no name before the =; write MODEL=RUN, or the run alone")
        runs.append(found)
        models[found.id] = model if equals else found.id
    return models, runs


def _bundled(queries: Queries, run: str, solved: Sequence[Solved], output: Path) -> list[Solved]:
    """Write the bundle of each proof that can have one, and return the problems with their folders."""
    from farm.runs.bundle import Bundle

    made = []
    for each in solved:
        manifest, line = each.place
        folder = Path("bundles", f"{run}-{manifest}-{line}")
        try:
            proof = Bundle.of(queries.line(run, manifest, line), queries.stated(run, manifest, line))
        except UsageError:  # it has no statement, or gives an answer, which the form cannot say
            made.append(each)
            continue
        (output / "bundles").mkdir(exist_ok=True)
        proof.write(output / folder, None)
        made.append(replace(each, bundle=folder.as_posix()))
    return made
