"""The commands `farm tidy`, `farm repair` and `farm minimize`: make other texts of a Lean file, here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from farm.cli.options import SOME_UNJUDGED, AsJson, print_json
from farm_workers.cli.outputs import limits_of, require_output, write_output

if TYPE_CHECKING:
    from farm_workers.mending.trials import Mended, Trials

#: Exit status where the text that comes out is not proved.
NOT_PROVED = 4
#: The most changes that are printed, and the most characters of a text in one.
_MOST, _MOST_TEXT = 40, 60

_File = Annotated[Path, Argument(help="A Lean file, which stays as it is, or - for standard input.")]
_Output = Annotated[Path, Option("--output", "-o", help="The new file to write.")]
_Seconds = Annotated[float, Option(min=0.1, help="Seconds for all texts that are tried.")]
_Checks = Annotated[int, Option(min=1, help="The most texts that are tried.")]
_Timeout = Annotated[float, Option(help="Seconds that the check of one text may take.")]
_MemoryMib = Annotated[int | None, Option(help="MiB of memory it may use.", show_default=False)]
_Environment = Annotated[str | None, Option(help="The Lean environment.", show_default=False)]
_Force = Annotated[bool, Option("--force", help="Replace the output if it is there already.")]
_Tactics = Annotated[
    list[str] | None,
    Option(
        "--tactic",
        help="A tactic to try, instead of the usual list. Repeatable, tried in this order.",
        show_default=False,
    ),
]
_Sorry = Annotated[bool, Option("--sorry", help="Write `sorry` where no tactic closes the goals.")]
_Theorem = Annotated[
    str | None,
    Option("--self-contained", metavar="NAME", help="Keep this theorem proved.", show_default=False),
]

#: Makes another text of a file.
_Make = Callable[["Trials", str], "Mended"]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the `farm` command."""
    app.command("tidy", epilog="Example: farm tidy Proof.lean -o Tidy.lean")(tidy)
    app.command("repair", epilog="Example: farm repair Broken.lean -o Repaired.lean --sorry")(repair)
    app.command("minimize", epilog="Example: farm minimize Broken.lean -o Small.lean")(minimize)


def tidy(
    file: _File,
    output: _Output,
    seconds: _Seconds = 60.0,
    checks: _Checks = 10_000,
    timeout: _Timeout = 30.0,
    memory_mib: _MemoryMib = None,
    environment: _Environment = None,
    force: _Force = False,
    as_json: AsJson = False,
) -> None:
    """Drop the tactics that the proofs of a file do not need, and follow the suggestions of `Try this`.

    Each change is kept only if the file stays proved, with the same statements. The exit status is 0 for a
    proved file, 4 for one that is not proved, which is not written, and 3 when it could not be judged.
    """
    from farm_workers.mending.tidying import tidied

    budget = _Budget(seconds, checks, timeout, memory_mib, environment)
    _run(_Files(file, output, force=force), tidied, budget, as_json=as_json)


def repair(
    file: _File,
    output: _Output,
    tactic: _Tactics = None,
    sorry: _Sorry = False,
    seconds: _Seconds = 60.0,
    checks: _Checks = 10_000,
    timeout: _Timeout = 30.0,
    memory_mib: _MemoryMib = None,
    environment: _Environment = None,
    force: _Force = False,
    as_json: AsJson = False,
) -> None:
    """Close the goals at the errors of a file's proofs by tactics from a list.

    The exit status is 0 when the file is then proved, with the same statements, 4 when it is not, and 3 when
    it could not be judged. A file that is not proved is written if something in it was repaired.
    """
    from farm_workers.checking.statements import TACTICS
    from farm_workers.mending.repairing import Wanted, repaired

    wanted = Wanted(tactics=tuple(tactic or TACTICS), sorry=sorry)
    budget = _Budget(seconds, checks, timeout, memory_mib, environment)
    made = partial(repaired, wanted=wanted)
    _run(_Files(file, output, force=force), made, budget, as_json=as_json)


def minimize(
    file: _File,
    output: _Output,
    self_contained: _Theorem = None,
    seconds: _Seconds = 60.0,
    checks: _Checks = 10_000,
    timeout: _Timeout = 30.0,
    memory_mib: _MemoryMib = None,
    environment: _Environment = None,
    force: _Force = False,
    as_json: AsJson = False,
) -> None:
    """Leave out the commands and lines of a file that its first error does not need.

    With --self-contained a theorem is kept proved instead, with the commands above it that it needs. The exit
    status is 0 when the new file is written, 4 when the theorem is not proved, and 3 when the file could not
    be judged.
    """
    from farm_workers.mending.minimizing import minimized, small_for

    made = minimized if self_contained is None else partial(small_for, name=self_contained)
    budget = _Budget(seconds, checks, timeout, memory_mib, environment)
    _run(_Files(file, output, force=force), made, budget, as_json=as_json, keeps_error=made is minimized)


