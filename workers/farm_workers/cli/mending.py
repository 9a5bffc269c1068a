"""The command `farm mend`: makes other texts of Lean files, on this machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from farm.cli.options import AsJson, print_json
from farm.errors import UsageError
from farm.exit_status import ExitStatus
from farm.judging.verdict import Outcome
from farm_workers.cli.outputs import limits_of, print_rows, require_output, write_output

if TYPE_CHECKING:
    from farm_workers.machine.opening import Machine
    from farm_workers.mending.lines import Given, Make, MendedLine
    from farm_workers.mending.trials import Mended, Trials

#: The endings of manifests' names.
SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst")
#: The most changes that are printed, and the most characters of a text in one.
_MOST, _MOST_TEXT = 40, 60

_FileOrManifest = Annotated[
    Path, Argument(help="A Lean file or a manifest, which stays as it is, or - for standard input.")
]
_Output = Annotated[Path, Option("--output", "-o", help="The new file to write.")]
_Seconds = Annotated[float, Option(min=0.1, help="Seconds for all texts of a file or line that are tried.")]
_Checks = Annotated[int, Option(min=1, help="The most texts of a file or line that are tried.")]
_Timeout = Annotated[float, Option(help="Seconds that the check of one text may take.")]
_MemoryMib = Annotated[int | None, Option(help="MiB of memory it may use.", show_default=False)]
_Environment = Annotated[str | None, Option(help="The Lean environment.", show_default=False)]
_Force = Annotated[bool, Option("--force", help="Replace the output if it is there already.")]
_Tidy = Annotated[
    bool,
    Option(
        "--tidy",
        help="Drop the tactics that the proofs do not need, and follow the suggestions of `Try this`.",
    ),
]
_Repair = Annotated[
    bool, Option("--repair", help="Close the goals at the errors of the proofs by tactics from a list.")
]
_Minimize = Annotated[
    bool, Option("--minimize", help="Leave out the commands and lines that the first error does not need.")
]
_Tactics = Annotated[
    list[str] | None,
    Option(
        "--tactic",
        help="With --repair: a tactic to try, instead of the usual list. Repeatable, tried in this order.",
        show_default=False,
    ),
]
_Sorry = Annotated[
    bool, Option("--sorry", help="With --repair: write `sorry` where no tactic closes the goals.")
]
_Theorem = Annotated[
    str | None,
    Option(
        "--self-contained",
        metavar="NAME",
        help="With --minimize: keep this theorem proved instead, with the commands above it that it needs.",
        show_default=False,
    ),
]


def add_to(app: typer.Typer) -> None:
    """Add `farm mend` to the `farm` command."""
    app.command("mend", epilog="Example: farm mend --repair Broken.lean -o Repaired.lean --sorry")(mend)


def mend(
    file: _FileOrManifest,
    output: _Output,
    tidy: _Tidy = False,
    repair: _Repair = False,
    minimize: _Minimize = False,
    tactic: _Tactics = None,
    sorry: _Sorry = False,
    self_contained: _Theorem = None,
    seconds: _Seconds = 60.0,
    checks: _Checks = 10_000,
    timeout: _Timeout = 30.0,
    memory_mib: _MemoryMib = None,
    environment: _Environment = None,
    force: _Force = False,
    as_json: AsJson = False,
) -> None:
    """Make a better text of a Lean file, or of each line of a manifest: --tidy, --repair or --minimize it.

    --tidy keeps a change only if the file stays proved, with the same statements. --repair writes a file that
    is not proved if something in it was repaired. --minimize is for one file.

    The exit status is 0 for a file that is proved then, or that was made small, 4 for one that is not proved,
    and 3 when it could not be judged. Of a manifest, 4 and 3 say that there are such lines.
    """
    goal = _goal({"--tidy": tidy, "--repair": repair, "--minimize": minimize})
    _require_fit(goal, {"--tactic": tactic, "--sorry": sorry}, {"--self-contained": self_contained})
    budget = _Budget(seconds, checks, timeout, memory_mib, environment)
    files = _Files(file, output, force=force)
    if minimize:
        _minimize(files, budget, self_contained, as_json=as_json)
        return
    make, of = (_repairing(tactic, sorry=sorry), Outcome.REJECTED) if repair else (_tidying(), Outcome.PROVED)
    if files.is_manifest:
        _run_lines(files, make, budget, as_json=as_json, of=of, word=goal.removeprefix("--"))
    else:
        _run(files, make, budget, as_json=as_json)


def _goal(goals: Mapping[str, bool]) -> str:
    """Return the one goal that is given. Raises UsageError for none or several."""
    given = [flag for flag, is_given in goals.items() if is_given]
    if len(given) != 1:
        raise UsageError(f"give exactly one of {', '.join(goals)}")
    return given[0]


def _require_fit(goal: str, of_repair: Mapping[str, object], of_minimize: Mapping[str, object]) -> None:
    """Raise UsageError for an option that belongs to another goal."""
    for other, options in (("--repair", of_repair), ("--minimize", of_minimize)):
        for flag, value in options.items():
            if value and goal != other:
                raise UsageError(f"{flag} belongs to {other}; leave it out with {goal}")


def _tidying() -> Make:
    from farm_workers.mending.tidying import tidied

    return tidied


def _repairing(tactic: Sequence[str] | None, *, sorry: bool) -> Make:
    from farm_workers.checking.statements import TACTICS
    from farm_workers.mending.repairing import Wanted, repaired

    return partial(repaired, wanted=Wanted(tactics=tuple(tactic or TACTICS), sorry=sorry))


def _minimize(files: _Files, budget: _Budget, theorem: str | None, *, as_json: bool) -> None:
    from farm_workers.mending.minimizing import minimized, small_for

    if files.is_manifest:
        raise UsageError(
            f"{files.given}: a manifest is not made small, only one program; submit it and write, for "
            "example, farm show --line 12 --program | farm mend --minimize - -o Small.lean"
        )
    made = minimized if theorem is None else partial(small_for, name=theorem)
    _run(files, made, budget, as_json=as_json, keeps_error=made is minimized)


@dataclass(frozen=True, slots=True)
class _Files:
    """The file that is read, and the one that is written."""

    given: Path
    output: Path
    _: KW_ONLY
    force: bool

    @property
    def is_manifest(self) -> bool:
        """Whether the file that is read has lines of JSON."""
        return self.given.name.endswith(SUFFIXES)


@dataclass(frozen=True, slots=True)
class _Budget:
    """The limits of all texts that are tried, and of each."""

    seconds: float
    checks: int
    timeout: float
    memory_mib: int | None
    environment: str | None


def _run(files: _Files, make: Make, budget: _Budget, *, as_json: bool, keeps_error: bool = False) -> None:
    """Make the new text of a file, write it, and end with the exit status of its verdict."""
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
        raise typer.Exit(ExitStatus.UNJUDGED)
    if not is_proved and not keeps_error:
        raise typer.Exit(ExitStatus.NOT_PROVED)


def _made(text: str, make: Make, budget: _Budget) -> tuple[Mended, dict[str, Any]]:
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
            raise typer.Exit(ExitStatus.UNJUDGED) from error
        return mended, _facts(mended, trials)


def _run_lines(files: _Files, make: Make, budget: _Budget, *, as_json: bool, of: Outcome, word: str) -> None:
    """Make other programs of a manifest's lines, write the lines, and end with the exit status of all."""
    from farm.cli.terminal import trying
    from farm.settings import Settings
    from farm_workers.machine.opening import opened
    from farm_workers.mending.lines import LineMending

    require_output(files.output, files.given, suffix=".jsonl", force=files.force)
    settings = Settings.load()
    limits = limits_of(settings, budget.timeout, budget.memory_mib)
    with opened(settings, concurrency=settings.concurrency) as machine:
        machine.installed.require_any()
        lines = _lines(files.given, machine, budget.environment, settings.environment)
        mending = LineMending(
            checker=machine.checker,
            limits=limits,
            make=make,
            of=of,
            word=word,
            seconds=budget.seconds,
            most=budget.checks,
            at_once=settings.concurrency,
        )
        with trying(len(lines)) as done:
            found = list(mending.mended(lines, done))
    write_output(files.output, "".join(f"{each.text}\n" for each in found).encode())
    if as_json:
        print_json(file=str(files.given), output=str(files.output), lines=[each.facts() for each in found])
    else:
        _print_lines(found, files.output)
    if any(each.is_unjudged for each in found):
        raise typer.Exit(ExitStatus.UNJUDGED)
    if any(each.after is None or each.after.outcome is not Outcome.PROVED for each in found):
        raise typer.Exit(ExitStatus.NOT_PROVED)


