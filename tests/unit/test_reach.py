"""Which files of tests a change reaches, and what `make test` leaves out."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path, PurePosixPath

import pytest
import typer

from farm.cli.command import app
from tests.imports import REGISTRIES, STARTS
from tests.processes import CODE
from tests.reach import EVERYTHING, NAMED, ROOT, Suite, base, changed


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite(ROOT)


@pytest.fixture(scope="module")
def chosen(suite: Suite) -> Callable[..., set[str]]:
    """The names of the files of tests that run for a change of some paths."""
    return lambda *paths: set(suite.chosen(suite.change(paths), ["tests"]))


def _modules(commands: typer.Typer, *group: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in commands.registered_commands:
        assert each.callback is not None
        word = group[0] if group else each.name or each.callback.__name__
        found.setdefault(word, set()).add(each.callback.__module__)
    for each in commands.registered_groups:
        assert each.typer_instance is not None
        found |= _modules(each.typer_instance, str(each.name))
    return found


def test_every_command_has_a_row_with_its_module() -> None:
    everything = typer.Typer()
    for point in entry_points(group="farm.commands"):
        point.load()(everything)
    commands = _modules(app) | _modules(everything)
    assert len(commands) > 25
    assert {
        word: left for word, modules in commands.items() if (left := modules - {*STARTS.get(word, ())})
    } == {}


def test_every_name_of_the_tables_is_a_module(suite: Suite) -> None:
    assert {each for modules in STARTS.values() for each in modules} <= suite.product.modules
    assert suite.product.modules.issuperset(REGISTRIES)


def test_every_path_is_of_the_product_or_of_the_tests_or_has_a_row(suite: Suite) -> None:
    paths = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    places = (*suite.product.folders, "tests", *NAMED, *EVERYTHING)
    assert [each for each in paths if not any(PurePosixPath(each).is_relative_to(p) for p in places)] == []
    assert [each for each in (*NAMED, *EVERYTHING) if not (ROOT / each).exists()] == []


def test_every_module_is_reached_by_a_test(suite: Suite) -> None:
    reached = set[str]().union(*(each.modules for each in suite.files))
    unreached = suite.product.modules - reached
    # A package that only says what it is has modules that are reached, and its change reaches all of them.
    assert [each for each in unreached if suite.product.file(each).name != "__init__.py"] == []
    for package in unreached:
        path = suite.product.file(package).relative_to(ROOT)
        assert suite.chosen(suite.change([str(path)]), ["tests/acceptance", "tests/systems"]), package


@pytest.mark.parametrize(
    ("path", "runs", "runs_not"),
    [
        ("farm/reports/svg.py", "acceptance/test_report.py", "acceptance/test_seal.py"),
        ("farm/cli/keys.py", "acceptance/test_keys_command.py", "acceptance/test_seal.py"),
        ("farm/trainers/trl.py", "acceptance/test_trainers.py", "acceptance/test_submit.py"),
        ("farm/service/routers/batches.py", "acceptance/test_service.py", "acceptance/test_seal.py"),
        ("farm/service/page/templates/layout.html", "ui/test_page.py", "acceptance/test_seal.py"),
        ("farm/agents/server.py", "acceptance/test_mcp.py", "acceptance/test_seal.py"),
        ("farm/store/transitions.py", "acceptance/test_recovery.py", "acceptance/test_seal.py"),
        ("farm/systems/metamath/record.py", "systems/test_metamath_farm.py", "acceptance/test_submit.py"),
        (
            "workers/farm_workers/loop/heartbeat.py",
            "acceptance/test_quickstart.py",
            "acceptance/test_seal.py",
        ),
        ("workers/farm_workers/seal/kernel.py", "acceptance/test_quickstart.py", "acceptance/test_box.py"),
        ("workers/farm_workers/mending/trials.py", "acceptance/test_mending.py", "acceptance/test_seal.py"),
        ("workers/farm_workers/exploits/native.toml", "acceptance/test_corpus.py", "acceptance/test_box.py"),
        ("docs/start/tutorial.md", "acceptance/test_tutorial.py", "acceptance/test_seal.py"),
        ("docker/monitoring/rules.yaml", "deploy/test_chart.py", "acceptance/test_seal.py"),
        ("helm/values.yaml", "deploy/test_chart_at_work.py", "acceptance/test_seal.py"),
        ("examples/quickstart.jsonl", "acceptance/test_quickstart.py", "acceptance/test_seal.py"),
        ("tests/sealing.py", "acceptance/test_seal.py", "acceptance/test_submit.py"),
        ("tests/unit/test_reach.py", "unit/test_reach.py", "acceptance/test_seal.py"),
        ("tests/ui/conftest.py", "ui/test_rules.py", "acceptance/test_seal.py"),
    ],
)
def test_a_change_runs_what_rests_on_it(
    chosen: Callable[..., set[str]], path: str, runs: str, runs_not: str
) -> None:
    found = chosen(path)
    assert f"tests/{runs}" in found
    assert f"tests/{runs_not}" not in found


@pytest.mark.parametrize(
    "path",
    ["pyproject.toml", "tests/conftest.py", "farm/__init__.py", "farm/gone.py", "new", f"tests/{'new' * 3}"],
)
def test_a_change_of_what_all_rest_on_runs_everything(
    suite: Suite, chosen: Callable[..., set[str]], path: str
) -> None:
    assert chosen("farm/trainers/trl.py", path) == {each.path for each in suite.files}


def test_what_a_fixture_uses_is_of_the_tests_that_name_it(tmp_path: Path) -> None:
    for place in ("farm", "workers/farm_workers"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).symlink_to(ROOT / place)
    folder = tmp_path / "tests" / "some"
    folder.mkdir(parents=True)
    (folder.parent / "helper.py").write_text('WORDS = ["farm", "keys"]\n')
    (folder / "conftest.py").write_text(
        "import pytest\nfrom farm.reports import svg\nfrom tests import helper\n\n"
        "def drawn(): return svg\n@pytest.fixture\ndef figure(): return drawn()\n"
        "@pytest.fixture\ndef command(figure): return helper.WORDS\n"
        "@pytest.fixture(autouse=True)\ndef always():\n    from farm.trainers import rows\n"
    )
    for name in ("figure", "command", "other"):
        (folder / f"test_{name}.py").write_text(f"def test_it({name}): pass\n")
    (folder / "test_marked.py").write_text("pytestmark = pytest.mark.reaches('farm.reports')\n")
    suite = Suite(tmp_path)

    def found(path: str) -> set[str]:
        files = suite.chosen(suite.change([path]), ["tests"])
        return {Path(each).stem.removeprefix("test_") for each in files}

    assert found("farm/reports/svg.py") == {"figure", "command", "marked"}
    assert found("farm/cli/keys.py") == {"command"}
    assert found("tests/helper.py") == {"command"}
    assert found("farm/trainers/rows.py") == {"figure", "command", "other", "marked"}
    assert found("farm/trainers/trl.py") == set()


@pytest.fixture
def git(tmp_path: Path) -> Callable[..., str]:
    """Git in a repository with two commits, whose remote has the first one."""

    def git(*words: str) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        return subprocess.check_output(["git", *who, *words], cwd=tmp_path, text=True).strip()

    git("init", "--quiet", "--initial-branch=main")
    for name in ("one", "two"):
        (tmp_path / name).touch()
        git("add", name)
        git("commit", "--quiet", "--message", name)
    git("update-ref", "refs/remotes/origin/main", "HEAD^")
    return git


def test_the_base_is_named_or_where_the_branch_left_the_remote_and_may_be_unknown(
    git: Callable[..., str], tmp_path: Path
) -> None:
    first, second = git("rev-parse", "HEAD^"), git("rev-parse", "HEAD")
    assert base(tmp_path, None) == first
    assert base(tmp_path, "main") == second
    assert base(tmp_path, "nothing") is None
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    assert base(tmp_path, None) is None
    git("update-ref", "-d", "refs/remotes/origin/main")
    assert base(tmp_path, None) is None


def test_a_change_has_commits_edits_removals_and_new_files(git: Callable[..., str], tmp_path: Path) -> None:
    assert changed(tmp_path, "HEAD^") == ["two"]
    (tmp_path / "one").rename(tmp_path / "three")
    assert changed(tmp_path, "HEAD^") == ["one", "three", "two"]
    assert changed(tmp_path, "nothing") is None


def test_make_test_runs_marked_tests_of_acceptance_only_and_says_what_it_left_out(tmp_path: Path) -> None:
    files = {
        "unit/test_a.py": "def test_runs(): pass\n@pytest.mark.whole\ndef test_large(): pass\n",
        "acceptance/test_b.py": "@pytest.mark.newcomer\ndef test_path(): pass\ndef test_rest(): pass\n"
        "@pytest.mark.long\ndef test_long(): pass\n",
    }
    for name, text in files.items():
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True)
        path.write_text(f"import pytest\n{text}")
    options = ("-p", "tests.conftest", "-c", "/dev/null", "-o", "timeout=300", "-n", "1", "-v")
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *options,
            "-m",
            _make("test"),
            "--rootdir",
            tmp_path,
            tmp_path / "tests",
        ],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": CODE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in ended.stdout, ended.stdout + ended.stderr
    assert "::test_runs" in ended.stdout
    assert "::test_path" in ended.stdout
    assert "2 tests were left out; `make test-all` runs them too" in ended.stdout


def _make(target: str) -> str:
    """Return the expression by which a target of the Makefile chooses tests."""
    said = subprocess.run(["make", "-n", "-s", target], cwd=ROOT, capture_output=True, text=True, check=True)
    before, words = "", []
    for word in shlex.split(said.stdout):
        words += [word] if before == "-m" else []
        before = word
    return words[-1]
