"""The command `farm extract`: makes a dataset of the theorems of Lean files, on this machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from farm.cli.options import AsJson, print_json
from farm.exit_status import ExitStatus
from farm_workers.cli.contexts import Context, ContextTokens, contexts_wanted
from farm_workers.cli.outputs import limits_of, print_rows, require_output

if TYPE_CHECKING:
    from farm.datasets.journal import Journal
    from farm.settings import Settings
    from farm_workers.machine.extraction import Wanted

#: The reason of a theorem that stands below an error.
BELOW_ERROR = "error above"
#: The most rows of a table.
_MOST = 20

_Path = Annotated[Path, Argument(help="A Lean file, or a folder: a Lake workspace, or any other.")]
_Output = Annotated[Path, Option("--output", "-o", help="The file of lines to write, .jsonl.")]
_Module = Annotated[str, Option(help="Only modules of this pattern, such as 'Shop.Order.*'.")]
_Format = Annotated[str, Option("--format", help="farm, ntp-toolkit, minictx or leagent.")]
_States = Annotated[bool, Option("--states", help="Add the goals before and after each tactic.")]
_Costs = Annotated[bool, Option("--costs", help="Add the time and the heartbeats of each theorem.")]
_Dates = Annotated[bool, Option("--dates", help="Add the commits that made each file and theorem.")]
_Since = Annotated[
    datetime | None,
    Option(formats=["%Y-%m-%d"], help="Only theorems of this day or later, by git.", show_default=False),
]
_Split = Annotated[
    datetime | None,
    Option(formats=["%Y-%m-%d"], help="Add `split`: train before this day, by git.", show_default=False),
]
_Check = Annotated[bool, Option("--check", help="Judge each line, and write its `proof_status`.")]
_CheckFiles = Annotated[
    bool, Option("--check-files", help="Judge each file once, and write `proved_in_file` into its lines.")
]
_Resume = Annotated[bool, Option("--resume", help="Go on with an extraction that was interrupted.")]
_Force = Annotated[bool, Option("--force", help="Replace the output, and begin anew.")]
_Environment = Annotated[str | None, Option(help="The Lean environment.", show_default=False)]
_Timeout = Annotated[float, Option(help="Seconds that a file, or the check of a line, may take.")]
_MemoryMib = Annotated[int | None, Option(help="MiB of memory that a file may use.", show_default=False)]
_MostTheorems = Annotated[int, Option("--most", min=1, help="The most theorems of a file.")]


def add_to(app: typer.Typer) -> None:
    """Add `farm extract` to the `farm` command."""
    app.command("extract", epilog="Example: farm extract Shop -o shop.jsonl --check")(extract)


def extract(
    path: _Path,
    output: _Output,
    module: _Module = "*",
    format_: _Format = "farm",
    states: _States = False,
    costs: _Costs = False,
    dates: _Dates = False,
    since: _Since = None,
    split: _Split = None,
    check: _Check = False,
    check_files: _CheckFiles = False,
    context: Context = "",
    context_tokens: ContextTokens = None,
    resume: _Resume = False,
    force: _Force = False,
    environment: _Environment = None,
    timeout: _Timeout = 300.0,
    memory_mib: _MemoryMib = None,
    most: _MostTheorems = 100_000,
    as_json: AsJson = False,
) -> None:
    """Write each theorem of Lean files as a line, with its context, its proof and facts from Lean.

    The lines are a manifest that `farm submit` judges. The exit status is 3 when a file could not be
    extracted or a theorem not judged, 4 when a check finds one that is not proved, and 2 for bad usage, which
    writes nothing.
    """
    from farm.datasets.theorem_formats import FORMATS
    from farm.errors import UsageError
    from farm.settings import Settings
    from farm_workers.machine.extraction import Wanted

    settings = Settings.load()
    if format_ not in FORMATS:
        raise UsageError(f"--format {format_}: choose one of {', '.join(FORMATS)}")
    wanted = Wanted(
        format=format_,
        states=states,
        costs=costs,
        dates=dates or since is not None or split is not None,
        since=_seconds(since),
        split=_seconds(split),
        most=most,
        check=check,
        check_files=check_files,
        limits=limits_of(settings, timeout, memory_mib),
        environment=environment,
        contexts=contexts_wanted(context, context_tokens),
    )
    require_output(output, path, suffix=".jsonl", force=force)
    facts = _written(path, module, output, wanted, settings, resume=resume, force=force)
    if as_json:
        print_json(**facts)
    else:
        _print(facts, wanted)
    if facts["failed"] or facts["unjudged"]:
        raise typer.Exit(ExitStatus.UNJUDGED)
    if facts["unproved"] or facts["not_in_file"]:
        raise typer.Exit(ExitStatus.NOT_PROVED)


def _seconds(day: datetime | None) -> int | None:
    return None if day is None else int(day.replace(tzinfo=UTC).timestamp())


def _written(
    path: Path,
    module: str,
    output: Path,
    wanted: Wanted,
    settings: Settings,
    *,
    resume: bool,
    force: bool,
) -> dict[str, Any]:
    """Extract the files, and return the facts of all."""
    from farm.cli.terminal import trying
    from farm.datasets.history import began, require_repository
    from farm.datasets.journal import Journal
    from farm.datasets.theorems import module_of
    from farm_workers.machine.extraction import Extracting
    from farm_workers.machine.opening import opened
    from farm_workers.machine.repository import root_of, sources

    files = list(sources(path, module))
    if wanted.dates:
        require_repository(root_of(path))
    with (
        opened(settings, concurrency=settings.concurrency) as machine,
        Journal(output, resume=resume, force=force) as journal,
    ):
        machine.installed.require_any()
        chosen = machine.installed.lean(wanted.environment or settings.environment)
        work = Extracting(
            root=root_of(path),
            checker=machine.checker,
            environment=chosen,
            wanted=wanted,
            at_once=settings.concurrency,
            modules=tuple(module_of(name) for name, _ in files),
            began=0 if wanted.split is None else began(root_of(path)),
        )
        left = [each for each in files if not work.is_finished(*each, journal)]
        with trying(len(left)) as done:
            for unit in work.units(left):
                journal.add(unit)
                done()
        facts = _published(journal, [name for name, _ in files], output)
        return {**facts, "resumed": len(files) - len(left)}


def _published(journal: Journal, names: Sequence[str], output: Path) -> dict[str, Any]:
    units = list(journal.facts(names))
    lines = journal.publish(names)
    failed = [{"file": name, "why": told["failed"]} for name, told in units if "failed" in told]
    whole = [(name, told) for name, told in units if "failed" not in told]
    numbers = ("theorems", "proved", "proved_in_file", "states")
    lists = ("left_out", "unproved", "not_in_file", "unjudged", "not_shown")
    return {
        "output": str(output),
        "files": len(units),
        "lines": lines,
        "failed": failed,
        **{each: sum(told[each] for _, told in whole) for each in numbers},
        **{each: [{"file": name, **it} for name, told in whole for it in told[each]] for each in lists},
    }


def _print(facts: Mapping[str, Any], wanted: Wanted) -> None:
    from farm.cli.terminal import count, say

    _table("not extracted", facts["failed"], ("file", "why"))
    _table("left out", _counted(facts["left_out"]), ("file", "name", "words"))
    _table("without a shorter context", facts["not_shown"], ("file", "name", "why"))
    _table("not judged", facts["unjudged"], ("file", "name", "why"))
    _table("not proved", facts["unproved"], ("file", "name", "reason", "detail"))
    _table("not proved in its file", facts["not_in_file"], ("file", "name", "why"))
    theorems = count(facts["theorems"], "theorem")
    if wanted.check:
        say(f"{facts['proved']} of {theorems} are proved again")
    if wanted.check_files:
        say(f"{facts['proved_in_file']} of {theorems} are proved in their files")
    if wanted.contexts is not None:
        say(f"The statements of {facts['states']} of {theorems} compile below their shorter contexts")
    said = f"Wrote {count(facts['lines'], 'line')} of {count(facts['files'], 'file')} into {facts['output']}"
    left = f"; left out {count(len(facts['left_out']), 'theorem')}" if facts["left_out"] else ""
    say(said + left)


def _counted(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows of left out theorems, with one row for all that stand below the same error."""
    first, others = dict[tuple[Any, ...], Mapping[str, Any]](), Counter[tuple[Any, ...]]()
    for number, row in enumerate(rows):
        is_below = row["why"] == BELOW_ERROR
        key = (row["file"], row["words"]) if is_below else (number,)
        first.setdefault(key, row)
        others[key] += 1
    return [
        row if others[key] == 1 else {**row, "name": f"{row['name']} and {others[key] - 1} more"}
        for key, row in first.items()
    ]


def _table(title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    first_lines = [[str(row[each]).partition("\n")[0] for each in columns] for row in rows]
    print_rows(columns, first_lines, title=title, most=_MOST)
