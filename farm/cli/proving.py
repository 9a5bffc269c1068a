"""The commands that step in proofs: prove, at a terminal, and search, over a manifest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from farm.cli.options import AsJson, print_json
from farm.errors import UsageError
from farm.exit_status import ExitStatus

# Slow imports stand in the commands that need them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.api import Session
    from farm.client.states import State, Step
    from farm.search.manifest import Line

LeanFile = Annotated[Path, Argument(help="A Lean file with a sorry for each open place.", metavar="FILE")]
Environment = Annotated[str | None, Option(help="The Lean environment.", show_default=False)]
Seconds = Annotated[float, Option(help="Seconds that each tactic may take.")]
Manifest = Annotated[Path, Argument(help="A manifest with statements to prove.")]
Answers = Annotated[
    Path | None,
    Option("--output", "-o", help="Manifest for the answers; MANIFEST.searched.jsonl by default."),
]
ProverName = Annotated[
    str, Option(help="tidy, tidy-mathlib, a file with a list of tactics, or the URL of a prover.")
]
StrategyName = Annotated[str, Option(help="best-first, length-normalized, depth-first, breadth-first, mcts.")]

_HELP = """\
TACTIC            try it; a second one behind || is tried if the first fails
undo              go back one tactic
goals             print the open goals again
script            print the tactics so far
root N            go to the Nth sorry
done              have the whole text sealed, and end
quit              end without a seal"""


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the `farm` command."""
    app.command(epilog="Example: farm prove theorem.lean")(prove)
    app.command(epilog="Example: farm search problems.jsonl --prover tidy --expansions 128")(search)


def prove(file: LeanFile, environment: Environment = None, seconds: Seconds = 10.0) -> None:
    """Prove a theorem tactic by tactic in this terminal, ending with a sealed proof.

    Type `help` for the commands. The exit status is 0 for a proof, 3 if none was sealed.
    """
    from farm.api import Farm

    try:
        program = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}; name a Lean file in UTF-8") from error
    with Farm() as farm, farm.session(program, environment=environment) as session:
        typer.echo(f"{len(session.roots)} open place(s); type help for the commands")
        if not _Dialogue(session, seconds).run():
            raise typer.Exit(ExitStatus.UNJUDGED)


class _Dialogue:
    """A person at a terminal, who steps in a session."""

    def __init__(self, session: Session, seconds: float) -> None:
        self._session, self._seconds = session, seconds
        self._at = 0
        self._ways: list[list[State]] = [[root] for root in session.roots]

    @property
    def _here(self) -> State:
        return self._ways[self._at][-1]

    def run(self) -> bool:
        """Take commands until the end; return whether a proof was sealed."""
        self._show()
        while True:
            try:
                line = input(f"{self._at + 1}.{len(self._here.tactics)}> ").strip()
            except EOFError:
                line = "done" if all(not way[-1].goals for way in self._ways) else "quit"
            if line == "quit":
                return False
            if line == "done":
                if self._sealed():
                    return True
            elif line:
                self._obey(line)

    def _obey(self, line: str) -> None:
        match line.split():
            case ["help"]:
                typer.echo(_HELP)
            case ["undo"]:
                self._undo()
            case ["goals"]:
                self._show()
            case ["script"]:
                typer.echo("\n".join(self._here.tactics) or "(no tactic yet)")
            case ["root", number] if number.isdecimal():
                self._go(int(number))
            case _:
                self._try([each.strip() for each in line.split("||")])

    def _undo(self) -> None:
        if len(self._ways[self._at]) > 1:
            self._ways[self._at].pop()
        self._show()

    def _go(self, number: int) -> None:
        if 0 < number <= len(self._ways):
            self._at = number - 1
            self._show()
        else:
            typer.echo(f"there are the roots 1 to {len(self._ways)}")

    def _try(self, tactics: list[str]) -> None:
        found = self._session.step(self._here.id, tactics, seconds=self._seconds, first_success=True)
        for step in found:
            if step.state is not None:
                self._ways[self._at].append(self._session.state(step.state))
                _say_messages(step)
                self._show()
                return
            typer.echo(f"{step.outcome}: {step.message}")

    def _show(self) -> None:
        goals = self._here.goals
        typer.echo("\n\n".join(goals) if goals else "no goals; type done to have the whole text sealed")

    def _sealed(self) -> bool:
        verdict = self._session.prove(*(way[-1] for way in self._ways))
        typer.echo(f"{verdict.verdict}: {verdict.reason}\n{verdict.detail}")
        if verdict.verdict == "proved":
            typer.echo(f"\n{verdict.program}")
        return verdict.verdict == "proved"


def _say_messages(step: Step) -> None:
    for each in step.messages:
        typer.echo(each)


def search(
    manifest: Manifest,
    output: Answers = None,
    prover: ProverName = "tidy",
    strategy: StrategyName = "best-first",
    expansions: Annotated[int, Option(min=1, help="States to expand for each statement.")] = 128,
    width: Annotated[int, Option(min=1, max=64, help="Tactics to try on a state.")] = 32,
    depth: Annotated[int, Option(min=1, max=1000, help="Tactics that a proof may have.")] = 32,
    queue: Annotated[int, Option(min=1, help="States that may wait for expansion.")] = 4096,
    seconds: Seconds = 5.0,
    at_once: Annotated[int, Option(min=1, max=64, help="Statements to search at the same time.")] = 2,
    environment: Environment = None,
    disprove: Annotated[bool, Option("--disprove", help="Search for proofs of the negations.")] = False,
    as_json: AsJson = False,
) -> None:
    """Search for a proof of each statement of a manifest, tactic by tactic, and have what is found sealed.

    The output is a manifest whose lines have the proof as `generation` and the verdict as `proof_status`. A
    search that was interrupted goes on: lines of the output are not searched again.
    """
    from farm.api import Farm
    from farm.cli.terminal import following
    from farm.search.best_first import Limits
    from farm.search.frontier import Strategy
    from farm.search.manifest import search_all, summary
    from farm.search.provers import prover as named
    from farm.task import Kind, Task

    if strategy not in list(Strategy):
        raise UsageError(f"--strategy {strategy} is none of {', '.join(Strategy)}")
    limits = Limits(expansions=expansions, width=width, depth=depth, queue=queue, seconds=seconds)
    asked = named(prover)
    target = output or manifest.with_suffix(".searched.jsonl")
    with Farm() as farm, following("Searching") as show:
        done: list[Line] = []
        for line in search_all(
            farm,
            manifest,
            target,
            asked,
            strategy=Strategy(strategy),
            limits=limits,
            environment=environment,
            at_once=at_once,
            task=Task(task=Kind.DISPROVE) if disprove else Task(),
        ):
            done.append(line)
            if line.is_refused:
                typer.echo(f"{manifest}, line {line.line}: not searched: {line.reason}", err=True)
            show(f"{len(done)} searched, {sum(each.is_proved for each in done)} proved")
    told = summary(target)
    if as_json:
        print_json(output=str(target), **told)
        return
    typer.echo(
        f"{told['proved']} of {told['lines']} proved ({told['pass_rate']:.1%}), "
        f"{told['refused']} not searched; mean length {told['mean_tactics']:.1f} tactics, "
        f"mean {told['mean_expansions']:.1f} expansions\n"
        f"Answers: {target}"
    )
