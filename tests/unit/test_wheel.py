"""What a user installs holds all that the farm needs, under names that nobody else has."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from farm.version import farm_version
from tests.bare_install import ROOT, Bare, built

PACKAGES = {
    "farm": "farm",
    "farm_workers": "workers/farm_workers",
    "farm_migrations": "migrations/farm_migrations",
}
NEEDED = {"httpx", "httpcore", "h11", "anyio", "certifi", "idna"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def shipped(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as file:
        return set(file.namelist())


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_of_a_package_is_shipped(shipped: set[str], package: str) -> None:
    folder = ROOT / PACKAGES[package]
    files = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    wanted = {f"{package}/{path}" for path in files if "__pycache__" not in path.parts}
    assert wanted
    assert {path for path in shipped if path.startswith(f"{package}/")} == wanted


def test_nothing_else_is_shipped(shipped: set[str]) -> None:
    first = {path.split("/")[0] for path in shipped}
    assert {name for name in first if not name.endswith(".dist-info")} == set(PACKAGES)


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Bare:
    return Bare(tmp_path_factory.mktemp("bare"), wheel)


@pytest.mark.whole
def test_without_extras_only_what_the_client_needs_is_installed(bare: Bare) -> None:
    assert set(bare.needed) - {"typing_extensions", "sniffio"} == NEEDED


@pytest.mark.parametrize(
    "words", [("farm",), ("farm", "submit", "x.jsonl"), ("python", "-m", "farm", "doctor")]
)
def test_without_extras_the_command_says_what_to_install(bare: Bare, words: tuple[str, ...]) -> None:
    ended = bare.run(*words)
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith("farm: the Python package ")
    assert "pip install 'lean-proof-farm[all]'" in line


def test_without_extras_the_farm_from_python_says_what_to_install(bare: Bare) -> None:
    ended = bare.python("from farm import Farm")
    assert ended.returncode == 1
    assert "pip install 'lean-proof-farm[all]'" in ended.stderr.splitlines()[-1]


def test_an_installed_farm_has_the_version_of_the_source_that_it_was_built_from(
    bare: Bare, wheel: Path
) -> None:
    assert wheel.name == f"lean_proof_farm-{farm_version()}-py3-none-any.whl"
    assert bare.python("import farm; print(farm.__version__)").stdout == f"{farm_version()}\n"


def test_the_client_needs_no_extra_and_imports_nothing_else_of_the_farm(bare: Bare) -> None:
    ended = bare.python(
        "import sys; from farm.client import AsyncClient, Client; "
        "print(*sorted(name for name in sys.modules if name.split('.')[0].startswith('farm')))"
    )
    assert ended.returncode == 0, ended.stderr
    own = {name for name in ended.stdout.split() if not name.startswith("farm.client")}
    assert own == {"farm", "farm.documents", "farm.version"}


def test_the_client_without_a_farm_says_where_it_looked(bare: Bare, tmp_path: Path) -> None:
    ended = bare.python("from farm.client import Client; Client()", FARM_HOME=str(tmp_path))
    assert ended.returncode == 1
    assert "farm serve" in ended.stderr.splitlines()[-1]


def test_without_the_extra_a_collector_is_refused_with_what_to_install(bare: Bare) -> None:
    ended = bare.python(
        "from farm import tracing; tracing.begin('farm')", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1"
    )
    assert ended.returncode == 1
    (last,) = ended.stderr.splitlines()[-1:]
    assert last.startswith("farm.errors.SettingsError: OTEL_EXPORTER_OTLP_ENDPOINT asks for traces, but")
    assert "pip install 'lean-proof-farm[traces]'" in last
