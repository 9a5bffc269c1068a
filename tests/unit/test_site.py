"""The site of the documentation: parts made from the code, links, and a build that refuses wrong ones."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import markdown
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


@pytest.fixture(scope="module")
def built(site: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The HTML of each page as `make docs` builds it; Python's reference stays out, for it takes long."""
    folder = tmp_path_factory.mktemp("built")
    pages = folder / "pages"
    shutil.copytree(site.MADE, pages)
    for page in pages.rglob("*.md"):
        page.write_text(re.sub(r"^:::.*\n(?: +.*\n)*", "", page.read_text(), flags=re.MULTILINE))
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    settings |= {"docs_dir": "pages", "site_dir": "site", "plugins": ["search"]}
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(settings))
    build = shutil.which("zensical", path=str(Path(sys.executable).parent))
    assert build
    subprocess.run([build, "build"], cwd=folder, capture_output=True, check=True)
    return {
        str(each.relative_to(folder / "site")): each.read_text() for each in folder.glob("site/**/*.html")
    }


class _Prose(HTMLParser):
    """Collects the text of a page's article, a list of paragraphs, cells and items; code is left out."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = [""]
        self._depth, self._code = 0, 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._depth += tag == "article"
        self._code += tag in ("code", "pre")
        if tag in ("p", "li", "td", "th", "br", "div"):
            self.blocks.append("")
        elif re.fullmatch("h[1-6]", tag):
            self.blocks.append("#")  # a heading may begin with a number, and so may bold words
        elif tag == "strong":
            self.blocks[-1] += "_"

    def handle_endtag(self, tag: str) -> None:
        self._depth -= tag == "article"
        self._code -= tag in ("code", "pre")

    def handle_data(self, data: str) -> None:
        if self._depth:
            self.blocks[-1] += "`" if self._code else data


def blocks(html: str) -> list[str]:
    """Return the text of the blocks of a built page."""
    reader = _Prose()
    reader.feed(html)
    return [each for each in reader.blocks if each.strip()]


def faults(html: str) -> list[str]:
    """Return the blocks that a reader sees broken: open braces, marks of lists or tables, doubled words."""
    return [
        text
        for text in blocks(html)
        if re.search(r"[{}]|\*\*|^\s*(?:[-*]|\d+\.)\s|\n\s*(?:[-*]|\d+\.)\s|\|\s*-{3}", text)
        or re.search(r"\b([^\W\d]{2,})\s+\1\b", text, re.IGNORECASE)
    ]


def test_no_built_page_is_broken(built: dict[str, str]) -> None:
    assert len(built) > 40
    assert [(page, found) for page, html in built.items() for found in faults(html)] == []


@pytest.mark.parametrize(
    "text",
    [
        "It is worth {FIGURES} ms.\n",
        "The the farm.\n",
        "| a | b |\n|---|---|\n| c | d |\n- a list\n- behind a table\n",
        "A paragraph:\n- a list\n- behind it\n",
        "A paragraph:\n1. a list\n2. behind it\n",
        "A paragraph\n| a | b |\n|---|---|\n| c | d |\n",
        "**bold\n",
    ],
)
def test_a_broken_page_is_seen(text: str) -> None:
    assert faults(f"<article>{markdown.markdown(text, extensions=['tables'])}</article>")


@pytest.mark.parametrize("text", ["`{x}` and `**`\n", "- a list\n- of two\n", "1. a\n2. b\n", "a - b - c\n"])
def test_a_page_that_reads_well_has_no_fault(text: str) -> None:
    assert faults(f"<article>{markdown.markdown(text, extensions=['tables'])}</article>") == []


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
