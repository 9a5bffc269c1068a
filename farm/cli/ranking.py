"""The command that ranks runs: `farm leaderboard`, as a folder with a page, a JSON file and bundles."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from farm.cli.options import AsJson, print_json
from farm.connections import Connections
from farm.errors import UsageError

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.reports.leaderboard import Leaderboard, Proof
    from farm.store.queries import Queries, StoredRun


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the `farm` command."""
    app.command(epilog="Example: farm leaderboard k3m9 7xwp -o board --model A --model B")(leaderboard)


def leaderboard(
    run: Annotated[list[str], Argument(metavar="RUN", help="Ids of runs, or prefixes of them.")],
    folder: Annotated[
        Path, Option("--output", "-o", metavar="DIR", help="The folder to write, which must not be there.")
    ],
    model: Annotated[
        list[str] | None,
        Option(
            help="The name of a run's model, once for each run in their order; by default the names of its "
            "manifests.",
            show_default=False,
        ),
    ] = None,
    k: Annotated[
        int | None,
        Option(
            "-k",
            min=1,
            help="Rank by pass@k; by default k is what all runs have samples for.",
            show_default=False,
        ),
    ] = None,
    bundles: Annotated[
        bool, Option("--bundles", help="Write a bundle of a proof of each solved problem, and link to it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Rank runs by pass@k as a static page: one HTML file, leaderboard.json, and bundles of the proofs.

    The ranking is over the problems that all runs have.
    """
    from farm.cli import terminal
    from farm.reports.leaderboard import leaderboard as ranked

    _require_new(folder)
    queries = Connections.here().queries
    runs = [queries.run(each) for each in run]
    with terminal.busy("ranking"):
        board = ranked(queries, runs, _models(runs, model), k=k)
        written = _written(folder, queries, board, bundles=bundles)
    if as_json:
        print_json(**written.facts())
    terminal.say(f"Wrote the leaderboard to {folder / 'index.html'}")
    missing = sum(each.bundle is None for row in written.rows for each in row.proofs)
    if bundles and missing:
        terminal.say(f"{missing} solved problems have no proof that can be bundled; `farm bundle` says why")


def _require_new(folder: Path) -> None:
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"-o {folder}: it is there; name a folder that is not")
    if not folder.absolute().parent.is_dir():
        raise UsageError(
            f"-o {folder}: there is no folder {folder.absolute().parent}; make it, or name another"
        )


def _models(runs: Sequence[StoredRun], given: Sequence[str] | None) -> list[str]:
    from farm.reports.words import manifests

    if not given:
        return [manifests(each) or each.id for each in runs]
    if len(given) != len(runs):
        raise UsageError(
            f"--model is given {len(given)} times for {len(runs)} runs; give it once for each run"
        )
    return list(given)


def _written(folder: Path, queries: Queries, board: Leaderboard, *, bundles: bool) -> Leaderboard:
    """Write the folder, whole or not at all, and return the leaderboard with its links."""
    from farm.reports.board_page import board_page

    new = folder.with_name(f".farm-{secrets.token_hex(8)}.new")
    try:
        new.mkdir()
        if bundles:
            board = board.linked(_bundler(queries, new))
        facts = json.dumps(board.facts(), indent=2, ensure_ascii=False) + "\n"
        (new / "leaderboard.json").write_bytes(facts.encode("utf-8", "backslashreplace"))
        (new / "index.html").write_bytes(board_page(board).encode("utf-8", "backslashreplace"))
        new.rename(folder)
    except OSError as error:
        raise UsageError(f"-o {folder}: the folder cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return board


def _bundler(queries: Queries, folder: Path) -> Callable[[str, Proof], str | None]:
    """Return a function that writes the bundle of a proof below a folder, and returns its place there."""
    from farm.runs.bundle import Bundle

    def write(run: str, proof: Proof) -> str | None:
        place = f"bundles/{run}/{proof.manifest}-{proof.line}"
        line = queries.line(run, proof.manifest, proof.line)
        try:
            bundle = Bundle.of(line, queries.stated(run, proof.manifest, proof.line))
        except UsageError:
            return None  # a proof that comparator cannot check
        bundle.write(folder / place)
        return place

    return write
