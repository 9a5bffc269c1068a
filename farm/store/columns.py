"""Types of columns, each with its encoder for PostgreSQL's binary COPY. Pure.

The values of a new line (`farm.store.new_lines`) name their columns by these types. A field of COPY is its
length and its bytes, and the length -1 is NULL:
https://www.postgresql.org/docs/current/sql-copy.html#SQL-COPY-BINARY-FORMAT
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from struct import Struct
from typing import Annotated, Any, get_args, get_type_hints

from farm.characters import storable

NULL = b"\xff\xff\xff\xff"
_length = Struct("!i").pack

boolean_field: Callable[[bool], bytes] = partial(Struct("!i?").pack, 1)
integer_field: Callable[[int], bytes] = partial(Struct("!ii").pack, 4)
bigint_field: Callable[[int], bytes] = partial(Struct("!iq").pack, 8)
_float_field: Callable[[float], bytes] = partial(Struct("!id").pack, 8)


def bytes_field(content: bytes) -> bytes:
    """Return the field of these bytes."""
    return _length(len(content)) + content


def text_field(text: str) -> bytes:
    """Return the field of a text; U+FFFD replaces characters that PostgreSQL cannot store."""
    content = storable(text).encode()
    return _length(len(content)) + content


def spans_json(spans: Sequence[Sequence[int]]) -> str:
    """Return the same as `json.dumps`, in a third of the time."""
    return f"[{', '.join([f'[{start}, {end}]' for start, end in spans])}]"


_WARNING = '["%s", "%s", %d, %d]'
# A batch's segments also have the line and column at which they begin in their field.
_SEGMENT = {4: '[%d, %d, "%s", %d]', 6: '[%d, %d, "%s", %d, %d, %d]'}


def _spans_field(spans: Sequence[Sequence[int]]) -> bytes:
    content = spans_json(spans).encode()
    return _length(len(content)) + content


def _segments_field(segments: Sequence[Sequence[int | str]]) -> bytes:
    content = f"[{', '.join([_SEGMENT[len(s)] % tuple(s) for s in segments])}]".encode()
    return _length(len(content)) + content


def _warnings_field(warnings: Sequence[tuple[str, str, int, int]]) -> bytes:
    return bytes_field(f"[{', '.join([_WARNING % tuple(w) for w in warnings])}]".encode())


@dataclass(frozen=True, slots=True)
class Column:
    """A column's PostgreSQL type, and its encoder for values other than None."""

    type: str
    field: Callable[[Any], bytes]


Integer = Annotated[int, Column("int4", integer_field)]
Bigint = Annotated[int, Column("int8", bigint_field)]
Float = Annotated[float, Column("float8", _float_field)]
Text = Annotated[str, Column("text", text_field)]
Bytes = Annotated[bytes, Column("bytea", bytes_field)]
#: Spans (start, end) of a program.
Spans = Annotated[Sequence[Sequence[int]], Column("json", _spans_field)]
#: Start, length, field of origin and start there; of a batch's item also the line and column there.
Segments = Annotated[Sequence[Sequence[int | str]], Column("json", _segments_field)]
#: Code, field, line and column of each warning of the assembly.
Warnings = Annotated[Sequence[tuple[str, str, int, int]], Column("json", _warnings_field)]


def columns_of(row: type) -> Mapping[str, Column]:
    """Return the columns of a class whose fields are annotated with the types above, in order."""
    hints = get_type_hints(row, include_extras=True)
    return {name: _column(hint) for name, hint in hints.items()}


def _column(hint: Any) -> Column:
    """Return the column of `Annotated[...]` or of `Annotated[...] | None`."""
    (column,) = (
        found
        for each in (hint, *get_args(hint))
        for found in getattr(each, "__metadata__", ())
        if isinstance(found, Column)
    )
    return column


def encoder(columns: Mapping[str, Column]) -> Callable[[Sequence[object]], bytes]:
    """Return a function that encodes a row of these columns for binary COPY."""
    fields = [column.field for column in columns.values()]

    def encode(row: Sequence[object]) -> bytes:
        return b"".join(
            [NULL if value is None else field(value) for field, value in zip(fields, row, strict=True)]
        )

    return encode


def declared(columns: Mapping[str, Column]) -> str:
    """Return the columns as SQL declares them: names with types."""
    return ", ".join(f"{name} {column.type}" for name, column in columns.items())
