"""The tutorial as a newcomer types it: each command succeeds and prints the lines that the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.commands import Command, lines
from tests.processes import PATIENCE, eventually

# The page types their commands.
pytestmark = pytest.mark.reaches(
    "farm.cli.operating",
    "farm.cli.serving",
    "farm.cli.show",
    "farm.cli.watching",
    "farm_workers.cli.reporting",
)
PAGE = (Path(__file__).parents[2] / "docs" / "start" / "tutorial.md").read_text()
_BLOCK = re.compile(r'^```(sh|text)(?: title="([^"]*)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"open (http://\S+)")


@dataclass(frozen=True)
class Newcomer:
    """Types commands into a shell of a folder, with the home of a farm."""

    folder: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("FARM_")}
        path = f"{Path(sys.executable).parent}:{inherited['PATH']}"
        return {**inherited, "PATH": path, "FARM_HOME": str(self.home), "COLUMNS": "120"}

    def types(self, commands: str) -> str:
        """Run commands until the first that fails; returns their output."""
        ended = subprocess.run(
            ["bash", "-euc", commands],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60 * PATIENCE,
        )
        assert ended.returncode == 0, ended.stdout
        return ended.stdout

    def starts(self, command: str, log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as file:
            return subprocess.Popen(
                ["bash", "-euc", f"exec {command}"],
                cwd=self.folder,
                env=self.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )


@pytest.fixture
def newcomer(farm: Command, tmp_path: Path) -> Newcomer:
    return Newcomer(tmp_path, Path(farm.settings["FARM_HOME"]))


def test_every_command_of_the_tutorial_prints_the_lines_that_it_shows(newcomer: Newcomer) -> None:
    log, services, printed = newcomer.folder / "serve.log", [], ""
    blocks = _BLOCK.findall(PAGE)
    assert len(blocks) > 10
    try:
        for kind, terminal, text in blocks:
            if kind == "text":
                assert [line for line in text.splitlines() if line not in printed] == []
            elif terminal:
                # Another port than the usual one, which a farm of this machine may have.
                services.append(newcomer.starts(f"{text.strip()} --port 0", log))
                eventually(lambda: _LINK.search(log.read_text()), seconds=60)
            else:
                printed = newcomer.types(text)
        _see_the_run(log.read_text())
    finally:
        for service in services:
            service.terminate()
            service.wait(30 * PATIENCE)
    assert [line["proof_status"] for line in lines(newcomer.folder / "first.jsonl")] == ["completed", "error"]
    assert "<svg" in (newcomer.folder / "report.html").read_text()


def _see_the_run(said: str) -> None:
    """Open the link that the service printed, and the first run that the page lists."""
    found = _LINK.search(said)
    assert found, said
    with httpx.Client(follow_redirects=True, timeout=20 * PATIENCE) as browser:
        page = str(browser.get(found[1]).url)
        # A machine that is busy with other tests answers 503 for a while.
        eventually(lambda: browser.get(page).status_code == httpx.codes.OK)
        assert "first.jsonl" in browser.get(page).text