def _lines(manifest: Path, machine: Machine, environment: str | None, usual: str) -> list[Given]:
    """Return the lines of a manifest. Raises ManifestError, and UsageError for an environment not here."""
    from farm_workers.cli.programs import manifest_lines
    from farm_workers.mending.lines import Given

    return [
        Given(
            text=it,
            entry=each,
            environment=machine.installed.lean(each.environment or environment or usual),
        )
        for it, each in manifest_lines(manifest, may_lack_answer=False)
    ]


def _print_lines(found: Sequence[MendedLine], output: Path) -> None:
    from farm.cli.terminal import count, say

    changed = [each for each in found if each.changes]
    rows = [
        (
            str(each.entry.line),
            each.entry.name,
            f"{each.before and each.before.reason}",
            f"{each.after and each.after.reason}",
            count(each.changes, "change"),
        )
        for each in changed
    ]
    print_rows(("line", "name", "before", "after", "changes"), rows, most=_MOST)
    before, after = (
        sum(it is not None and it.outcome is Outcome.PROVED for it in verdicts)
        for verdicts in ([each.before for each in found], [each.after for each in found])
    )
    say(f"{len(changed)} of {count(len(found), 'line')} changed; {before} proved before, {after} after")
    for why, number in Counter(each.why.partition("\n")[0] for each in found if each.why).most_common(_MOST):
        say(f"{count(number, 'line')} unchanged: {why}")
    say(f"Wrote {output}")


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
