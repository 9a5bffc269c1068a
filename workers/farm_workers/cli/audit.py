"""The command `farm audit`: an audit of one compiled module, with no farm and no Lean."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from farm.cli.options import AsJson, print_json
from farm.documents import decoded
from farm.errors import FarmError, UsageError
from farm.judging.audit import Audit
from farm_workers.audit import command


def add_to(app: typer.Typer) -> None:
    """Add `farm audit` to the `farm` command."""
    app.command("audit", epilog="Example: farm audit Proof.olean --challenge Challenge.olean")(audit)


def audit(
    module: Annotated[Path, Argument(help="The compiled module, an .olean file.")],
    challenge: Annotated[
        Path | None, Option(help="The compiled statement with `sorry` as its proof.", show_default=False)
    ] = None,
    target: Annotated[
        str | None,
        Option(
            help="The theorem's full name; by default the one that the challenge leaves open.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Audit a compiled module as data against the challenge that it should prove.

    Neither file is run, and no Lean is needed. The exit status is 0 when nothing speaks against the module, 1
    when something does.
    """
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
        raise typer.Exit(1)


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
