"""Report step: renders a leaderboard as one HTML page without network access or scripts. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from farm.reports import words
from farm.reports.leaderboard import Leaderboard
from farm.reports.rendering import rendered


def board_page(board: Leaderboard) -> str:
    """Return the page, the same for the same leaderboard; all foreign text in it is escaped."""
    return rendered("leaderboard.html", board=board, words=words, notes=list(board_notes(board)))


def board_notes(board: Leaderboard) -> Iterator[str]:
    """Yield what a reader needs to know before the ranking."""
    for row in board.rows:
        if row.pass_at.value is None:
            yield f"pass@{board.k} of run {row.run} is not known: lines without a verdict could change it."
        elif row.pass_at.problems < board.problems:
            over = words.whole(row.pass_at.problems)
            yield f"pass@{board.k} of run {row.run} is over the {over} problems with enough judged lines."
        if row.undecided:
            undecided = words.count(row.undecided, "problem")
            yield f"Run {row.run} has {undecided} without a proof, of which some lines have no verdict."
        if row.other_problems:
            others = words.count(row.other_problems, "problem")
            yield f"Run {row.run} has {others} that another run has not; the ranking leaves them out."
    libraries = {row.environments for row in board.rows}
    if len(libraries) > 1:
        yield "The runs were judged in different environments."
