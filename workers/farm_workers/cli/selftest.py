"""The command that tries this machine's judge, and that hands the tricks to others: selftest."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from farm.cli.options import AsJson, print_json
from farm.errors import FarmError, UsageError
from farm.exit_status import ExitStatus
from farm.settings import Settings

# Slow imports stand in the commands that need them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm_workers.environments.environment import Environment
    from farm_workers.environments.lean_environment import LeanEnvironment
    from farm_workers.exploits.corpus import Case, TriedExploit
    from farm_workers.machine.opening import Machine

#: Nothing more is begun after so long, unless every trick is to be tried.
MOST_SECONDS = 300.0


def add_to(app: typer.Typer) -> None:
    """Add `farm selftest` to the `farm` command."""
    app.command("selftest", epilog="Example: farm selftest --exploits --environment mathlib")(selftest)


def selftest(
    environment: Annotated[str | None, Option(help="The Lean environment.", show_default=False)] = None,
    exploits: Annotated[
        bool,
        Option(
            "--exploits", help="Try one trick of every known class, and honest proofs that look like tricks."
        ),
    ] = False,
    every: Annotated[
        bool, Option("--all", help="With --exploits: try every trick, however long it takes.")
    ] = False,
    served: Annotated[
        bool,
        Option("--served", help="Have the farm's workers judge them, over the queue; needs no Lean here."),
    ] = False,
    header: Annotated[
        str | None,
        Option(
            help="With --served or --write: what the programs begin with, such as 'import Mathlib'.",
            show_default=False,
        ),
    ] = None,
    write: Annotated[
        Path | None,
        Option(
            "--write",
            metavar="DIR",
            help="Judge nothing: write the tricks, and honest programs that look like them, as files into "
            "this new folder, for other judges of proofs.",
            show_default=False,
        ),
    ] = None,
    wait_seconds: Annotated[
        float, Option(help="With --served: seconds to wait for a worker and its verdicts.", min=1)
    ] = 1800.0,
    as_json: AsJson = False,
) -> None:
    """Test that this machine's Lean, or with --served the farm's workers, judge known programs correctly.

    Without options these are the ones that a worker judges when it starts. The exit status is 0 when all came
    out right, 1 when one did not, 3 when one could not be judged.
    """
    if write is not None:
        if exploits or every or served or environment is not None:
            raise UsageError(
                "--write judges nothing; leave out --exploits, --all, --served and --environment"
            )
        _write_exploits(write, header, as_json=as_json)
        return
    settings = Settings.load()
    name = environment or settings.environment
    if served:
        _require_alone(exploits=exploits or every)
        given = _usual_header(name) if header is None else header
        _ask_workers(name, given, seconds=wait_seconds, as_json=as_json)
        return
    from farm_workers.machine.opening import opened

    with opened(settings, way="forked") as machine:
        machine.installed.require_any()
        chosen = machine.installed[name]
        machine.judges.require_sound(chosen)
        found, left = _exploited(machine, name, every=every) if exploits or every else ([], 0)
    _report(chosen, found, left=left, as_json=as_json)


def _write_exploits(folder: Path, header: str | None, *, as_json: bool) -> None:
    """Write the tricks' texts, a README, and the list tricks.jsonl with the right judgement of each."""
    from farm.cli import terminal
    from farm_workers.environments.bundled import HEADER
    from farm_workers.exploits.publishing import write

    tricks, honest = write(folder, HEADER if header is None else _line(header))
    if as_json:
        print_json(folder=str(folder), tricks=tricks, honest=honest)
    else:
        terminal.say(f"Wrote {tricks} tricks and {honest} honest programs into {folder}: read its README.md")


def _require_alone(*, exploits: bool) -> None:
    if exploits:
        raise UsageError(
            "--exploits tries this machine's Lean; run it on a node of a worker, without --served"
        )


def _ask_workers(environment: str, header: str, *, seconds: float, as_json: bool) -> None:
    """Have the farm's workers judge the known programs, and print the results."""
    from farm.api import Farm
    from farm.cli import terminal
    from farm_workers.cli.served import asked

    with Farm() as farm:
        answers = asked(farm, environment, header=_line(header), seconds=seconds)
    wrong = [each.words for each in answers if each.verdict.judged and not each.is_right]
    unjudged = [each.words for each in answers if not each.verdict.judged]
    if as_json:
        print_json(environment=environment, tried=len(answers), wrong=wrong, unjudged=unjudged)
    if wrong:
        raise FarmError(f"the workers of {environment} judged wrong: {'; '.join(wrong)}; please report this")
    if unjudged:
        terminal.say(f"The farm could not judge known programs of {environment}: {'; '.join(unjudged)}")
        raise typer.Exit(ExitStatus.UNJUDGED)
    if not as_json:
        typer.echo(f"{environment}: the farm's workers judged {len(answers)} known programs correctly")


