"""The shared parts of commands: arguments, options, exit statuses, and the form of JSON output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

#: The version of the output of `--json`; a field may be added under the same version, never changed or
#: removed.
JSON_SCHEMA = 1

RunId = Annotated[
    str | None,
    Argument(metavar="[RUN]", help="Id of a run, or a prefix of it; the newest run by default."),
]
SomeRun = Annotated[str, Argument(metavar="RUN", help="Id of a run, or a prefix of it.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON for scripts.")]
CpuSeconds = Annotated[
    float | None,
    Option(
        "--cpu",
        help="Processor time limit of a check in seconds; by default twice the timeout.",
        show_default=False,
    ),
]
PolicyActions = Annotated[
    list[str] | None,
    Option(
        "--policy",
        metavar="RULE=ACTION",
        help="Action of a policy rule: report, off, or (tier lean only) reject. Repeatable.",
        show_default=False,
    ),
]
TierName = Annotated[
    str,
    Option(
        "--tier",
        help="What *proved* trusts: the kernel only, audit (Lean's kernel calls), or lean (all of Lean).",
    ),
]
Native = Annotated[
    bool, Option("--native", help="Allow proofs that trust the compiler, such as those by native_decide.")
]
AllParts = Annotated[
    bool, Option("--require-all-parts", help="Demand proofs of all theorems that a statement leaves open.")
]
Wait = Annotated[bool, Option(help="Wait for the verdicts.")]
Export = Annotated[bool, Option(help="Write the verdicts into the manifests at the end.")]
Output = Annotated[Path | None, Option("-o", "--output", help="Write to this file instead of the manifest.")]
Force = Annotated[bool, Option("--force", help="Replace the output if it is there already.")]


def print_json(**facts: object) -> None:
    """Print an object with the schema's version as one line of JSON."""
    typer.echo(json.dumps({"schema": JSON_SCHEMA, **facts}, default=str))
