"""Reads the skill and the short reference that the farm ships for language models."""

from __future__ import annotations

import re
from importlib import resources

_FILES = resources.files("farm.agents")


def skill() -> str:
    """Return the skill file, which teaches an agent to use the tools."""
    return (_FILES / "SKILL.md").read_text(encoding="utf-8")


def pages() -> dict[str, str]:
    """Return the texts of all topics: the skill, and each part of the reference by the word in its title."""
    reference = (_FILES / "reference.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (\w+)\n", reference, flags=re.MULTILINE)
    return {
        "skill": skill(),
        **{t: text.strip() + "\n" for t, text in zip(parts[1::2], parts[2::2], strict=True)},
    }
