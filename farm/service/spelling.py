"""Service step, spelling: which field a client may have meant. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

#: The type of the fault of a field that does not exist, as pydantic calls it.
UNKNOWN_FIELD: Final = "extra_forbidden"
#: Names are compared character by character, so a longer one than this is not.
_LONGEST_NAME = 60


def meant(name: str, known: Iterable[str]) -> str | None:
    """Return the known field whose name is nearest to a name, None where none is near."""
    if len(name) > _LONGEST_NAME:
        return None
    lowered = {each.lower().replace("_", ""): each for each in known}
    found = get_close_matches(name.lower().replace("_", ""), lowered, n=1, cutoff=0.75)
    return lowered[found[0]] if found else None


def suggesting(error: ValidationError, known: Sequence[str]) -> ValidationError:
    """Return the error of an object with the known field that each of its unknown fields is near to."""
    faults = error.errors(include_url=False, include_context=False)
    if not any(_is_own(each) for each in faults):
        return error
    return ValidationError.from_exception_data(error.title, [_line(each, known) for each in faults])


def _is_own(fault: Any) -> bool:
    return fault["type"] == UNKNOWN_FIELD and len(fault["loc"]) == 1


def _line(fault: Any, known: Sequence[str]) -> InitErrorDetails:
    words = str(fault["msg"])
    if _is_own(fault):
        near = meant(str(fault["loc"][0]), known)
        remedy = f"did you mean {near}?" if near else f"the fields are {', '.join(known)}"
        words = f"no such field; {remedy}"
    kind = PydanticCustomError(fault["type"], "{words}", {"words": words})
    return InitErrorDetails(type=kind, loc=fault["loc"], input=fault["input"])
