"""The farm's figures on this machine: `make bench`, or `python -m tests.bench --help`.

Every figure is measured several times and the median counts; all parts are real. A missed bar is shown and
is no failure: machines are shared. Close what else runs before believing a number, and trust ratios first.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from typer import Option

from farm.cli.command import run
from farm.cli.options import AsJson
from tests.bench.agreement import agreement
from tests.bench.checks import command
from tests.bench.checks.figures import Figure
from tests.bench.classes import classes
from tests.bench.cold import cold_checks
from tests.bench.completions import completions
from tests.bench.demo import demo
from tests.bench.figures import table
from tests.bench.first_error import first_error
from tests.bench.images import images
from tests.bench.levels import levels
from tests.bench.library import library
from tests.bench.looking import looking
from tests.bench.metrics import metrics
from tests.bench.neighbours import neighbours
from tests.bench.pruning import pruning
from tests.bench.reporting import reports
from tests.bench.sessions import larger_header, over_http, sessions
from tests.bench.tenants import tenants
from tests.bench.texts import assembly, policy
from tests.bench.tracing import traces


class Part(StrEnum):
    """What is measured by itself, besides the contests."""

    ASSEMBLY = "assembly"
    POLICY = "policy"
    COLD = "cold"
    COMPLETIONS = "completions"
    LOOKING = "looking"
    DEMO = "demo"
    METRICS = "metrics"
    TRACES = "traces"
    PRUNE = "prune"
    IMAGES = "images"
    CLASSES = "classes"
    FIRST_ERROR = "first-error"
    SESSIONS = "sessions"
    SESSIONS_HTTP = "sessions-http"
    SESSIONS_LARGE = "sessions-large"
    SESSION_AGREEMENT = "session-agreement"
    LIBRARY = "library"
    LEVELS = "levels"
    NEIGHBOURS = "neighbours"
    TENANTS = "tenants"


MEASURES: dict[Part, Callable[[], Iterator[Figure]]] = {
    Part.ASSEMBLY: assembly,
    Part.POLICY: policy,
    Part.COLD: cold_checks,
    Part.COMPLETIONS: completions,
    Part.LOOKING: looking,
    Part.DEMO: demo,
    Part.METRICS: metrics,
    Part.TRACES: traces,
    Part.PRUNE: pruning,
    Part.IMAGES: images,
    Part.CLASSES: classes,
    Part.FIRST_ERROR: first_error,
    Part.SESSIONS: sessions,
    Part.SESSIONS_HTTP: over_http,
    Part.SESSIONS_LARGE: larger_header,
    Part.SESSION_AGREEMENT: agreement,
    Part.LIBRARY: library,
    Part.LEVELS: levels,
    Part.NEIGHBOURS: neighbours,
    Part.TENANTS: tenants,
}

app = typer.Typer(help="Print the farm's figures.", no_args_is_help=True)
command.add_to(app)


@app.command("parts")
def parts(
    only: Annotated[list[Part] | None, Option(help="Measure this alone; can be given several times.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure assembly, policy, completions, metrics, traces, looking at a large farm, pruning, images, and a
    worker.

    `--only demo` is what `make demo` shows.
    """
    figures: list[Figure] = []
    for name in only or [name for name in MEASURES if name is not Part.DEMO]:
        sys.stderr.write(f"Measuring {name}\n")
        figures += MEASURES[name]()
    _show(figures, as_json=as_json)


@app.command("report")
def report(as_json: AsJson = False) -> None:
    """Measure `farm report` on two runs of 100 000 lines, in two shapes; takes about five minutes."""
    _show(list(reports()), as_json=as_json)


@app.command("cluster")
def cluster(
    workers: Annotated[int, Option(min=1, help="Simulated workers.")] = 512,
    at_once: Annotated[int, Option(min=1, help="Checks that each has at once.")] = 1,
    seconds: Annotated[
        list[float] | None, Option(help="How long a check takes on average; can be given several times.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let many workers that check nothing carry a rising load, and show what it costs the servers."""
    from tests.bench.around.rising import rising

    rows = rising(
        workers, at_once, seconds or [16.0, 8.0, 4.0, 2.0], lambda words: print(words, file=sys.stderr)
    )
    if as_json:
        print(json.dumps(rows))
    else:
        for row in rows:
            print(", ".join(f"{name} {value}" for name, value in row.items()))


def _show(figures: Sequence[Figure], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps([figure.facts() for figure in figures]) + "\n")
    else:
        Console(width=None if sys.stdout.isatty() else 120).print(table(figures))


if __name__ == "__main__":
    run(app, "python -m tests.bench")
