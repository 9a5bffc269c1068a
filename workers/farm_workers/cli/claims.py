"""The command `farm verify-repo`: judges the proofs in a folder against a benchmark's own statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from farm.cli.options import AsJson, print_json
from farm.errors import UsageError
from farm.exit_status import ExitStatus
from farm_workers.cli.outputs import limits_of, print_rows, require_output, write_lines

if TYPE_CHECKING:
    from farm.datasets.claims import Claim
    from farm_workers.environments.lean_environment import LeanEnvironment
    from farm_workers.machine.claims import Judged, Problem, Result, Verifying
    from farm_workers.machine.opening import Machine

#: The most rows of the table; `--json` has all.
_MOST = 60

_Path = Annotated[Path, Argument(help="A Lean file, or a folder of them, such as a clone.")]
_Against = Annotated[Path, Option("--against", help="The benchmark: a manifest, as of `farm dataset`.")]
_Output = Annotated[Path, Option("--output", "-o", help="The manifest to write, .jsonl.")]
_Module = Annotated[str, Option(help="Only files of this module pattern, such as 'Proofs.*'.")]
_ByType = Annotated[
    bool, Option("--by-type", help="Have Lean compare statements that have no pair by name or text.")
]
_Environment = Annotated[str | None, Option(help="The Lean environment.", show_default=False)]
_Timeout = Annotated[float, Option(help="Seconds that the check of a claim may take.")]
_MemoryMib = Annotated[int | None, Option(help="MiB of memory that it may use.", show_default=False)]
_Force = Annotated[bool, Option("--force", help="Replace the output if it is there already.")]


def add_to(app: typer.Typer) -> None:
    """Add `farm verify-repo` to the `farm` command."""
    app.command(
        "verify-repo", epilog="Example: farm verify-repo Proofs --against minif2f.jsonl -o claims.jsonl"
    )(verify_repo)


def verify_repo(
    path: _Path,
    against: _Against,
    output: _Output,
    module: _Module = "*",
    by_type: _ByType = False,
    environment: _Environment = None,
    timeout: _Timeout = 60.0,
    memory_mib: _MemoryMib = None,
    force: _Force = False,
    as_json: AsJson = False,
) -> None:
    """Judge the theorems of Lean files that claim to prove a benchmark's problems.

    Each is judged against the benchmark's own statement. The exit status is 0 when every claim is proved, 4
    when one is not, and 3 when one could not be judged; problems without a claim are only named.
    """
    from farm.settings import Settings
    from farm_workers.machine.claims import Result, Verifying
    from farm_workers.machine.opening import opened

    settings = Settings.load()
    limits = limits_of(settings, timeout, memory_mib)
    require_output(output, path, against, suffix=".jsonl", force=force)
    problems, found = _problems(against), _found(path, module)
    with opened(settings, concurrency=settings.concurrency) as machine:
        chosen = _audited(machine, environment or _named_by(problems) or settings.environment)
        verifying = Verifying(
            checker=machine.checker, environment=chosen, limits=limits, at_once=settings.concurrency
        )
        judged = _judged(verifying, problems, found, by_type=by_type)
        lines = [each.line(chosen, machine.checker.isolation) for each in judged]
    write_lines(output, lines)
    counts = Counter(each.result for each in judged)
    if as_json:
        print_json(output=str(output), theorems=len(found), **_facts(judged, counts))
    else:
        _print(judged, counts, output)
    if counts[Result.UNJUDGED]:
        raise typer.Exit(ExitStatus.UNJUDGED)
    if sum(counts.values()) > counts[Result.PROVED] + counts[Result.MISSING]:
        raise typer.Exit(ExitStatus.NOT_PROVED)


def _audited(machine: Machine, name: str) -> LeanEnvironment:
    """Return an environment. Raises UsageError for one whose modules cannot be audited."""
    machine.installed.require_any()
    found = machine.installed.lean(name)
    if not found.audited:
        raise UsageError(
            f"--environment {name}: its modules cannot be audited, so no claim would be compared with the "
            "benchmark's statement; use another environment"
        )
    return found


def _problems(path: Path) -> list[Problem]:
    """Return the problems of a manifest, each once. Raises ManifestError."""
    import json

    from farm_workers.cli.programs import manifest_lines
    from farm_workers.machine.claims import Problem

    made = dict[str, Problem]()
    for text, entry in manifest_lines(path, may_lack_answer=True):
        problem = Problem.of(json.loads(text), entry)
        if entry.formal_statement.strip():
            made.setdefault(problem.key, problem)
    if not made:
        raise UsageError(f"--against {path}: no line has a formal_statement; give a benchmark's manifest")
    return list(made.values())


def _named_by(problems: Sequence[Problem]) -> str | None:
    """Return the environment that the lines of a benchmark name, None for none. Raises UsageError for two."""
    names = sorted({each.entry.environment for each in problems if each.entry.environment is not None})
    if len(names) > 1:
        raise UsageError(
            f"--against: its lines name several environments, {' and '.join(names[:2])}; "
            "choose one with --environment, or split the benchmark"
        )
    return names[0] if names else None


def _found(path: Path, module: str) -> list[Claim]:
    """Return the theorems of the Lean files of a path. Raises UsageError for a path without files."""
    from farm.cli.terminal import say
    from farm.datasets.claims import Claim, claims
    from farm_workers.machine.repository import NoSource, source_of, sources

    found = list[Claim]()
    for name, file in sources(path, module):
        try:
            found += claims(name, source_of(name, file).text)
        except NoSource as error:
            say(f"Note: {name} was not read: {error}")
    return found


def _judged(
    verifying: Verifying, problems: Sequence[Problem], found: Sequence[Claim], *, by_type: bool
) -> list[Judged]:
    from farm.cli.terminal import trying

    made = verifying.paired(problems, found, by_type=by_type)
    with trying(len(problems)) as done:
        return list(verifying.judged(problems, made, done))


def _facts(judged: Sequence[Judged], counts: Counter[Result]) -> dict[str, Any]:
    return {
        "problems": len(judged),
        "counts": {str(result): number for result, number in counts.items()},
        "claims": [{"problem": each.problem.entry.name, **each.claim()} for each in judged],
    }


def _print(judged: Sequence[Judged], counts: Counter[Result], output: Path) -> None:
    from farm.cli.terminal import count, say
    from farm_workers.machine.claims import Result

    claimed = [each.cells() for each in judged if each.result is not Result.MISSING]
    print_rows(("problem", "result", "claim", "paired by", "more"), claimed, most=_MOST)
    say(", ".join(f"{counts[result]} {result}" for result in Result if counts[result]))
    say(f"Wrote {count(len(judged), 'line')} into {output}")
