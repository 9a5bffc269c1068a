"""What commands have in common: arguments, options, exit statuses, and how JSON is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

#: Exit status when some lines could not be judged.
SOME_UNJUDGED = 3

#: The version of what `--json` prints; a field may be added without a new one, never changed or taken away.
JSON_SCHEMA = 1

RunId = Annotated[
    str | None, Argument(metavar="[RUN]", help="A run's id or how it begins; the newest by default.")
]
SomeRun = Annotated[str, Argument(metavar="RUN", help="A run's id or how it begins.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON for scripts.")]
CpuSeconds = Annotated[
    float | None,
    Option(
        "--cpu",
        help="Seconds of processor time a check may use; by default twice the timeout.",
        show_default=False,
    ),
]
PolicyActions = Annotated[
    list[str] | None,
    Option(
        "--policy",
        metavar="RULE=ACTION",
        help="What a rule of the policy does: report, off, or on tier lean reject. Can be given again.",
        show_default=False,
    ),
]
TierName = Annotated[
    str,
    Option("--tier", help="Whom *proved* believes: kernel alone, audit (Lean asked it), or lean (its word)."),
]
Native = Annotated[
    bool, Option("--native", help="Allow proofs that rest on the compiler, such as those by native_decide.")
]
Wait = Annotated[bool, Option(help="Wait for the verdicts.")]
Export = Annotated[bool, Option(help="Write the verdicts into the manifests at the end.")]
Output = Annotated[Path | None, Option("-o", "--output", help="Write to this file, not into the manifest.")]


def print_json(**facts: object) -> None:
    """Print an object with the schema's version as one line of JSON."""
    typer.echo(json.dumps({"schema": JSON_SCHEMA, **facts}, default=str))
