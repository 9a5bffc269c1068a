"""The command `farm audit`: an audit of one compiled module, with no farm and no Lean."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from farm.cli.options import AsJson, print_json
from farm.documents import decoded
from farm.errors import FarmError, UsageError
from farm.exit_status import ExitStatus
from farm.judging.audit import Audit
from farm_workers.audit import command
from farm_workers.cli.library import STANDARD, Comparison, Library, LibraryAsked, known, write


def add_to(app: typer.Typer) -> None:
    """Add `farm audit` to the `farm` command."""
    app.command("audit", epilog="Example: farm audit Proof.olean --challenge Challenge.olean")(audit)


_Modules = Annotated[
    list[str] | None,
    Argument(
        metavar="[MODULE]...",
        help="The compiled module, an .olean file; with --library, names of modules.",
        show_default=False,
    ),
]
_Challenge = Annotated[
    Path | None, Option(help="The compiled statement with `sorry` as its proof.", show_default=False)
]
_Target = Annotated[
    str | None,
    Option(
        help="The theorem's full name; by default the one that the challenge leaves open.",
        show_default=False,
    ),
]
_IsLibrary = Annotated[
    bool, Option("--library", help="Report the axioms and sorries below the declarations of modules.")
]
_Paths = Annotated[
    list[Path] | None,
    Option(
        help="With --library: a folder with compiled modules; those in the first are reported. "
        "Repeatable. By default the folders of --environment.",
        show_default=False,
    ),
]
_EnvironmentName = Annotated[
    str | None, Option(help="With --library: the Lean environment.", show_default=False)
]
_Baseline = Annotated[
    Path | None, Option(help="With --library: the file to compare with.", show_default=False)
]
_Writes = Annotated[
    bool, Option("--write-baseline", help="Write the file of --baseline, and compare nothing.")
]
_Allowed = Annotated[
    list[str] | None,
    Option(
        metavar="AXIOM",
        help="With --library: an axiom that is no difference; by default, without a baseline, propext, "
        "Classical.choice and Quot.sound. Repeatable.",
        show_default=False,
    ),
]


def audit(
    modules: _Modules = None,
    challenge: _Challenge = None,
    target: _Target = None,
    library: _IsLibrary = False,
    path: _Paths = None,
    environment: _EnvironmentName = None,
    baseline: _Baseline = None,
    write_baseline: _Writes = False,
    allow: _Allowed = None,
    as_json: AsJson = False,
) -> None:
    """Audit a compiled module as data against the challenge that it should prove, or a whole library.

    No file is run, and no Lean is needed. The exit status is 0 when nothing speaks against the module, 1 when
    something does. With --library it is 0 when no declaration differs from the baseline, 1 when some do.
    """
    if library:
        asked = _asked(modules or [], path, environment, allow, has_baseline=baseline is not None)
        _library(asked, baseline, writes=write_baseline, as_json=as_json)
    elif any((path, environment, baseline, write_baseline, allow)):
        raise UsageError(
            "--path, --environment, --baseline, --write-baseline and --allow go with --library; add that"
        )
    else:
        _module(modules or [], challenge, target, as_json=as_json)


def _module(modules: list[str], challenge: Path | None, target: str | None, *, as_json: bool) -> None:
    if len(modules) != 1:
        raise UsageError("give one compiled module, such as Proof.olean")
    module = Path(modules[0])
    if challenge is None and target is None:
        raise UsageError("no theorem is named; give --target NAME or --challenge FILE")
    for file in filter(None, (module, challenge)):
        if not file.is_file():
            raise UsageError(f"{file}: no such file; give a compiled module, such as Proof.olean")
    words = [str(module)]
    words += [] if challenge is None else ["--challenge", str(challenge)]
    words += [] if target is None else ["--target", target]
    facts = _facts(words)
    if as_json:
        print_json(**facts)
    else:
        _print(decoded(Audit, facts))
    if not facts["accepted"]:
        raise typer.Exit(ExitStatus.NOT_PROVED)


def _asked(
    modules: list[str],
    paths: list[Path] | None,
    environment: str | None,
    allowed: list[str] | None,
    *,
    has_baseline: bool,
) -> LibraryAsked:
    """Return what is asked about a library; without a baseline, the standard axioms are no difference."""
    usual = () if has_baseline else STANDARD
    roots, own = _folders(paths, environment)
    return LibraryAsked(roots=roots, own=own, modules=modules, allowed=usual if allowed is None else allowed)


def _folders(paths: list[Path] | None, environment: str | None) -> tuple[list[Path], list[Path]]:
    """Return all folders with a library's modules, and those to report on. Raises UsageError."""
    if paths and environment:
        raise UsageError("--environment names folders as --path does; give one of the two")
    for folder in paths or []:
        if not folder.is_dir():
            raise UsageError(f"{folder}: no such folder; give one with compiled modules")
    if paths:
        return paths, paths[:1]
    from farm.settings import Settings
    from farm_workers.environments.lean_environment import module_folders
    from farm_workers.machine.opening import opened

    settings = Settings.load()
    with opened(settings) as machine:
        machine.installed.require_any()
        chosen = machine.installed.lean(environment or settings.environment)
    return module_folders(chosen), list(map(Path, chosen.lean_path))


def _library(asked: LibraryAsked, baseline: Path | None, *, writes: bool, as_json: bool) -> None:
    if writes and baseline is None:
        raise UsageError("--write-baseline writes the file that --baseline names; give --baseline FILE")
    before = {} if baseline is None or writes else known(baseline)
    library = Library.of(asked)
    if writes and baseline is not None:
        write(library, baseline)
        typer.echo(f"{baseline}: {len(library.rests)} of {library.declarations} declarations", err=True)
        return
    found = library.compared(before)
    if as_json:
        print_json(**asdict(found))
    else:
        _print_library(found)
    if found.differences:
        raise typer.Exit(ExitStatus.NOT_PROVED)


def _print_library(found: Comparison) -> None:
    from farm.cli.terminal import visible

    for each in found.differences:
        typer.echo(visible(f"{each.name} ({each.module}): {each.rests.words}; before: {each.was.words}"))
    for name in found.gone:
        typer.echo(visible(f"{name}: rests on nothing any more, or is gone"), err=True)
    typer.echo(f"{len(found.differences)} of {found.declarations} declarations differ")


def _facts(words: list[str]) -> dict[str, object]:
    done = subprocess.run(
        command(sys.executable, "__main__", words), capture_output=True, text=True, check=False
    )
    said = done.stderr.strip().rpartition("\n")[2]
    if done.returncode == 2:
        raise UsageError(said)
    try:
        facts: dict[str, object] = json.loads(done.stdout)
    except ValueError as error:
        raise FarmError(f"the audit ended with status {done.returncode}: {said}") from error
    return facts


def _print(audit: Audit) -> None:
    from farm.cli.terminal import visible

    for finding in audit.findings:
        typer.echo(visible(f"{finding.word}: {finding.sentence}"))
    for sentence in audit.not_checked:
        typer.echo(visible(f"not checked: {sentence}"))
    if audit.rests_on_sorry_of:
        typer.echo(visible(f"rests on the sorry of: {', '.join(audit.rests_on_sorry_of)}"))
    axioms = ", ".join(audit.axioms) or "none"
    typer.echo(visible(f"Lean {audit.lean_version}, target {audit.target}, axioms: {axioms}"))
    typer.echo("accepted" if audit.accepted else "rejected")
