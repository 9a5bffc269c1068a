"""Makes the pages of the site in ``build/docs``, of which `make docs` then builds the site.

They are the pages of this folder and those of `OUTSIDE`, with links as the site has them and with the parts
that are made from the code. A page requests such a part with a comment, as in ``<!-- made: commands -->``,
so that it also reads well without the site.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from typer import Context
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
    text = get_docs_for_click(obj=command, ctx=Context(command, info_name="farm"), name="farm")
    # An example is code, and Click's mark of a text that is not wrapped is none.
    text = re.sub(r"^(Example: )(.*)$", r"\1`\2`", text.replace("\b\n", ""), flags=re.MULTILINE)
    # One level down: the page has a title of its own.
    return re.sub(r"^# .*\n", "", text).replace("\n# `", "\n## `")


def calls() -> str:
    """Return every call of the HTTP service and every type, as the OpenAPI schema describes them."""
    from farm.service.app import application

    schema = application(_no_backend).openapi()
    paths = [
        _call(f"{method.upper()} {path}", each)
        for path, methods in schema["paths"].items()
        for method, each in methods.items()
    ]
    types = [_type(name, each) for name, each in sorted(schema["components"]["schemas"].items())]
    return "\n".join([*paths, "## Types\n", *types])


def _no_backend() -> Any:
    raise NotImplementedError  # no call is answered here


def _call(name: str, call: Mapping[str, Any]) -> str:
    given = [
        (f"`{each['name']}`", f"in the {each['in']}: {_short(each['schema'])}", each.get("description", ""))
        for each in call.get("parameters", ())
    ]
    if body := _json(call.get("requestBody", {})):
        given.append(("body", _short(body), ""))
    answers = [
        (f"`{status}`", _short(_json(each)) if _json(each) else "", each["description"])
        for status, each in sorted(call["responses"].items())
    ]
    text = call.get("description") or call.get("summary", "")
    parts = [f"## `{name}`\n", f"{text}\n", _table(("given", "type", "meaning"), given)]
    return "\n".join([*parts, _table(("answer", "type", "meaning"), answers)])


def _json(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a body or an answer in JSON, an empty one where it has none."""
    found: Mapping[str, Any] = part.get("content", {}).get("application/json", {}).get("schema", {})
    return found


def _type(name: str, schema: Mapping[str, Any]) -> str:
    fields = [
        (f"`{field}`", _short(each), _meaning(each, is_required=field in schema.get("required", ())))
        for field, each in schema.get("properties", {}).items()
    ]
    text = schema.get("description", "") if fields else _short(schema)
    return "\n".join([f"### `{name}`\n", f"{text}\n", _table(("field", "type", "meaning"), fields)])


def _meaning(field: Mapping[str, Any], *, is_required: bool) -> str:
    """Return a field's description, with its default or that it is required."""
    default = "required" if is_required else f"default `{json.dumps(field.get('default'))}`"
    return f"{field.get('description', '')} ({default})".strip()


def _short(schema: Mapping[str, Any]) -> str:
    """Return a type in short, with links to the types of this page."""
    if "anyOf" in schema:
        return " or ".join(_short(each) for each in schema["anyOf"])
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{each}`" for each in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_short(schema.get('items', {}))}"
    return str(schema.get("type", "any JSON"))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table without its empty columns, nothing for no rows."""
    filled = [place for place in range(len(head)) if any(row[place] for row in rows)]
    lines = [head, ["---"] * len(head), *rows] if rows else []
    return "".join(f"| {' | '.join(_cell(line[place]) for place in filled)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


_PARTS = {"commands": commands, "calls": calls}


if __name__ == "__main__":
    main()
