"""The page docs/operate/install.md as the tests do it: its commands and settings, section by section."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "operate" / "install.md"


def commands(title: str) -> list[str]:
    """Return the lines that a section sets off, commands and settings alike."""
    section = PAGE.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    found = [line.strip() for line in section.splitlines() if line.startswith("    ")]
    assert found, title
    return found


def settings(title: str, *names: str, **instead: str) -> str:
    """Return the settings of these names as a section has them, with values of the tests' own for some."""
    found = dict(line.split(" = ", 1) for line in commands(title) if " = " in line)
    values = {name: found[name] for name in names} | instead
    return "".join(f"{name} = {value}\n" for name, value in values.items())
