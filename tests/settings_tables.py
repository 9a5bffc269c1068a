"""Writes the table of settings, their part of the chart's schema and the comments of systemd's settings file.

`make settings` writes them from `farm.settings`; a test fails while one of them differs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from farm.settings import ALL, VARIABLES, SettingReader, Variable

ROOT = Path(__file__).parents[1]
(PAGE,) = (ROOT / "docs").rglob("running.md")
SCHEMA = ROOT / "helm" / "values.schema.json"
UNITS = ROOT / "docker" / "systemd" / "farm.env"

_HEAD = "| variable | meaning | default | read by |\n|---|---|---|---|\n"
_LINK = re.compile(r"\[([^]]+)\]\([^)]*\)")


def page(text: str, variables: Mapping[str, Variable] = VARIABLES) -> str:
    """Return the page with its table of settings; links that the table has stay on the same words."""
    return with_table(text, _HEAD, [_row(name, each) for name, each in variables.items()])


def with_table(text: str, head: str, rows: Sequence[str]) -> str:
    """Return a page whose table with this head has these rows; links that it has stay on the same words."""
    (found,) = re.finditer(re.escape(head) + r"(\|.*\n)+", text)
    linked = {_LINK.sub(r"\1", row): row for row in found[0].splitlines()}
    table = head + "".join(_with_links(row, linked) + "\n" for row in rows)
    return text[: found.start()] + table + text[found.end() :]


def _row(name: str, variable: Variable) -> str:
    readers = "all" if variable.readers is ALL else (variable.readers.name or "").lower()
    cells = (f"`{name}`", variable.meaning, variable.default, readers.replace("|", ", "))
    return "| " + " | ".join(cells).replace("|  |", "| |") + " |"


def _with_links(row: str, linked: Mapping[str, str]) -> str:
    """Put the links of the row that stood for this variable on the words that they were on."""
    name = row.split("|")[1]
    former = next((each for plain, each in linked.items() if plain.split("|")[1] == name), "")
    for link in _LINK.finditer(former):
        row = row.replace(link[1], link[0], 1)
    return row


def schema(text: str, variables: Mapping[str, Variable] = VARIABLES) -> str:
    """Return the chart's schema with the settings that `settings` and `worker.settings` may contain."""
    found = json.loads(text)
    for name, readers in (
        ("settings", SettingReader.COMMANDS | SettingReader.SERVICE),
        ("workerSettings", SettingReader.WORKER),
    ):
        chosen = sorted(each for each, it in variables.items() if it.in_chart and it.readers & readers)
        found["definitions"][name]["properties"] = {each: {"type": "string"} for each in chosen}
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def units(text: str, variables: Mapping[str, Variable] = VARIABLES) -> str:
    """Return systemd's settings file with the meaning of each setting on the line before it."""

    def comment(found: re.Match[str]) -> str:
        variable = variables[found[2]]
        default = f"; by default {variable.default}" if variable.default else ""
        sentence = f"{variable.meaning}{default}.".replace("`", "")
        return f"# {sentence[0].upper()}{sentence[1:]}\n{found[1]}"

    return re.sub(r"^# .*\n(#?(FARM_\w+)=)", comment, text, flags=re.MULTILINE)


#: What is written from the declarations: each file, and the function that returns its text.
WRITTEN: Mapping[Path, Callable[[str], str]] = {PAGE: page, SCHEMA: schema, UNITS: units}

if __name__ == "__main__":
    from tests import asked_fields

    for path, written in (WRITTEN | asked_fields.WRITTEN).items():
        path.write_text(written(path.read_text()))