@dataclass(frozen=True, slots=True)
class _Files:
    """The file that is read, and the one that is written."""

    given: Path
    output: Path
    _: KW_ONLY
    force: bool


@dataclass(frozen=True, slots=True)
class _Budget:
    """The limits of all texts that are tried, and of each."""

    seconds: float
    checks: int
    timeout: float
    memory_mib: int | None
    environment: str | None


def _run(files: _Files, make: _Make, budget: _Budget, *, as_json: bool, keeps_error: bool = False) -> None:
    """Make the new text of a file, write it, and end with the exit status of its verdict."""
    from farm.judging.verdict import Outcome
    from farm_workers.cli.programs import program_text

    require_output(files.output, files.given, force=files.force)
    text = program_text(str(files.given)).replace("\r\n", "\n")
    mended, facts = _made(text, make, budget)
    is_proved = mended.after.outcome is Outcome.PROVED
    is_written = is_proved or mended.text != text or (keeps_error and not mended.left)
    if is_written:
        write_output(files.output, mended.text.encode())
    facts = {"file": str(files.given), "output": str(files.output) if is_written else None, **facts}
    if as_json:
        print_json(**facts)
    else:
        _print(mended, facts)
    if Outcome.JUDGE_ERROR in (mended.before.outcome, mended.after.outcome):
        raise typer.Exit(SOME_UNJUDGED)
    if not is_proved and not keeps_error:
        raise typer.Exit(NOT_PROVED)


def _made(text: str, make: _Make, budget: _Budget) -> tuple[Mended, dict[str, Any]]:
    """Return the new text, and the facts for scripts. Exits where Lean gives no outline."""
    from farm.cli.terminal import following, say
    from farm.settings import Settings
    from farm_workers.lean.outlined import NoOutline
    from farm_workers.machine.opening import opened
    from farm_workers.mending.trials import Trials

    settings = Settings.load()
    limits = limits_of(settings, budget.timeout, budget.memory_mib)
    with opened(settings) as machine, following("trying") as show:
        machine.installed.require_any()
        chosen = machine.installed.lean(budget.environment or settings.environment)
        trials = Trials(
            machine.checker, chosen, limits, seconds=budget.seconds, most=budget.checks, show=show
        )
        try:
            mended = make(trials, text)
        except NoOutline as error:
            say(f"The file was not judged: {error}")
            raise typer.Exit(SOME_UNJUDGED) from error
        return mended, _facts(mended, trials)


def _facts(mended: Mended, trials: Trials) -> dict[str, Any]:
    before, after = (
        {"verdict": it.outcome, "reason": it.reason, "detail": it.detail}
        for it in (mended.before, mended.after)
    )
    return {
        "before": before,
        "after": after,
        "changes": [asdict(each) for each in mended.changes],
        "left": list(mended.left),
        "cut_short": mended.cut_short,
        "checks": trials.checks,
        "seconds": round(trials.seconds, 3),
    }


def _print(mended: Mended, facts: Mapping[str, Any]) -> None:
    from farm.cli.terminal import count, say, visible

    for each in mended.changes[:_MOST]:
        place = f"line {each.line}{f' ({each.theorem})' if each.theorem else ''}"
        now = f" -> {_short(each.now)}" if each.now else ""
        typer.echo(visible(f"{place}: {each.what}: {_short(each.was)}{now}"))
    if len(mended.changes) > _MOST:
        say(f"{count(len(mended.changes) - _MOST, 'more change')}: --json has all")
    for words in mended.left:
        typer.echo(visible(f"left: {words}"))
    if mended.cut_short:
        say("The budget was spent: more --seconds or --checks may find more")
    say(f"Tried {count(facts['checks'], 'text')} in {facts['seconds']:.1f} s")
    say(f"Wrote {facts['output']}" if facts["output"] else "Wrote nothing")
    typer.echo(visible(f"{mended.after.outcome} ({mended.after.reason}): {mended.after.detail}"))


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _MOST_TEXT else f"{words[: _MOST_TEXT - 1]}…"
