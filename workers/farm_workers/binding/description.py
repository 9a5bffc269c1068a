"""Binding step, descriptions: the functions and types of one toolchain, as a JSON file.

The farm ships one for a Lean whose own modules are not there to be read; `shipped` finds it by the version
that the library states. The format is that of `encoded`: names of functions with their parameters, of
structures with their fields, and of types with their constructors, in Lean's order::

    {"lean": "4.35.0", "source": "run", "plain_actions": true,
     "functions": {"Lean.writeModule": [["env"], ["fname"], ["writeIR", "uint8", 3], ["", "world"]]},
     "structures": {"Lean.Position": [["line"], ["column"]]},
     "types": {"Lean.MessageSeverity": ["information", "warning", "error"]}}

A parameter or field is its name, its shape unless it is an object, and the word of its literal default.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from farm_workers.binding.signatures import MODULES, READ, RUN, Description, Member, Parameter, Shape

#: The folder of the descriptions that the farm ships, one for a minor release of Lean.
FOLDER = Path(__file__).parent / "descriptions"


class NotDescribed(Exception):
    """There is no description, or it cannot be read: says which, and why."""


def shipped(major: int, minor: int) -> Description:
    """Return the description that the farm ships for a release. Raises NotDescribed."""
    path = FOLDER / f"lean-{major}.{minor}.json"
    try:
        return decoded(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotDescribed(f"the farm has no description of Lean {major}.{minor}") from None
    except OSError as error:
        raise NotDescribed(f"{path}: {error.strerror}") from error


def has_run(major: int, minor: int) -> bool:
    """Return whether the farm's tests have run all that it uses of a release."""
    try:
        return shipped(major, minor).source == RUN
    except NotDescribed:
        return False


def decoded(text: str) -> Description:
    """Return the description of a JSON text. Raises NotDescribed."""
    try:
        found = json.loads(text)
        described = Description(
            lean=_text(found["lean"]),
            source=_text(found["source"]),
            plain_actions=found["plain_actions"] is True,
            functions={name: tuple(map(_parameter, each)) for name, each in found["functions"].items()},
            structures={name: tuple(map(_part, each)) for name, each in found["structures"].items()},
            types={name: tuple(map(_text, each)) for name, each in found["types"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotDescribed(f"a description that is not in the farm's format: {error!r}") from error
    if described.source not in (MODULES, RUN, READ):
        raise NotDescribed(f"a description of an unknown source: {described.source}")
    return described


def encoded(description: Description) -> str:
    """Return a description as JSON, one entry a line."""
    start = {
        "lean": description.lean,
        "source": description.source,
        "plain_actions": description.plain_actions,
    }
    groups = [
        _group(
            "functions",
            {
                name: [_row(one.name, one.shape, one.default) for one in each]
                for name, each in description.functions.items()
            },
        ),
        _group(
            "structures",
            {
                name: [_row(one.name, one.shape) for one in each]
                for name, each in description.structures.items()
            },
        ),
        _group("types", description.types),
    ]
    return json.dumps(start)[:-1] + "".join(f",\n{group}" for group in groups) + "}\n"


def _group(name: str, entries: Mapping[str, Sequence[object]]) -> str:
    lines = ",\n".join(f"  {json.dumps(each)}: {json.dumps(rows)}" for each, rows in sorted(entries.items()))
    return f'"{name}": {{\n{lines}\n}}'


def _row(name: str, shape: Shape, default: int | None = None) -> list[object]:
    if default is not None:
        return [name, shape.value, default]
    return [name] if shape is Shape.OBJECT else [name, shape.value]


def _parameter(row: Sequence[object]) -> Parameter:
    name, shape, default, *_ = [*row, *(None,) * 3]
    if default is not None and type(default) is not int:
        raise ValueError(f"{default!r} is no word")
    return Parameter(_text(name), _shape(shape), default)


def _part(row: Sequence[object]) -> Member:
    name, shape, *_ = [*row, None]
    return Member(_text(name), _shape(shape))


def _shape(found: object) -> Shape:
    return Shape.OBJECT if found is None else Shape(_text(found))


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise ValueError(f"{found!r} is no text")  # noqa: TRY004 - of the file, not of a call
    return found
