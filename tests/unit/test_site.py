"""The site of the documentation: parts made from the code, links, and a build that refuses wrong ones."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.unit.test_cli_help import COMMANDS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """`docs/site.py` after it has made the pages, in a folder of the test's own."""
    spec = spec_from_file_location("docs_site", ROOT / "docs" / "site.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.MADE = tmp_path_factory.mktemp("site") / "pages"
    module.main()
    return module


def headings(page: Path) -> list[str]:
    return re.findall(r"^##+ `(.*)`$", page.read_text(), re.MULTILINE)


def test_the_help_of_every_command_is_in_the_reference(site: ModuleType) -> None:
    assert {f"farm {path}" for path in COMMANDS} <= set(headings(site.MADE / "reference" / "commands.md"))


def test_every_call_of_the_service_is_in_the_reference(site: ModuleType) -> None:
    made = headings(site.MADE / "reference" / "calls.md")
    assert {"POST /v1/batches", "GET /v1/batches/{batch}", "GET /health/ready"} <= set(made)
    assert "Batch" in made


def test_every_page_of_the_site_is_in_its_navigation(site: ModuleType) -> None:
    listed = re.findall(r"^ +- (?:.*: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    made = {str(page.relative_to(site.MADE)) for page in site.MADE.rglob("*.md")}
    assert set(listed) | {"index.md"} == made


def test_links_between_pages_and_out_of_their_folder_lead_to_pages_of_the_site(site: ModuleType) -> None:
    for page in site.MADE.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).is_file(), f"{page}: {target}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("# A\n\n[b](b.md#c)\n", None),
        ("# A\n\n[b](b.md#d)\n", "anchor does not exist"),
        ("# A\n\n[b](c.md)\n", "page does not exist"),
    ],
)
def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path, text: str, fault: str | None) -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    settings |= {"docs_dir": "pages", "site_dir": "site", "nav": ["index.md", "b.md"], "plugins": ["search"]}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(settings))
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text(text)
    (tmp_path / "pages" / "b.md").write_text("# B\n\n## C\n")
    build = shutil.which("zensical", path=str(Path(sys.executable).parent))
    assert build
    ended = subprocess.run(
        [build, "build", "--strict"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ended.returncode == 0) == (fault is None), ended.stdout + ended.stderr
    assert fault is None or fault in ended.stdout + ended.stderr
