"""Finds the service for a client: by arguments, by variables, or by the files of this machine's service."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from farm.client.errors import NoService

# The user and password in an address, which must not be shown.
_SECRET = re.compile(r"//[^/@]*@")
_TOKEN = re.compile(r"[!-~]+")
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """The address of the service; `socket` is its unix socket, and each request reads `token_file` again.

    The token can change at any time: a service on this machine makes one at each start. A token file that
    `is_private` must belong to this user, and no other user may be able to read it.
    """

    url: str
    socket: Path | None = None
    given_token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    is_private: bool = False

    @property
    def local(self) -> bool:
        """Whether the service runs on this machine, so that requests bypass any proxy."""
        return self.socket is not None or urlsplit(self.url).hostname in _LOCAL

    @property
    def shown(self) -> str:
        """The address for messages."""
        return str(self.socket) if self.socket else self.url

    def token(self) -> str | None:
        """Return the current token, None if the service needs none. Raises NoService."""
        token = self.given_token if self.token_file is None else self._read(self.token_file)
        if token and not _TOKEN.fullmatch(token):
            raise NoService(
                "the token of the farm contains a space, or a character outside ASCII. Correct FARM_TOKEN."
            )
        return token or None

    def _read(self, file: Path) -> str:
        try:
            return (_private(file) if self.is_private else file.read_text(encoding="utf-8")).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise NoService(
                f"the token of the farm cannot be read from {file}: {error}. Correct the file, "
                "FARM_TOKEN_FILE or FARM_TOKEN."
            ) from error


def find(url: str | None, token: str | None, environ: Mapping[str, str] = os.environ) -> Address:
    """Return the address of the service. Raises NoService, whose message names the place of the search.

    A url may name a unix socket: ``unix:/run/farm/http.sock``.
    """
    home = _home(environ)
    url = url or environ.get("FARM_URL") or None
    if url is None:
        return _on_this_machine(home, token)
    token = token or environ.get("FARM_TOKEN") or None
    file = environ.get("FARM_TOKEN_FILE") or None
    return _at(url, token, Path(file).expanduser() if file and token is None else None)


def _at(url: str, token: str | None, file: Path | None) -> Address:
    """Return the address in a url, which may contain the token in place of a password."""
    parts = urlsplit(url)
    shown = _SECRET.sub("//", url)
    if parts.password and token is None:
        token, file = parts.password, None
    if parts.scheme == "unix" and parts.path:
        return Address(url="http://localhost", socket=Path(parts.path), given_token=token, token_file=file)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NoService(
            f"FARM_URL={shown!r} is no address of a service: write it as https://farm.example or unix:/path"
        )
    return Address(url=shown.rstrip("/"), given_token=token, token_file=file)


def _on_this_machine(home: Path, token: str | None) -> Address:
    """Return the address that a service published in its home: a port, or else a socket."""
    socket, facts = home / "http.sock", home / "http.json"
    if not facts.exists() and _is_own_socket(socket):
        return Address(url="http://localhost", socket=socket, given_token=token)
    try:
        url = json.loads(_private(facts))["url"]
    except FileNotFoundError as error:
        raise NoService(
            f"no farm is served on this machine: {facts} does not exist. Start it with `farm serve`, or set "
            "FARM_URL and FARM_TOKEN."
        ) from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise NoService(
            f"{facts} cannot be used: {error}. Start `farm serve` again, or set FARM_URL."
        ) from error
    return replace(_at(str(url), token, None if token else home / "http.token"), is_private=True)


def _is_own_socket(path: Path) -> bool:
    return path.is_socket() and path.stat().st_uid == os.geteuid()


def _private(path: Path) -> str:
    """Return the text of a file that only this user can read or change. Raises OSError.

    Another user who could change this file could redirect the token to their own server.
    """
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise PermissionError("other users can read or change it")
        return os.read(file, 4096).decode()
    finally:
        os.close(file)


def _home(environ: Mapping[str, str]) -> Path:
    """Return the folder of the farm's own servers, the same as `farm.settings` with platformdirs."""
    given = environ.get("FARM_HOME")
    if given:
        return Path(given).expanduser()
    data = environ.get("XDG_DATA_HOME", "").strip()
    return (Path(data) if data else Path.home() / ".local" / "share") / "farm"
