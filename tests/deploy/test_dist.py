"""What `make dist` builds installs into an empty venv, and judges the examples from an empty home."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")

pytestmark = pytest.mark.reaches("farm.version")


def _built(kind: str) -> Path:
    (found,) = (ROOT / "build" / "dist").glob(f"*.{kind}")
    return found


@pytest.fixture(scope="module")
def wheel() -> Path:
    subprocess.run(["make", "dist"], cwd=ROOT, check=True)
    return _built("whl")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may enter: checks see nothing of others."""
    with tempfile.TemporaryDirectory(prefix="farm-dist-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_wheel_built_from_the_sdist_is_the_wheel(wheel: Path, tmp_path: Path) -> None:
    subprocess.run(["tar", "-xf", _built("tar.gz"), "-C", tmp_path], check=True)
    (source,) = tmp_path.iterdir()
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        tmp_path / "built",
    ]
    subprocess.run(command, cwd=source, check=True)
    assert (tmp_path / "built" / wheel.name).read_bytes() == wheel.read_bytes()


def test_the_wheel_judges_the_examples_with_the_locked_packages(wheel: Path, folder: Path) -> None:
    python = folder / "venv" / "bin" / "python"
    install = [UV, "pip", "install", "--quiet", "--python", python]
    subprocess.run([UV, "venv", "--quiet", folder / "venv"], check=True)
    subprocess.run([*install, "--no-deps", "--require-hashes", "-r", ROOT / "requirements.lock"], check=True)
    # Without an index: the lock has every package that the wheel and its extras ask for.
    subprocess.run([*install, "--no-index", f"{wheel}[all]"], check=True)
    manifest = folder / "home" / "quickstart.jsonl"
    manifest.parent.mkdir()
    shutil.copy(ROOT / "examples" / "quickstart.jsonl", manifest)
    farm = [python.with_name("farm")]
    outside = {"PATH": "/usr/bin:/bin", "HOME": str(manifest.parent), "LANG": "C.UTF-8"}
    try:
        subprocess.run([*farm, "submit", manifest, "--memory-mib", "512"], env=outside, check=True)
        subprocess.run([*farm, "show"], env=outside, check=True)
    finally:
        subprocess.run([*farm, "down"], env=outside, check=True)
    lines = [json.loads(line)["farm"] for line in manifest.read_text().splitlines()]
    assert {line["verdict"] for line in lines} >= {"proved", "rejected", "timeout"}
    assert "judge_error" not in {line["verdict"] for line in lines}
    assert {line["checker_version"] for line in lines} == {wheel.name.split("-")[1]}