def _usual_header(environment: str) -> str:
    """Return the default header of programs: none for an environment with Lean's own library only."""
    from farm_workers.environments.bundled import HEADER
    from farm_workers.environments.lean_environment import EMBEDDED

    return HEADER if environment == EMBEDDED else ""


def _line(header: str) -> str:
    return header if not header or header.endswith("\n") else f"{header}\n"


def _chances(environment: LeanEnvironment, *, every: bool) -> list[tuple[Case, str]]:
    """Return the cases to try: one of every class, or all of them."""
    from farm_workers.exploits.corpus import fitting, one_of_each

    cases = fitting(environment)
    chosen = cases if every else one_of_each(cases)
    return [(case, tier) for case in chosen for tier in environment.tiers]


def _exploited(machine: Machine, name: str, *, every: bool) -> tuple[list[TriedExploit], int]:
    """Try the corpus in a Lean environment; return the results, and how many cases time did not allow."""
    environment = machine.installed.lean(name)
    chances = _chances(environment, every=every)
    found = list(_tried(machine, environment, chances, seconds=math.inf if every else MOST_SECONDS))
    return found, len(chances) - len(found)


def _tried(
    machine: Machine, environment: LeanEnvironment, chances: Sequence[tuple[Case, str]], *, seconds: float
) -> Iterator[TriedExploit]:
    from farm.cli.terminal import trying
    from farm_workers.exploits.corpus import judged

    end = time.monotonic() + seconds
    with trying(len(chances)) as tried:
        for case, tier in chances:
            if time.monotonic() > end:
                return
            yield judged(machine.checker, environment, case, tier)
            tried()


def _report(environment: Environment, found: list[TriedExploit], *, left: int, as_json: bool) -> None:
    wrong = [each for each in found if not each.is_right and not each.is_failure]
    failed = [each for each in found if each.is_failure]
    if as_json:
        print_json(
            environment=environment.name,
            toolchain=environment.toolchain,
            tried=len(found),
            left=left,
            wrong=[_facts(each) for each in wrong],
            unjudged=[_facts(each) for each in failed],
        )
    else:
        _print(environment, found, [*wrong, *failed])
        _tell(found, left)
    if wrong:
        raise FarmError(f"{len(wrong)} of {len(found)} programs were judged wrong; please report this")
    if failed:
        raise typer.Exit(ExitStatus.UNJUDGED)


def _tell(found: list[TriedExploit], left: int) -> None:
    from farm.cli.terminal import count

    if left:
        typer.echo(
            f"{count(left, 'check')} left out after {MOST_SECONDS / 60:.0f} minutes; add --all to run them"
        )
    elif found:
        classes = len({each.case.class_name for each in found})
        typer.echo(f"Classes of tricks: {classes}; --all tries every trick of each")


def _facts(each: TriedExploit) -> dict[str, object]:
    return {
        "case": each.case.name,
        "honest": each.case.is_honest,
        "tier": each.tier,
        "verdict": each.verdict.outcome,
        "reason": each.verdict.reason,
        "detail": each.verdict.detail,
    }


def _print(environment: Environment, found: list[TriedExploit], odd: list[TriedExploit]) -> None:
    from farm.cli.terminal import count, visible

    for each in odd:
        worth = "honest" if each.case.is_honest else "a trick"
        typer.echo(
            visible(f"{each.tier}: {each.case.name} ({worth}): {each.verdict.outcome}: {each.verdict.detail}")
        )
    tricks = {each.case.name for each in found if not each.case.is_honest}
    honest = {each.case.name for each in found} - tricks
    typer.echo(f"{environment.name} ({environment.toolchain}): the known programs were judged correctly")
    if found:
        tiers = ", ".join(dict.fromkeys(each.tier for each in found))
        typer.echo(
            f"{count(len(tricks), 'trick')} and {count(len(honest), 'honest program')} on {tiers}: "
            + (f"{len(odd)} were judged wrong" if odd else "all were judged correctly")
        )
