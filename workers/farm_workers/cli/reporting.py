"""The command `farm report`: verdicts of runs, a leaderboard, or the tactics of their proofs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from farm.cli.options import AsJson
from farm.errors import UsageError

_Runs = Annotated[
    list[str] | None,
    Argument(metavar="[RUN]...", help="Ids of runs, or prefixes of them; the newest run by default."),
]
_By = Annotated[
    str | None,
    Option(
        help="Split by this field of the manifests, such as difficulty, or by error_kind.", show_default=False
    ),
]
_Against = Annotated[
    str | None, Option(metavar="RUN", help="Compare with this run, problem by problem.", show_default=False)
]
_Html = Annotated[
    Path | None, Option("--html", help="Write the report to this file as one HTML page.", show_default=False)
]
_Format = Annotated[
    str | None,
    Option(
        "--format",
        help="Print the tables as csv (with plain numbers), markdown or latex (with booktabs).",
        show_default=False,
    ),
]
_TableName = Annotated[
    str | None,
    Option("--table", help="With --format: print this table alone.", show_default=False),
]
_Board = Annotated[
    Path | None,
    Option(
        "--leaderboard",
        metavar="DIR",
        help="Rank the runs by pass@k, over the problems that all have, as a static page in this new folder, "
        "with leaderboard.json.",
        show_default=False,
    ),
]
_Models = Annotated[
    list[str] | None,
    Option(
        help="With --leaderboard: the name of a run's model, once for each run in their order; by default "
        "the names of its manifests.",
        show_default=False,
    ),
]
_K = Annotated[
    int | None,
    Option(
        "-k",
        min=1,
        help="With --leaderboard: rank by pass@k; by default k is what all runs have samples for.",
        show_default=False,
    ),
]
_Bundles = Annotated[
    bool,
    Option(
        "--bundles",
        help="With --leaderboard: write a bundle of a proof of each solved problem, and link to it.",
    ),
]
_Tactics = Annotated[
    bool,
    Option(
        "--tactics", help="Count the tactics of the proofs instead, which Lean reads again on this machine."
    ),
]
_Sample = Annotated[
    int | None,
    Option(min=1, help="With --tactics: programs of each run to count, a random sample.", show_default=False),
]


def add_to(app: typer.Typer) -> None:
    """Add `farm report` to the `farm` command."""
    example = "Example: farm report k3m9 --by difficulty --against 7xwp --html report.html"
    app.command("report", epilog=example)(report)


def report(
    run: _Runs = None,
    by: _By = None,
    against: _Against = None,
    html: _Html = None,
    form: _Format = None,
    table: _TableName = None,
    leaderboard: _Board = None,
    model: _Models = None,
    k: _K = None,
    bundles: _Bundles = False,
    tactics: _Tactics = False,
    sample: _Sample = None,
    as_json: AsJson = False,
) -> None:
    """Report on runs: verdicts, pass@k, limits, cost; several runs together and side by side.

    The tables of --tactics are tactics, with the numbers of each run, and words, with the tactics that it
    uses; the exit status is then 3 when a proof could not be counted.
    """
    _require_fit(
        {"--leaderboard": leaderboard is not None, "--tactics": tactics},
        {
            "": {"--by": by, "--against": against, "--html": html},
            "--leaderboard": {"--model": model, "-k": k, "--bundles": bundles},
            "--tactics": {"--sample": sample},
        },
    )
    if leaderboard is not None:
        if form is not None or table is not None:
            raise UsageError("--leaderboard writes a page, and no tables; leave out --format and --table")
        from farm.cli import ranking

        ranking.leaderboard(run, leaderboard, model=model, k=k, bundles=bundles, as_json=as_json)
    elif tactics:
        from farm_workers.cli import counting

        counting.tactics(run, sample=sample, form=form, table=table, as_json=as_json)
    else:
        from farm.cli import reporting

        reporting.report(run, by=by, against=against, html=html, form=form, table=table, as_json=as_json)


def _require_fit(kinds: Mapping[str, bool], options: Mapping[str, Mapping[str, object]]) -> None:
    """Raise UsageError for two kinds of report, and for an option of another kind than the given one."""
    given = [flag for flag, is_given in kinds.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other; leave one out")
    kind = "".join(given)
    for other, values in options.items():
        for flag, value in values.items():
            if value and other != kind:
                raise UsageError(
                    f"{flag} belongs to {other}; add it, or leave out {flag}"
                    if other
                    else f"{flag} is for the report of verdicts; leave it out with {kind}"
                )
