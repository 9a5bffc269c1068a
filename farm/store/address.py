"""Store step, address: reads the URL of the database in libpq's form, or SQLAlchemy's, and checks it."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

import psycopg
from psycopg.conninfo import make_conninfo
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from farm.errors import SettingsError
from farm.settings import redacted

#: A URL as SQLAlchemy divides it: its driver, user and password, hosts, and name and parameters.
_PARTS = re.compile(r"([^:/]+://)((?:[^:/]*(?::[^@]*)?@)?)([^/?]*)(/[^?]*)?(?:\?(.*))?", re.DOTALL)
_HOST = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]*))?")
#: SQLAlchemy's argument of psycopg that is none of libpq's.
_NOT_LIBPQS = "context"


def address(url: str) -> URL:
    """Return the URL of a database; with several hosts, libpq tries one after the other.

    Raises SettingsError for a URL that SQLAlchemy or libpq cannot read.
    """
    try:
        found = make_url(_with_hosts_as_parameters(url))
        _, arguments = found.get_dialect()().create_connect_args(found)
        make_conninfo(**{key: value for key, value in arguments.items() if key != _NOT_LIBPQS})
    except psycopg.ProgrammingError as error:
        raise _unusable(url, str(error).strip()) from error
    except (ArgumentError, ValueError) as error:  # its words may have a part of the password
        raise _unusable(url, "its host or its port cannot be read") from error
    return found


def _unusable(url: str, why: str) -> SettingsError:
    return SettingsError(
        f"FARM_DATABASE_URL={redacted(url)!r}: {why}; write postgresql://user:password@host:5432/name, "
        "several hosts as host1:5432,host2:5432, and the characters :/@,?% of a password as %3A and so on"
    )


def _with_hosts_as_parameters(url: str) -> str:
    """Return a URL whose hosts, if it has several, are parameters, as SQLAlchemy reads them."""
    parts = _PARTS.fullmatch(url)
    if parts is None or "," not in parts[3]:
        return url
    hosts = [_HOST.fullmatch(each) for each in parts[3].split(",")]
    known = [each for each in hosts if each is not None]
    if len(known) < len(hosts):
        raise ValueError(parts[3])
    names = quote(",".join(unquote(each[1].strip("[]")) for each in known), safe=",:")
    ports = ",".join(each[2] or "" for each in known)
    more = f"&{parts[5]}" if parts[5] else ""
    return f"{parts[1]}{parts[2]}{parts[4] or '/'}?host={names}&port={ports}{more}"
