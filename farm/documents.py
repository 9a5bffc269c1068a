"""Documents: turns JSON into frozen dataclasses and back, for workers, the store and clients."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

_T = TypeVar("_T")

_PLAIN = frozenset({str, int, float, bool, type(None)})

#: Returns the value of one part of a document; raises ValueError for a part of another JSON type.
_Decode = Callable[[Any], Any]


def decoded(kind: type[_T], document: object, **given: object) -> _T:
    """Return the dataclass of a JSON object; `given` fields take precedence over those of the object.

    Fields that the class does not have are ignored, since a newer release may have written them. A field that
    the object lacks gets its default. Raises ValueError for a missing field without a default, and for a
    value of another type than the field's.
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


def encoded(value: Any) -> dict[str, object]:
    """Return the JSON object of a dataclass."""
    return {name: _encoded(getattr(value, name)) for name in _fields(cast("Any", type(value)))}


def _encoded(part: Any) -> Any:
    if type(part) in _PLAIN:  # most parts, and quick to see: a worker encodes an audit for every verdict
        return part
    if isinstance(part, tuple):
        return [_encoded(each) for each in part]
    if isinstance(part, dict):
        return {key: _encoded(each) for key, each in part.items()}
    return encoded(part) if dataclasses.is_dataclass(part) else part


def fields_of(value: Any) -> dict[str, object]:
    """Return the fields of a dataclass by their names, for `json.dumps` as its `default`."""
    return {name: getattr(value, name) for name in _fields(cast("Any", type(value)))}


@functools.cache
def _fields(kind: Any) -> dict[str, _Decode]:
    """Return the decoder of each field of a dataclass, by name."""
    hints = get_type_hints(kind)
    return {each.name: _decoding(hints[each.name]) for each in dataclasses.fields(kind)}


def _decoding(hint: Any) -> _Decode:
    """Return the decoder for values of a type; it accepts literals that only a newer release has."""
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
    """Return a part if it has this JSON type, else raise ValueError; an integer counts as a float."""
    if type(part) is kind or (kind is float and type(part) is int):
        return part
    raise ValueError(f"{type(part).__name__} instead of {kind.__name__}")
