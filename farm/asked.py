"""Option declarations: each option of a check is declared once, as a field made by `option`. Pure.

From these declarations come the flags of `farm submit` and the values that a run carries (`made`). From them
`make settings` writes the fields that the service accepts, the types of the client, and the tables of the
documentation. A test fails while one of those files differs.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import Any, TypeVar, cast, get_type_hints

_T = TypeVar("_T")


class Place(enum.Flag):
    """The places where an option may stand."""

    #: A flag of `farm submit`.
    RUN = enum.auto()
    #: A field of a batch over HTTP, and a keyword of the client.
    BATCH = enum.auto()
    #: A field of a manifest's line, and of an item over HTTP.
    LINE = enum.auto()


RUN, BATCH, LINE = Place
EVERYWHERE = RUN | BATCH | LINE


class Needs(enum.Flag):
    """The parts that a check must have for an option to make sense."""

    NOTHING = 0
    #: An audit of the compiled module: the tiers kernel and audit.
    AUDIT = enum.auto()
    #: A statement to compare with.
    STATEMENT = enum.auto()
    #: An open definition in the statement.
    ANSWER = enum.auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """The JSON type of an option, as the client's types and as the service's models write it in Python.

    A type with a name of its own, `alias`, is defined as `literal` in both. An option without a type for the
    client is one that the client sets by itself.
    """

    client: str
    service: str
    alias: str = ""
    literal: str = ""


def words(*choices: str, alias: str = "") -> Form:
    """Return the form of an option that is one of some words."""
    text = f"Literal[{', '.join(map(json.dumps, choices))}]"
    return Form(client=alias or text, service=alias or text, alias=alias, literal=text)


def either(choices: Sequence[str]) -> str:
    """Return words as a list in a sentence."""
    return f"{', '.join(choices[:-1])} or {choices[-1]}"


WHETHER = Form(client="bool", service="bool")
NAME = Form(client="str", service="Word")
NAMES = Form(client="Sequence[str]", service="list[Word]")
SECONDS = Form(client="float", service="Timeout")


@dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    """A flag of `farm submit`: its names if they do not follow from the option's, and its sentence.

    `takes` is the type of its value where that is not the field's, and `usual` its default then. `reads`
    converts that value to the option's value in JSON.
    """

    help: str
    names: tuple[str, ...] = ()
    metavar: str | None = None
    takes: Any = None
    reads: Callable[[Any], object] | None = None
    usual: object = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """A declared option: its name, its places, its JSON type, and its meaning.

    `default` describes its value in the absence of a setting. Checks that differ in an option of the
    `identity` are different checks. `reads` converts a value in JSON to the field's value.
    """

    name: str
    places: Place
    meaning: str
    default: str
    form: Form | None
    flag: Flag | None
    identity: bool
    needs: Needs
    reads: Callable[[Any], object] | None
    #: The value that the service's model has for an absent field; None lets the farm's settings decide.
    absent: object
    #: The field's own default, `dataclasses.MISSING` if it has none, and its type.
    unset: object = MISSING
    type: Any = None


def option(
    unset: Any = MISSING,
    *,
    places: Place,
    meaning: str,
    name: str = "",
    default: str = "",
    form: Form | None = None,
    flag: Flag | None = None,
    identity: bool = False,
    needs: Needs = Needs.NOTHING,
    reads: Callable[[Any], object] | None = None,
    absent: object = None,
) -> Any:
    """Declare a field as an option; without `unset` the field has no default."""
    declared = Option(
        name=name,
        places=places,
        meaning=meaning,
        default=default or _shown(absent),
        form=form,
        flag=flag,
        identity=identity,
        needs=needs,
        reads=reads,
        absent=absent,
        unset=unset,
    )
    return field(metadata={_KEY: declared}, **({} if unset is MISSING else {"default": unset}))


def group(kind: type[Any]) -> Any:
    """Declare a field as a value with options of its own; `kind.of`, if it exists, makes it from JSON."""
    return field(default_factory=kind, metadata={_GROUP: kind})


_KEY, _GROUP = "option", "options"


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, str):
        return f"`{value}`"
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def declared(kind: type[Any]) -> Iterator[Option]:
    """Yield the options of a value and of the groups in it, in the order of their fields."""
    types = get_type_hints(kind)
    for each in fields(kind):
        if _GROUP in each.metadata:
            yield from declared(each.metadata[_GROUP])
        elif _KEY in each.metadata:
            yield replace(each.metadata[_KEY], name=_name(each), type=types[each.name])


def _name(each: Field[Any]) -> str:
    return each.metadata[_KEY].name or each.name


def made(kind: type[_T], said: Mapping[str, Any]) -> _T:
    """Return a value with the options of a mapping, by their names; other entries and nulls are ignored.

    Raises the errors of the values for impossible ones.
    """
    values: dict[str, object] = {}
    for each in fields(cast("Any", kind)):
        if _GROUP in each.metadata:
            inner = each.metadata[_GROUP]
            values[each.name] = inner.of(said) if hasattr(inner, "of") else made(inner, said)
        elif _KEY in each.metadata:
            reads = each.metadata[_KEY].reads
            if (value := said.get(_name(each))) is not None:
                values[each.name] = value if reads is None else reads(value)
    return kind(**values)
