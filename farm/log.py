"""Logs: one line for each event on stderr: time, level, logger, a sentence, and its fields.

As text, or as one JSON object (``FARM_LOG_FORMAT=json``). Each event is exactly one line: text from a proof,
a name or a traceback is escaped.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

#: How logs can be written.
FORMATS = ("text", "json")

# No field of a line is longer than this: an error may quote a whole program.
_LONGEST = 20_000

_about: ContextVar[Mapping[str, object]] = ContextVar("about", default=MappingProxyType({}))


class Bound(logging.LoggerAdapter[logging.Logger]):
    """A logger whose every line carries the same fields, bound once per task."""

    def process(
        self, msg: object, kwargs: MutableMapping[str, Any]
    ) -> tuple[object, MutableMapping[str, Any]]:
        """Add the fields to the record."""
        kwargs["extra"] = {**(kwargs.get("extra") or {}), "fields": dict(self.extra or {})}
        return msg, kwargs


def logger(name: str, fields: Mapping[str, object] | None = None) -> Bound:
    """Return the logger of a module, its lines carrying the fields given."""
    return Bound(logging.getLogger(name), dict(fields or {}))


@contextmanager
def about(**fields: object) -> Iterator[None]:
    """Add these fields to each line that this thread, or this task of asyncio, logs inside the block.

    Fields that are None are left out.
    """
    known = {name: value for name, value in fields.items() if value is not None}
    token = _about.set({**_about.get(), **known})
    try:
        yield
    finally:
        _about.reset(token)


#: These libraries log errors in lines of their own; the name and message of an exception are enough.
_TALKATIVE = ("celery", "kombu", "alembic", "py")
#: These log every message at INFO, and uvicorn its start; their warnings still show.
_NOISY = ("celery", "kombu", "alembic", "uvicorn")

# The password of a URL, which a library may quote in an error or a warning.
_PASSWORD = re.compile(r"(://[^:/@?\s]{0,200}):[^@\s]{0,500}@")
_PASSWORD_PARAMETER = re.compile(r"([?&]\w{0,50}password=)[^&\s]*", re.IGNORECASE)


def _said(record: logging.LogRecord) -> str:
    """Return the sentence of a record, with no password in it."""
    said = record.getMessage()
    if record.name.partition(".")[0] in _TALKATIVE:
        ended = record.exc_info and record.exc_info[1]
        said = " ".join((f"{said} {ended!r}" if ended else said).split())
    return _fit(said)


def _traceback(record: logging.LogRecord) -> str:
    """Return the traceback of a record, "" if it has none."""
    if record.exc_info is None or record.name.partition(".")[0] in _TALKATIVE:
        return ""
    return _fit(logging.Formatter().formatException(record.exc_info))


def _fit(words: str) -> str:
    """Return words without passwords, and no longer than a line may be."""
    known = _PASSWORD.sub(r"\1:***@", words[: 2 * _LONGEST])
    known = _PASSWORD_PARAMETER.sub(r"\1***", known)
    return known if len(known) <= _LONGEST else known[:_LONGEST] + "..."


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {**_about.get(), **getattr(record, "fields", {})}


def _local_time(record: logging.LogRecord) -> str:
    """Return when a record was made, in the zone of this machine and with its distance from UTC."""
    made = datetime.fromtimestamp(record.created, UTC).astimezone()
    return made.isoformat(sep=" ", timespec="milliseconds")


class _Text(logging.Formatter):
    """Writes a record as words; the fields stand at the end."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with line ends and the control characters of a terminal escaped."""
        head = f"{_local_time(record)} {record.levelname} {record.name}:"
        fields = [f"{key}={value}" for key, value in _fields(record).items()]
        words = " ".join([head, _said(record), *fields])
        traceback = _traceback(record)
        return _printable(f"{words}\n{traceback}" if traceback else words)


class _Json(logging.Formatter):
    """Writes a record as one JSON object: `time`, `level`, `logger`, `message`, its fields, `traceback`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, in ASCII."""
        event: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _said(record),
        }
        event = {**event, **_fields(record), **event}
        if traceback := _traceback(record):
            event["traceback"] = traceback
        return json.dumps(event, default=str)


def _printable(words: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in words)


def configure(level: str, form: str = FORMATS[0]) -> None:
    """Write the logs of this process to stderr, from the level given (`debug` to `error`), in this form."""
    handler = logging.StreamHandler()
    set_format(handler, form)
    logging.basicConfig(level=level.upper(), handlers=[handler])
    for noisy in _NOISY:
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.getLogger().level))


def set_format(handler: logging.Handler, form: str) -> None:
    """Have a handler write its lines in this form."""
    handler.setFormatter(_Json() if form == "json" else _Text())


def is_json() -> bool:
    """Whether this process writes its logs as JSON, so that no other text may stand among them."""
    return any(isinstance(each.formatter, _Json) for each in logging.getLogger().handlers)


def line(name: str, level: int, message: str) -> bytes:
    """Return the line that a logger of this name would write.

    For code that cannot log, such as a signal handler: the signal may come while a line is being written.
    """
    record = logging.LogRecord(name, level, "", 0, message, (), None)
    formatter: logging.Formatter = _Json() if is_json() else _Text()
    return formatter.format(record).encode() + b"\n"
