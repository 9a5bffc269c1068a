"""The leaderboard of `farm report --leaderboard`: a folder with a page, a JSON file and bundles."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from farm.cli.options import print_json
from farm.connections import Connections
from farm.errors import UsageError

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.reports.leaderboard import Leaderboard, Proof
    from farm.store.queries import Queries, StoredRun


def leaderboard(
    run: Sequence[str] | None,
    folder: Path,
    *,
    model: Sequence[str] | None,
    k: int | None,
    bundles: bool,
    as_json: bool,
) -> None:
    """Rank runs by pass@k, over the problems that all of them have, and write the folder."""
    from farm.cli import terminal
    from farm.reports.leaderboard import leaderboard as ranked

    _require_new(folder)
    queries = Connections.here().queries
    runs = queries.chosen(run)
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
        raise UsageError(f"--leaderboard {folder}: it is there; name a folder that is not")
    if not folder.absolute().parent.is_dir():
        raise UsageError(
            f"--leaderboard {folder}: there is no folder {folder.absolute().parent}; make it, or name another"
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
        raise UsageError(f"--leaderboard {folder}: the folder cannot be written: {error.strerror}") from error
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
