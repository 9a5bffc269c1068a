"""The documents name everything there is, and nothing that there is not."""

from __future__ import annotations

import dataclasses
import pkgutil
import re
from pathlib import Path

import pytest

from farm import assembly
from farm.assembly.program import AssemblyOptions
from farm.judging.verdict import OUTCOMES, Outcome, Reason, Verdict
from farm.manifest.entries import FIELDS
from farm.settings import VARIABLES

ROOT = Path(__file__).parents[2]
DOCS = {path.name: path.read_text() for path in (ROOT / "docs").rglob("*.md")}
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_a_variable_is_documented() -> None:
    for variable in VARIABLES:
        assert re.search(rf"^\| `{variable}` \|", DOCS["running.md"], re.MULTILINE), variable


def test_no_variable_is_documented_that_there_is_not() -> None:
    named = {name for text in DOCS.values() for name in re.findall(r"\bFARM_[A-Z_]+\b", text)}
    assert {name for name in named if not name.startswith("FARM_TEST_")} <= set(VARIABLES)


def test_a_reason_is_documented_with_its_verdict_and_its_proof_status() -> None:
    for reason in Reason:
        outcome = OUTCOMES[reason]
        status = Verdict(outcome=outcome, reason=reason, detail="").proof_status
        row = rf"^\| `{outcome}` \| `{reason}` \| `{status}` \| \S"
        assert re.search(row, DOCS["verdicts.md"], re.MULTILINE), reason


def test_no_verdict_is_documented_that_there_is_not() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", DOCS["verdicts.md"], re.MULTILINE)
    assert rows
    assert {(Outcome(verdict), Reason(reason)) for verdict, reason in rows} == {
        (outcome, reason) for reason, outcome in OUTCOMES.items()
    }


def test_a_field_of_manifests_is_documented() -> None:
    for field in sorted(FIELDS):
        assert f"`{field}`" in DOCS["manifests.md"], field


def test_an_option_of_the_assembly_is_documented() -> None:
    for option in [field.name for field in dataclasses.fields(AssemblyOptions)]:
        text = DOCS["manifests.md"]
        flag = option.replace("_", "-")
        assert f"`{option}`" in text or f"--{flag}" in text or f"--no-{flag}" in text, option


def test_the_warnings_documented_are_those_of_the_assembly() -> None:
    row = re.compile(r"^\| `([a-z0-9_]+)` \| \S", re.MULTILINE)
    documented = set(row.findall(DOCS["manifests.md"].partition("### Profile `farm`")[2]))
    sources = "".join(path.read_text() for path in Path(assembly.__file__).parent.glob("*.py"))
    told = r'(?:_note\(|warnings\.append\(\(|notes \+?= \[\(|True, |False, |warning=)"([a-z0-9_]+)"'
    assert set(re.findall(told, sources)) == documented


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), target


def test_the_files_that_a_page_names_are_there() -> None:
    for page in PAGES:
        for name in re.findall(
            r"`((?:farm|workers|migrations|tests|examples|docs)/[\w/.]+)`", page.read_text()
        ):
            assert (ROOT / name).exists(), name


#: Files that name pages: code, settings, and the changes.
NAMING = [
    ROOT / "CHANGELOG.md",
    ROOT / "pyproject.toml",
    *(
        path
        for name in ("farm", "workers", "migrations", "helm", "docker", "tests")
        for path in (ROOT / name).rglob("*")
        if path.suffix in {".py", ".yaml", ".tpl", ".service", ".env", ".json", ".html"} and path.is_file()
    ),
]


def test_the_pages_that_other_files_name_are_there() -> None:
    named = {
        (name, path)
        for path in NAMING
        for name in re.findall(r"(?<![\w./])docs/[\w/.-]+\.md\b", path.read_text())
    }
    assert len(named) > 30
    assert [(name, path) for name, path in sorted(named) if not (ROOT / name).is_file()] == []


#: Everything that people read, besides what programs say.
TEXTS = sorted({*PAGES, ROOT / "CHANGELOG.md", *(ROOT / "examples").rglob("*.md")})


def test_no_word_stands_twice_in_a_row() -> None:
    """Neither on a line nor over its end; code, tables' borders and ends of sentences lie between others."""
    for page in TEXTS:
        assert doubled(page.read_text()) == [], page


@pytest.mark.parametrize(
    "text", ["of the the farm", "The the farm", "of the\nthe farm", "- of the\n  the farm"]
)
def test_a_word_that_stands_twice_is_found(text: str) -> None:
    assert [each.lower() for each in doubled(text)] == ["the"]


@pytest.mark.parametrize(
    "text",
    [
        *("the `the` end", "I see. See it", "| the | the |", "    the the", "```\nthe the\n```\n"),
        *("## The farm\n\nFarm", "of the\n\nThe farm"),
    ],
)
def test_code_and_cells_are_no_words_in_a_row(text: str) -> None:
    assert doubled(text) == []


def doubled(text: str) -> list[str]:
    """Return the words of a page of Markdown that stand twice in a row."""
    prose = re.sub(r"^```.*?^```|^ {4}.*?$|^#.*?$|\n\n|`[^`]*`", "`", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\b([^\W\d]+)\s+\1\b", prose, re.IGNORECASE)


#: Spans, a line's fields, a file's name and a group of entry points, which look like names of Python's.
SPANS = {
    f"farm.{name}"
    for name in (
        *("submit", "check", "lean", "challenge", "seal", "second_kernel"),
        *("record", "export", "conclude"),
    )
}
NO_PYTHON = SPANS | {
    "farm.preamble",
    "farm.warnings",
    "farm.audit",
    "farm.audit.target",
    "farm.toml",
    "farm.env",
    "farm.doctor",
}
SOURCES = [path for name in ("farm", "workers", "migrations") for path in (ROOT / name).rglob("*.py")]


def test_the_names_that_texts_refer_to_are_there() -> None:
    texts = [path.read_text() for path in [*SOURCES, *PAGES]]
    names = {name for text in texts for name in re.findall(r"`(farm(?:_\w+)?(?:\.\w+)+)`", text)}
    assert len(names) > 50
    assert [name for name in sorted(names - NO_PYTHON) if not _is_there(name)] == []


def _is_there(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True
