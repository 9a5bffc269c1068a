"""Lean step, lists: reads a program's declarations from the ``.ilean`` file that a fresh Lean wrote.

The process that wrote the file ran the program: a list can only count against a program. It names a constant
of the module like an `example`, which the module does not contain.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO

#: The longest list that is read.
_MOST_BYTES = 16 << 20
#: How the name of a constant began before lists had a version of 2 or more.
_FIRST_FORM = "c:"


class _Unreadable(ValueError):
    """A list has an unknown form, or is incomplete."""


def declared_names(file: BinaryIO | None) -> tuple[str, ...] | None:
    """Return the constants that a list defines. The file is closed.

    None for a malformed list, and for the list of a program that uses the code of Lean's elaborator: lists do
    not contain the declarations of such code.
    """
    if file is None:
        return None
    with file:
        content = file.read(_MOST_BYTES + 1)
    try:
        return tuple(_defined(json.loads(content))) if len(content) <= _MOST_BYTES else None
    except (ValueError, RecursionError):
        return None


def _defined(said: object) -> Iterator[str]:
    references = said.get("references") if isinstance(said, dict) else None
    if not isinstance(references, dict):
        raise _Unreadable
    for key, each in references.items():
        if not isinstance(each, dict) or "definition" not in each:
            raise _Unreadable
        if (name := _constant(key)) is not None and each["definition"] is not None:
            yield name


def _constant(key: str) -> str | None:
    """Return the name of the constant that a key stands for, None for a local variable."""
    if key.startswith(("c:", "f:")):
        return _own(name := key.removeprefix(_FIRST_FORM), name) if key.startswith(_FIRST_FORM) else None
    said = json.loads(key)
    if not isinstance(said, dict) or not said.keys() & {"c", "f"}:
        raise _Unreadable
    if "c" not in said:
        return None
    constant = said["c"]
    if not isinstance(constant, dict):
        raise _Unreadable
    return _own(constant.get("n"), constant.get("m"))


def _own(name: object, module: object) -> str:
    """Return the name of a constant that is in no module of Lean's elaborator."""
    if not isinstance(name, str) or not isinstance(module, str):
        raise _Unreadable
    if module == "Lean" or module.startswith("Lean."):
        raise _Unreadable
    return name
