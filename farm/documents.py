"""Documents: turns JSON into frozen dataclasses and back, for workers, the store and clients."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

_T = TypeVar("_T")

#: Returns the value that a part of a document is; raises ValueError for another kind of part.
_Decode = Callable[[Any], Any]


def decoded(kind: type[_T], document: object, **given: object) -> _T:
    """Return the value of a dataclass that a JSON object stands for; `given` are fields that it has already.

    A field that the class does not have is left out: a newer release may have written it. One that the
    document does not have gets its default. Raises ValueError for a field without either, and for a value of
    another type than the field's.
    """
    if not isinstance(document, Mapping):
        raise ValueError(f"{kind.__name__}: not an object")  # noqa: TRY004 - of the document, not of a call
    found = dict(given)
    for name, decode in _fields(cast("Any", kind)).items():
        if name in document and name not in given:
            try:
                found[name] = decode(document[name])
            except ValueError as error:
                raise ValueError(f"{kind.__name__}.{name}: {error}") from error
    try:
        return kind(**found)
    except TypeError as error:
        raise ValueError(f"{kind.__name__}: {error}") from error


def encoded(value: Any) -> dict[str, Any]:
    """Return the JSON object of a dataclass."""
    return {name: _encoded(each) for name, each in fields_of(value).items()}


def _encoded(part: Any) -> Any:
    if isinstance(part, tuple):
        return [_encoded(each) for each in part]
    if isinstance(part, dict):
        return {key: _encoded(each) for key, each in part.items()}
    return encoded(part) if dataclasses.is_dataclass(part) else part


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by their names, for `json.dumps` as its `default`."""
    return {name: getattr(value, name) for name in _fields(cast("Any", type(value)))}


@functools.cache
def _fields(kind: Any) -> dict[str, _Decode]:
    """Return how each field of a dataclass is decoded."""
    hints = get_type_hints(kind)
    return {each.name: _decoding(hints[each.name]) for each in dataclasses.fields(kind)}


def _decoding(hint: Any) -> _Decode:
    """Return how a part of this type is decoded; a literal may be a word of a newer release."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        present = [each for each in arguments if each is not type(None)]
        inner = _decoding(present[0])
        return lambda part: None if part is None else inner(part)
    if origin is Literal:
        return functools.partial(_plain, type(arguments[0]))
    if origin is tuple:
        each = _decoding(arguments[0])
        return lambda part: tuple([each(one) for one in _plain(list, part)])
    if origin is dict:
        value = _decoding(arguments[1])
        return lambda part: {str(key): value(one) for key, one in _plain(dict, part).items()}
    if dataclasses.is_dataclass(hint):
        return functools.partial(decoded, cast("Any", hint))
    return hint if issubclass(hint, Enum) else functools.partial(_plain, hint)


def _plain(kind: type, part: object) -> Any:
    """Return a part of a JSON type; an integer is a number too, and a truth value is none."""
    if type(part) is kind or (kind is float and type(part) is int):
        return part
    raise ValueError(f"{type(part).__name__} instead of {kind.__name__}")
