"""Makes the pages of the site below ``build/docs``: ``python docs/site.py``; `make docs` then builds the site of them.

They are the pages of this folder and those of `OUTSIDE`, with links as the site has them, and with the parts that
are made from the code. A page asks for such a part with a comment, as in ``<!-- made: commands -->``, so that it
also reads well where nobody builds the site.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from typer.cli import get_docs_for_click
from typer.main import get_command

ROOT = Path(__file__).parents[1]
DOCS, MADE = ROOT / "docs", ROOT / "build" / "docs"
#: Pages outside of this folder; the site has them at the same place as the repository.
OUTSIDE = ("CHANGELOG.md", "SECURITY.md", "examples/README.md")

_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s:]+)((?:#[^)]*)?)\)")
_PART = re.compile(r"^<!-- made: (\w+) -->$", re.MULTILINE)


def main() -> None:
    """Make every page and copy every picture."""
    shutil.rmtree(MADE, ignore_errors=True)
    shutil.copytree(DOCS, MADE, ignore=shutil.ignore_patterns("*.md", "*.py", "__pycache__"))
    for page in DOCS.rglob("*.md"):
        _make(page, page.relative_to(DOCS))
    for name in OUTSIDE:
        _make(ROOT / name, Path(name))


def _make(page: Path, place: Path) -> None:
    text = _LINK.sub(lambda link: _in_site(link, page.parent, place.parent), page.read_text())
    made = MADE / place
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text(_PART.sub(lambda part: _PARTS[part[1]](), text))


def _in_site(link: re.Match[str], folder: Path, site: Path) -> str:
    """Return a link as the site has it; a file that the site does not have becomes its name."""
    text, target, anchor = link.groups()
    found = (folder / target).resolve()
    if not found.exists() or not found.is_relative_to(ROOT):
        return link[0]  # the build of the site refuses it
    place = found.relative_to(ROOT)
    if place.parts[0] == "docs":
        place = place.relative_to("docs")
    elif str(place) not in OUTSIDE:
        return f"{text} (`{place}`)"
    return f"[{text}]({'../' * len(site.parts)}{place}{anchor})"


def commands() -> str:
    """Return the help of every command of `farm`."""
    from farm.cli.command import app

    for point in entry_points(group="farm.commands"):
        point.load()(app)
    command = get_command(app)
    text = get_docs_for_click(
        obj=command, ctx=command.make_context("farm", [], resilient_parsing=True), name="farm"
    )
    # One level down: the page has a title of its own.
    return re.sub(r"^# .*\n", "", text).replace("\n# `", "\n## `")


def calls() -> str:
    """Return every call of the HTTP service, as its OpenAPI schema describes them."""
    from farm.service.described import operations
    from farm.service.server import whole

    def unused() -> Any:
        raise NotImplementedError

    schema = whole(unused).openapi()
    made = [_call(each) for each in operations(schema)]
    made.append("## Types\n")
    made += [_type(name, each) for name, each in sorted(schema["components"]["schemas"].items())]
    return "\n".join(made)


def _call(each: Any) -> str:
    rows = [f"| `{name}` | {_cell(type_)} | {_cell(meaning)} |" for name, type_, meaning in each.fields]
    table = ["| field | type | meaning |", "|---|---|---|", *rows, ""] if rows else []
    answers = [
        "| answer | |",
        "|---|---|",
        *(f"| `{status}` | {_cell(text)} |" for status, text in each.answers),
    ]
    return "\n".join([f"## `{each.method} {each.path}`\n", f"{each.summary}\n", *table, *answers, ""])


def _type(name: str, schema: Mapping[str, Any]) -> str:
    from farm.service.described import type_in_short

    rows = [
        f"| `{field}` | {_cell(type_in_short(each))} | {_cell(each.get('description', ''))} |"
        for field, each in schema.get("properties", {}).items()
    ]
    table = ["| field | type | meaning |", "|---|---|---|", *rows] if rows else [type_in_short(schema)]
    return "\n".join([f"### `{name}`\n", f"{schema.get('description', '')}\n", *table, ""])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


_PARTS = {"commands": commands, "calls": calls}


if __name__ == "__main__":
    main()
