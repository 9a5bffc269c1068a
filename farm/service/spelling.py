"""Suggestions for misspelt fields of a request: which field the client may have meant. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

#: Pydantic's type of the fault that a field does not exist.
UNKNOWN_FIELD: Final = "extra_forbidden"
#: Names are compared character by character; longer names than this are not compared.
_LONGEST_NAME = 60
#: An object with more faults gets no suggestions: a body may have 80 000 faults, and a person corrects a few.
_MOST_FAULTS = 8


def meant(name: str, known: Iterable[str]) -> str | None:
    """Return the known field whose name is nearest to a name, None if none is near."""
    if len(name) > _LONGEST_NAME:
        return None
    lowered = {each.lower().replace("_", ""): each for each in known}
    found = get_close_matches(name.lower().replace("_", ""), lowered, n=1, cutoff=0.75)
    return lowered[found[0]] if found else None


def suggesting(error: ValidationError, known: Sequence[str]) -> ValidationError:
    """Return the error of an object with the known fields in each unknown field's context, for `words_of`.

    Names are compared only for faults that are reported: a body may have many thousands.
    """
    if error.error_count() > _MOST_FAULTS:
        return error
    faults = error.errors(include_url=False)
    if not any(_is_own(each) for each in faults):
        return error
    return ValidationError.from_exception_data(error.title, [_line(each, known) for each in faults])


def words_of(fault: Mapping[str, Any]) -> str:
    """Return the message of a fault; for a field that does not exist, with the nearest existing one."""
    words = str(fault["msg"]).removeprefix("Value error, ")
    known = fault.get("ctx", {}).get("fields")
    if fault["type"] != UNKNOWN_FIELD or not known:
        return words
    near = meant(str(fault["loc"][-1]), known)
    return f"no such field; {f'did you mean {near}?' if near else 'the fields are ' + ', '.join(known)}"


def _is_own(fault: Any) -> bool:
    is_counted = "given" in fault.get("ctx", {})  # the object has too many fields
    return fault["type"] == UNKNOWN_FIELD and len(fault["loc"]) == 1 and not is_counted


def _line(fault: Any, known: Sequence[str]) -> InitErrorDetails:
    inner = fault.get("ctx", {}).get("fields")
    said = {"words": str(fault["msg"]), "fields": known if _is_own(fault) else inner}
    kind = PydanticCustomError(fault["type"], "{words}", {k: v for k, v in said.items() if v is not None})
    return InitErrorDetails(type=kind, loc=fault["loc"], input=fault["input"])
