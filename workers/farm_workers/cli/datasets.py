"""The command `farm dataset`: makes a manifest from a local copy of a public benchmark, and tries it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from typer import Argument, Option

from farm.cli.options import AsJson, print_json
from farm.exit_status import ExitStatus
from farm.kinds import Kind
from farm_workers.cli.contexts import Context, ContextTokens, contexts_wanted
from farm_workers.cli.outputs import print_rows

# Slow imports stand in the commands that need them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.datasets.catalogue import Dataset
    from farm.datasets.making import Copy, Wanted
    from farm_workers.machine.abridging import Wanted as Contexts
    from farm_workers.machine.statements import TriedStatement

#: At most this many wrong statements are printed; `--json` has all.
_MOST = 30

_Name = Annotated[
    str,
    Argument(
        help="minif2f, proofnet, putnam-bench, minictx or mobench; lines or folder for any other benchmark."
    ),
]
_Path = Annotated[Path, Argument(help="The folder of a clone, or a data file. Nothing is downloaded.")]
_Output = Annotated[
    Path, Option("-o", "--output", help="The manifest to write: .jsonl, .jsonl.gz, .jsonl.zst.")
]
_System = Annotated[str, Option(help=f"The proof system: one of {', '.join(Kind)}.")]
_Split = Annotated[str, Option(help="Only this split, such as test.", show_default=False)]
_Statement = Annotated[
    str, Option(metavar="FIELD", help="lines: the field with the statement or program.", show_default=False)
]
_NameField = Annotated[
    str,
    Option("--name", metavar="FIELD", help="lines: the field with the problem's name.", show_default=False),
]
_Header = Annotated[
    str,
    Option(
        metavar="FIELD|TEXT",
        help="lines: the field with the header, or its text, such as 'import Mathlib'.",
        show_default=False,
    ),
]
_Match = Annotated[
    str,
    Option(metavar="GLOB", help="folder: read only these files, such as `**/task.lean`.", show_default=False),
]
_Samples = Annotated[
    int | None,
    Option(
        min=1,
        max=100_000,
        help="Copies of each line; the field `sample` counts them from 0.",
        show_default=False,
    ),
]
_Environment = Annotated[
    str | None, Option(help="Write this environment into each line.", show_default=False)
]
_OpenAnswers = Annotated[
    bool,
    Option(
        "--open-answers", help="Leave solutions for the model to find, and compare them with the known ones."
    ),
]
_Force = Annotated[bool, Option("--force", help="Replace the manifest if it is there already.")]
_Check = Annotated[bool, Option("--check", help="Compile each statement on this machine, with `sorry`.")]


def add_to(app: typer.Typer) -> None:
    """Add `farm dataset` to the `farm` command."""
    app.command(
        "dataset", epilog="Example: farm dataset minif2f miniF2F-lean4 -o minif2f.jsonl --split test"
    )(dataset)


def dataset(
    name: _Name,
    path: _Path,
    output: _Output,
    system: _System = "lean",
    split: _Split = "",
    samples: _Samples = None,
    environment: _Environment = None,
    open_answers: _OpenAnswers = False,
    force: _Force = False,
    check: _Check = False,
    statement: _Statement = "",
    name_field: _NameField = "",
    header: _Header = "",
    match: _Match = "",
    context: Context = "",
    context_tokens: ContextTokens = None,
    as_json: AsJson = False,
) -> None:
    """Make a manifest from a local copy of a public benchmark, for a model to fill in.

    Lines have no `generation`. `farm dataset lines FILE --statement FIELD` reads rows of JSON or CSV whose
    fields you name, `farm dataset folder PATH` files of Lean. With --check, statements that do not compile
    are listed, and the exit status is 4 when there are any, 3 when some could not be tried.
    """
    from farm.cli import terminal
    from farm.datasets.making import Wanted, lines, read_copy, require_writable, write

    contexts = contexts_wanted(context, context_tokens)
    generic = _Generic(statement=statement, name=name_field, header=header, match=match)
    known = _known(name, path, system, generic)
    wanted = Wanted(
        dataset=known,
        system=system,
        split=split,
        samples=samples,
        environment=environment,
        open_answers=open_answers,
    )
    require_writable(output, path, force=force)
    found = read_copy(path, wanted)
    made = list(lines(found, wanted))
    if contexts is not None:
        made = _with_contexts(made, contexts, wanted)
    write(output, made)
    for note in found.notes:
        terminal.say(f"Note: {note}")
    terminal.say(f"Wrote {terminal.count(len(made), 'line')} ({_splits(found)}) into {output}")
    tried = _tried(found, wanted) if check else None
    if as_json:
        print_json(**_facts(found, wanted, output, len(made), tried))
    elif tried is not None:
        _print(tried)
    if tried is not None:
        _leave(tried)


class _Generic(NamedTuple):
    """The options of `lines` and `folder`; "" is: not given."""

    statement: str
    name: str
    header: str
    match: str


def _known(word: str, path: Path, system: str, given: _Generic) -> Dataset:
    """Return the benchmark that a word means; raises UsageError for options that it does not take."""
    from farm.datasets.catalogue import FOLDER, LINES, of_folder, of_rows
    from farm.datasets.catalogue import dataset as known
    from farm.datasets.generic import Columns
    from farm.errors import UsageError

    takes = {LINES: {"statement", "name", "header"}, FOLDER: {"match"}}.get(word, set())
    for option, value in given._asdict().items():
        if value and option not in takes:
            owner = FOLDER if option == "match" else LINES
            raise UsageError(f"--{option} belongs to `farm dataset {owner}`; leave it out")
    title = path.resolve().name.partition(".")[0]
    if word == FOLDER:
        return of_folder(title, given.match)
    if word != LINES:
        return known(word)
    if not given.statement:
        raise UsageError("farm dataset lines needs --statement FIELD: the field with the statement")
    columns = Columns(statement=given.statement, name=given.name, header=given.header, system=system)
    return of_rows(title, columns)


def _splits(found: Copy) -> str:
    return ", ".join(f"{number} {split or 'problems'}" for split, number in found.splits.items())


def _with_contexts(
    made: Sequence[dict[str, object]], contexts: Contexts, wanted: Wanted
) -> list[dict[str, object]]:
    """Return lines with shorter contexts; raises UsageError where none has a context."""
    from farm.cli.terminal import say, trying
    from farm.errors import UsageError
    from farm.settings import Settings
    from farm_workers.machine.abridging import Abridging, told
    from farm_workers.machine.opening import opened
    from farm_workers.machine.statements import LIMITS

    stated = list(dict.fromkeys((str(it.get("context") or ""), str(it["formal_statement"])) for it in made))
    if wanted.system != Kind.LEAN or not any(context for context, _ in stated):
        raise UsageError(
            "--context: no line has a `context`; lines of miniCTX and of `farm extract` have one"
        )
    settings = Settings.load()
    with opened(settings, concurrency=settings.concurrency) as machine, trying(len(stated)) as done:
        machine.installed.require_any()
        environment = machine.installed.lean(wanted.environment or settings.environment)
        outline = partial(machine.checker.outline, environment=environment, limits=LIMITS)
        abridging = Abridging(outline, contexts, at_once=settings.concurrency)
        found = dict(zip(stated, abridging.shown(stated, done), strict=True))
    say(told(found.values()))
    keys = ((str(it.get("context") or ""), str(it["formal_statement"])) for it in made)
    return [{**it, **found[key].fields(contexts)} for it, key in zip(made, keys, strict=True)]


def _tried(found: Copy, wanted: Wanted) -> list[TriedStatement]:
    """Have this machine try every statement."""
    from farm.cli.terminal import trying
    from farm.settings import Settings
    from farm_workers.machine.opening import opened
    from farm_workers.machine.statements import require_kind, tried

    settings = Settings.load()
    with opened(settings, concurrency=settings.concurrency) as machine:
        machine.installed.require_any()
        environment = machine.installed[wanted.environment or settings.environment]
        require_kind(environment, wanted.system)
        with trying(len(found.problems)) as done:
            return list(
                tried(found.problems, machine.judges, environment, at_once=settings.concurrency, done=done)
            )


def _facts(
    found: Copy, wanted: Wanted, output: Path, written: int, tried: Sequence[TriedStatement] | None
) -> dict[str, object]:
    facts: dict[str, object] = {
        "dataset": wanted.dataset.word,
        "system": wanted.system,
        "output": str(output),
        "lines": written,
        "problems": len(found.problems),
        "splits": found.splits,
        "notes": found.notes,
        "left_out": [{"place": str(each.place), "why": each.why} for each in found.left_out],
    }
    if tried is not None:
        facts["tried"] = len(tried)
        facts["wrong"] = [each.facts() for each in tried if each.is_wrong]
        facts["unjudged"] = [each.facts() for each in tried if each.is_unjudged]
    return facts


def _print(tried: Sequence[TriedStatement]) -> None:
    from farm.cli.terminal import count

    odd = [each for each in tried if each.is_wrong or each.is_unjudged]
    print_rows(("problem", "split", "reason", "first error"), [each.cells() for each in odd], most=_MOST)
    wrong = sum(each.is_wrong for each in tried)
    typer.echo(f"{len(tried) - len(odd)} of {count(len(tried), 'statement')} compile; {wrong} do not")


def _leave(tried: Sequence[TriedStatement]) -> None:
    if any(each.is_wrong for each in tried):
        raise typer.Exit(ExitStatus.NOT_PROVED)
    if any(each.is_unjudged for each in tried):
        raise typer.Exit(ExitStatus.UNJUDGED)
