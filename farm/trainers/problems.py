"""Finds the theorem and the model's answer in the data of each trainer; pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from farm.client import Item

#: The fields of an item that a dataset may have; all but `formal_statement` may be absent or None.
FIELDS = ("formal_statement", "header", "context", "name", "environment", "timeout")
_TEXTS = frozenset({"formal_statement", "header", "context", "environment"})


class BadColumn(ValueError):
    """The dataset or the trainer gives no statement to prove; the message names the column."""


def row(answer: object, **sources: object) -> Item | BadColumn:
    """Return the item of one of several rows, or the error of `item`, so that other rows go on."""
    try:
        return item(answer, **sources)
    except BadColumn as error:
        return error


def item(answer: object, **sources: object) -> Item:
    """Return the item of an answer and the theorem of the first source that has one.

    An answer is text or chat messages. A source is a mapping with some of `FIELDS`, or the JSON text of one;
    its keyword is the trainer's name for it. Raises BadColumn if no source has a `formal_statement`.
    """
    for name, source in sources.items():
        fields = _fields(source)
        if fields is not None and fields.get("formal_statement") not in (None, ""):
            return {**_checked(fields, name), "generation": text_of(answer)}
    seen = "; ".join(_seen(*each) for each in sources.items())
    raise BadColumn(
        f"no formal_statement says what is to be proved: {seen}. "
        'Give it a mapping or JSON text such as {"formal_statement": "theorem t : True := by", '
        '"header": "import Mathlib"}.'
    )


def text_of(answer: object) -> str:
    """Return the text of an answer: of a text itself, or of the last assistant message of a chat.

    Raises BadColumn for anything else.
    """
    if isinstance(answer, str):
        return answer
    if isinstance(answer, Mapping):
        answer = [answer]
    if not isinstance(answer, Iterable):
        raise BadColumn(f"a completion is text or chat messages, not {type(answer).__name__}.")
    messages = list(answer)
    if not all(isinstance(each, Mapping) for each in messages):
        raise BadColumn("a completion is text or chat messages, and one of its messages is no mapping.")
    said = [each.get("content") for each in messages if each.get("role", "assistant") == "assistant"]
    return _content(said[-1]) if said else ""


def _content(content: object) -> str:
    """Return the text of a message, which may come in parts; a message with only tool calls has none."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, Iterable):
        raise BadColumn(f"the content of a message is text or a list of parts, not {type(content).__name__}.")
    return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))


def _fields(source: object) -> Mapping[str, object] | None:
    if isinstance(source, str):
        try:
            source = json.loads(source)
        except ValueError:
            return None
    return source if isinstance(source, Mapping) else None


def _checked(fields: Mapping[str, object], name: str) -> dict[str, object]:
    found = {field: fields[field] for field in FIELDS if fields.get(field) is not None}
    if "name" in found:
        found["name"] = str(found["name"])  # only shown: a number will do
    for field in _TEXTS & found.keys():
        if not isinstance(found[field], str):
            raise BadColumn(f"{field} in {name} is of type {type(found[field]).__name__}; make it text.")
    if not isinstance(timeout := found.get("timeout", 1.0), int | float):
        raise BadColumn(
            f"timeout in {name} is of type {type(timeout).__name__}; make it a number of seconds."
        )
    return found


def _seen(name: str, source: object) -> str:
    fields = _fields(source)
    if fields is not None:
        return f"{name} has only {', '.join(map(str, fields))}" if fields else f"{name} is empty"
    return f"{name} is {'text that is no JSON object' if isinstance(source, str) else type(source).__name__}"
