"""The command `farm bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from farm.cli import AsJson, print_json
from farm.errors import UsageError
from farm.settings import WAYS, Settings

# What costs time to import is imported when the command runs: `farm --help` answers at once.
if TYPE_CHECKING:
    from workers.bench.run import Plan


def add_to(app: typer.Typer) -> None:
    """Add `farm bench` to the `farm` command."""
    app.command("bench", epilog="Example: farm bench --seconds 20; farm bench --quick --json")(bench)


def bench(
    seconds: Annotated[
        float, Option(help="Seconds that each way is measured, bare and through the farm.")
    ] = 10.0,
    ways: Annotated[str, Option(help="The ways to measure, joined by commas.")] = ",".join(WAYS),
    environment: Annotated[
        str | None, Option(help="The Lean environment; one with a header of its own needs no library.")
    ] = None,
    soak: Annotated[int, Option(min=50, help="Checks over which the worker's own memory is watched.")] = 2000,
    modules: Annotated[
        int, Option(min=1, help="Modules of the library that is generated for the embedded Lean.")
    ] = 60,
    quick: Annotated[bool, Option("--quick", help="Measure all of it roughly, in about a minute.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure what checks cost on this machine, beside bare Lean that runs the same programs.

    A header that costs something needs a library: with the embedded Lean one is generated and compiled the
    first time, which takes half a minute. The exit status says nothing about the figures: those that miss
    their bars are marked.
    """
    from workers.bench import screen
    from workers.bench.run import measure
    from workers.bench.subject import subject

    if not seconds > 0:
        raise UsageError(f"--seconds {seconds:g}: give a time above 0")
    settings = Settings.load()
    name = environment or settings.environment
    plan = planned(name, _ways(ways), seconds=seconds, soak=soak, modules=modules, quick=quick)
    with screen.compiling(modules + 1) as compiled:
        what = subject(settings, name, modules, compiled)
    with screen.measuring() as say:
        results = measure(settings, plan, what, say)
    rows = [row for contest in results.contests for row in contest.rows()]
    if as_json:
        facts = [figure.facts() for figure in results.figures]
        print_json(machine=results.machine, ways=rows, figures=facts)
    else:
        screen.show(results.machine, rows, results.figures)


def _ways(joined: str) -> tuple[str, ...]:
    """Take the ways apart; the order in which they are measured is always the same."""
    asked = {way.strip() for way in joined.split(",")}
    if unknown := sorted(asked - set(WAYS)):
        raise UsageError(f"--ways: Lean is not run {unknown[0]!r}; the ways are {', '.join(WAYS)}")
    return tuple(way for way in WAYS if way in asked)


def planned(
    environment: str, ways: tuple[str, ...], *, seconds: float, soak: int, modules: int, quick: bool
) -> Plan:
    """Return how often everything is measured; a quick bench looks at little, but at everything."""
    from workers.bench.contest import Rules
    from workers.bench.run import Plan

    if quick:
        return Plan(
            environment=environment,
            rules=Rules(ways=ways, seconds=1.2, turn_seconds=0.4),
            header_times=3,
            resident_checks=40,
            cold_checks=8,
            timeouts=4,
            timeout_rounds=1,
            soak_checks=min(soak, 400),
            modules=modules,
        )
    return Plan(
        environment=environment,
        rules=Rules(ways=ways, seconds=seconds, turn_seconds=1.0),
        header_times=10,
        resident_checks=300,
        cold_checks=30,
        timeouts=8,
        timeout_rounds=12,
        soak_checks=soak,
        modules=modules,
    )
