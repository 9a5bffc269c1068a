"""The command line as it is documented: each has an example, and a row in docs/reference/commands.md."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperGroup
from typer.testing import CliRunner

from farm.cli.command import app
from farm.cli.help import PANELS
from farm.version import farm_version
from tests.commands import Command

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "commands.md").read_text()


def _commands() -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    for point in entry_points(group="farm.commands"):
        point.load()(app)
    yield from _leaves("", typer.main.get_command(app))


def _leaves(path: str, command: object) -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    if isinstance(command, TyperGroup):
        if path and command.invoke_without_command:
            yield path, command
        for name, member in command.commands.items():
            yield from _leaves(f"{path} {name}".strip(), member)
    elif isinstance(command, TyperCommand):
        yield path, command


def _helps(path: str, command: object) -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    if isinstance(command, TyperCommand | TyperGroup):
        yield path, command
    for name, member in getattr(command, "commands", {}).items():
        yield from _helps(f"{path} {name}".strip(), member)


COMMANDS = dict(_commands())
HELPS = dict(_helps("", typer.main.get_command(app)))
_OPTIONS = [(path, option) for path, command in COMMANDS.items() for option in command.params]


def test_the_commands_are_those_of_the_design() -> None:
    assert set(COMMANDS) == {
        *("submit", "status", "show", "report", "export"),
        "holes",
        *("cancel", "rejudge", "prune", "serve"),
        *("keys add", "keys list", "keys revoke"),
        *("prove", "search", "bundle"),
        *("serve", "mcp", "metrics"),
        *("check", "audit", "dataset", "extract", "selftest", "worker", "bench"),
        *("mend", "verify-repo"),
        *("environments", "environments add", "environments declare", "environments fit"),
        *("environments probe", "environments verify"),
        *("environments pack", "environments remove"),
        *("down", "db reader", "db roles", "db upgrade", "doctor"),
    }


def test_there_are_at_most_thirty_commands_each_in_one_panel_and_eight_come_first() -> None:
    top = [path.partition(" ")[0] for path in COMMANDS]
    assert sorted(set(top)) == sorted(name for names in PANELS.values() for name in names)
    assert len(set(top)) <= 30
    assert len(next(iter(PANELS.values()))) == 8


def test_a_command_says_what_it_does_and_gives_an_example() -> None:
    for path in COMMANDS:
        command = COMMANDS[path]
        assert re.fullmatch(r"[A-Z].*\.", (command.help or "").partition("\n")[0]), path
        assert re.match(rf"Example: ([^|]* \| )?farm {path}", command.epilog or ""), path


#: Options that do not go together, and what the refusal says.
REFUSED = {
    "status --runs --workers": "--runs and --workers show different things; give one of them",
    "status k3m9 --watch": "RUN and --watch show different things",
    "rejudge k3m9 --verdict timeout": "pick lines of the run itself; add --in-place",
    "rejudge k3m9 --in-place --priority batch": "--priority is for another run",
    "submit a.jsonl -o b.jsonl": "-o and --force belong to --dry-run",
    "holes k3m9 -o a.jsonl --open": "--open belongs to --fill",
    "holes a.jsonl -o b.jsonl --fill --cut": "leave it out with --fill",
    "holes k3m9 7xwp -o a.jsonl": "2 runs are given",
    "report --leaderboard board --tactics": "--leaderboard and --tactics exclude each other",
    "report --leaderboard board --format csv": "leave out --format and --table",
    "report --tactics --by difficulty": "--by is for the report of verdicts",
    "report --bundles": "--bundles belongs to --leaderboard; add it",
    "mend a.lean -o b.lean": "give exactly one of --tidy, --repair, --minimize",
    "mend a.lean -o b.lean --tidy --repair": "give exactly one of",
    "mend a.lean -o b.lean --tidy --sorry": "--sorry belongs to --repair",
    "mend a.lean -o b.lean --repair --self-contained t": "--self-contained belongs to --minimize",
    "worker --now": "--now belongs to --sweep",
    "selftest --write tricks --served": "--write judges nothing; leave out",
}


@pytest.mark.parametrize("words", REFUSED)
def test_options_that_do_not_go_together_are_refused_before_anything_starts(
    tmp_path: Path, words: str
) -> None:
    said = Command({"FARM_HOME": str(tmp_path / "home")})(*words.split())
    assert (said.returncode, REFUSED[words] in said.stderr) == (2, True), said.stderr
    assert not list(tmp_path.iterdir())


def test_an_option_says_what_it_does() -> None:
    for path, option in _OPTIONS:
        assert option.name == "help" or option.help, path


def test_a_command_stands_in_the_table_of_the_page() -> None:
    for path in COMMANDS:
        assert re.search(rf"^\| `farm {path}[ `]", PAGE, re.MULTILINE), path


def test_the_examples_of_commands_use_options_that_there_are() -> None:
    for path, command in COMMANDS.items():
        known = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}
        for example in re.findall(rf"farm {path}[^;|]*", command.epilog or ""):
            assert set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", example)) <= known, path


def test_the_exit_statuses_are_documented() -> None:
    for status in (
        "0 | every line",
        "1 | the farm failed",
        "2 | bad usage or bad input",
        "3 | some lines",
        "5 | some manifests",
        "6 | lines that were proved",
        "7 | an environment",
    ):
        assert f"| {status}" in PAGE


@pytest.mark.whole
def test_help_cuts_no_name_and_no_sentence_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for path, command in HELPS.items():
        said = CliRunner().invoke(app, [*path.split(), "--help"]).stdout
        lines = said.splitlines()
        for option in command.params:
            for name in _shown(option):
                assert any(name in line for line in lines), (path, name)
        for name, member in getattr(command, "commands", {}).items():
            sentences = " ".join((member.help or "").partition("\n\n")[0].split())
            assert f"{name} {sentences}" in " ".join(said.split()), path
        # What may be given several times is marked by dots right behind its name; nothing else has any.
        assert "…" not in said, path
        assert not re.search(r"(?<![\w}\]])\.\.\.|\.\.\.(?![\s\]])", said), said
        assert not [line for line in lines if line.endswith("...") and not line.startswith("Usage:")], path
        if path:
            example = (command.epilog or "").removeprefix("\b\n").partition("\n\n")[0]
            assert example in said, path


def _shown(option: typer.core.TyperOption) -> tuple[str, ...]:
    """Return what the help must show of an option or an argument."""
    metavar = (option.metavar,) if option.metavar else ()
    flags = (*option.opts, *option.secondary_opts)
    return metavar if metavar and option.param_type_name == "argument" else (*flags, *metavar)


def test_the_version_is_printed_alone() -> None:
    said = Command()("--version")
    assert (said.returncode, said.stdout, said.stderr) == (0, f"farm {farm_version()}\n", "")


def test_help_shows_the_commands_without_starting_anything(tmp_path: Path) -> None:
    said = Command({"FARM_HOME": str(tmp_path / "home")})("--help")
    assert said.returncode == 0
    for path in COMMANDS:
        assert path.partition(" ")[0] in said.stdout
    assert not (tmp_path / "home").exists()


def test_help_loads_neither_the_database_nor_the_queue() -> None:
    program = (
        "import sys, farm.cli.command\n"
        "try: farm.cli.command.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print({'celery', 'sqlalchemy', 'psycopg'} & set(sys.modules), file=sys.stderr)"
    )
    said = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert said.stderr == "set()\n"


def test_a_shell_can_complete_commands() -> None:
    asked = {"_FARM_COMPLETE": "complete_bash", "COMP_WORDS": "farm sub", "COMP_CWORD": "1"}
    assert Command(asked)().stdout.split() == ["submit"]


def test_a_shell_can_complete_options() -> None:
    asked = {"_FARM_COMPLETE": "complete_bash", "COMP_WORDS": "farm submit --no-w", "COMP_CWORD": "2"}
    assert Command(asked)().stdout.split() == ["--no-wait"]
