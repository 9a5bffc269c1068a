"""The command that makes lines of open places, and programs of their answers: holes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from farm.cli.options import AsJson, Force, print_json
from farm.connections import Connections
from farm.errors import UsageError

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.runs.holes import Counted

_Target = Annotated[Path, Option("-o", "--output", help="The manifest to write.")]


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the `farm` command."""
    example = "Example: farm holes k3m9 -o subgoals.jsonl; farm holes --fill subgoals.jsonl -o whole.jsonl"
    app.command(epilog=example)(holes)


def holes(
    given: Annotated[
        list[str],
        Argument(
            metavar="RUN|ANSWERS",
            help="Id of a run that was submitted with --goals, or a prefix of it; with --fill the judged "
            "lines of holes.",
        ),
    ],
    output: _Target,
    fill: Annotated[
        bool,
        Option("--fill", help="Write each program with the answers in its holes, to be submitted."),
    ] = False,
    cut: Annotated[
        bool, Option("--cut", help="Write the lines with an error, cut there: a sorry stands for what fails.")
    ] = False,
    with_open: Annotated[
        bool,
        Option("--open", help="With --fill: write programs that still have a hole, too.", show_default=False),
    ] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write each open place of a run's programs as a line: a sorry that an answer is put in place of.

    Lines have `hole` with the goal, for a model, and the program around it. Add answers as `generation`,
    submit them, and put them together with --fill: of several answers for a hole the first one that was
    judged `partial` or `proved` is taken, and the seal of the whole program is the proof. Programs with an
    error have no holes: with --cut they are written as drafts to be submitted again.
    """
    from farm.manifest.outputs import require_free

    if fill and cut:
        raise UsageError("--cut is for the holes of a run; leave it out with --fill")
    if with_open and not fill:
        raise UsageError("--open belongs to --fill; add --fill, or leave it out")
    if len(given) > 1 and not fill:
        raise UsageError(
            f"{len(given)} runs are given; write the holes of one run, or add --fill for answers"
        )
    require_free(output, force=force)
    if fill:
        _fill([Path(each) for each in given], output, with_open=with_open, as_json=as_json)
    else:
        _holes(given[0], output, cut=cut, as_json=as_json)


def _holes(run: str, output: Path, *, cut: bool, as_json: bool) -> None:
    from farm.cli import terminal
    from farm.runs.holes import write_holes

    queries = Connections.here().queries
    found = write_holes(queries, queries.run(run), output, cuts=cut)
    if as_json:
        print_json(output=str(output), lines=found.written, programs=found.parents, errors=found.with_errors)
        return
    written = terminal.count(found.written, "draft" if cut else "hole")
    terminal.say(f"Wrote {written} to {output}{_left_out(found, cut=cut)}")


def _left_out(found: Counted, *, cut: bool) -> str:
    from farm.cli import terminal

    words = ""
    if found.with_errors and not cut:
        words += (
            f"; {terminal.count(found.with_errors, 'program')} with an error left out: --cut writes drafts"
        )
    elif cut and found.with_errors > found.written:
        words += f"; {terminal.count(found.with_errors - found.written, 'error')} outside of tactics left out"
    if found.without_goals:
        words += f"; {terminal.count(found.without_goals, 'line')} judged without goals"
    return words


def _fill(answers: Sequence[Path], output: Path, *, with_open: bool, as_json: bool) -> None:
    from farm.cli import terminal
    from farm.runs.holes import write_filled

    found = write_filled(answers, output, with_open=with_open)
    if as_json:
        print_json(output=str(output), lines=found.written, programs=found.parents, open=found.open)
        return
    left = "written as they are" if with_open else "left out: --open writes them"
    still = f"; {terminal.count(found.open, 'program')} with open holes {left}" if found.open else ""
    terminal.say(f"Wrote {terminal.count(found.written, 'program')} to {output}{still}")
