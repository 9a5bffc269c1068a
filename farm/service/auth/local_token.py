"""The token of a service for programs of the same user: made at each start, published in two files.

`FARM_HOME/http.token` contains the token and `FARM_HOME/http.json` the address, as `{"url": ...}`. At every
moment only their owner can read or change them: a user who could change the address would be sent the token.
The first service of a home writes the files and removes them when it ends; until then, or until it is
killed, it holds the flock on `http.lock`. Other services of that home leave the files alone.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from farm.embedded.home import make_home
from farm.errors import FarmError, ServerDown, UsageError
from farm.files import write_whole
from farm.judging.states import Priority
from farm.service.auth.tokens import digest, is_same
from farm.store.keys import Key, Scope

#: The key of requests with the local token or over the unix socket; it may do everything.
LOCAL = Key(
    id="local",
    name="local",
    scopes=frozenset(Scope),
    classes=frozenset(each.name.lower() for each in Priority),
)

# Different from every API key's token, whose ids are hexadecimal.
_TOKEN = re.compile(r"farm_local_[A-Za-z0-9_-]{43}", re.ASCII)
_URL = re.compile(r"https?://[!-~]+", re.ASCII)
_PRIVATE = 0o600
_LONGEST = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Local:
    """Address and token of the local service; `is_published`: both are in the files of FARM_HOME."""

    url: str
    token: str = field(repr=False)
    is_published: bool = field(default=True, compare=False)

    @classmethod
    def new(cls, url: str, *, is_published: bool = True) -> Local:
        """Return a new token for the service at this address."""
        token = f"farm_local_{secrets.token_urlsafe(32)}"
        return cls(url=url, token=token, is_published=is_published)

    def verify(self, presented: str) -> Key | None:
        """Return `LOCAL` for the token, None for any other text."""
        return LOCAL if is_same(digest(presented), digest(self.token)) else None


@contextmanager
def published(home: Path, url: str) -> Iterator[Local]:
    """Make a token, and publish it in the home's files during the block.

    If another service of the home runs, its files stay, and `is_published` is False. Raises `FarmError` if
    the files cannot be written.
    """
    make_home(home)
    with _lock(home / "http.lock") as is_alone:
        local = Local.new(url, is_published=is_alone)
        if is_alone:
            write(home, local)
        try:
            yield local
        finally:
            remove(home, local)


def write(home: Path, local: Local) -> None:
    """Write or replace the files of a home; raises `FarmError`."""
    _put(_token_file(home), local.token)
    _put(_address_file(home), json.dumps({"url": local.url}))


def read(home: Path) -> Local:
    """Return the address and token in the files of a home.

    Raises `ServerDown` if the files do not exist, and `UsageError` for files that other users can read or may
    have written.
    """
    address, token = _address_file(home), _token_file(home)
    try:
        found = json.loads(_get(address))
        local = Local(url=str(found["url"]), token=_get(token))
    except (ValueError, TypeError, KeyError) as error:
        raise _unusable(address, "it is no JSON object with a url") from error
    if not _URL.fullmatch(local.url):
        raise _unusable(address, "its url begins with neither http:// nor https://")
    if not _TOKEN.fullmatch(local.token):
        raise _unusable(token, "it contains no token")
    return local


def remove(home: Path, local: Local) -> None:
    """Remove the files of a home, unless they are another service's.

    A file that cannot be removed stays: the token of a service that has ended is worthless.
    """
    with suppress(FarmError, OSError):
        if read(home) == local:
            _address_file(home).unlink()
            _token_file(home).unlink()


def _token_file(home: Path) -> Path:
    return home / "http.token"


def _address_file(home: Path) -> Path:
    return home / "http.json"


@contextmanager
def _lock(path: Path) -> Iterator[bool]:
    """Take a lock during the block, or until the process dies; yield False if another process holds it."""
    with _reported(path):
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _PRIVATE)
    try:
        yield _is_taken(lock)
    finally:
        os.close(lock)


def _is_taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _put(path: Path, words: str) -> None:
    """Write a file that only its owner can ever read; a link of that name is replaced."""
    with _reported(path):
        write_whole(path, words.encode("ascii"), is_private=True)


def _get(path: Path) -> str:
    file = _opened(path)
    try:
        if problem := distrust(os.fstat(file), user=os.geteuid()):
            raise _unusable(path, problem)
        content = os.read(file, _LONGEST + 1)
    finally:
        os.close(file)
    if len(content) > _LONGEST or not content.isascii():
        raise _unusable(path, "the farm did not write it")
    return content.decode("ascii")


def _opened(path: Path) -> int:
    try:
        # Not blocking: the path may be a pipe.
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ServerDown(f"no service runs here: {path} is not there; start it: farm serve") from error
    except OSError as error:
        problem = "it is a symbolic link" if error.errno == errno.ELOOP else str(error.strerror)
        raise _unusable(path, problem) from error


def distrust(found: os.stat_result, *, user: int) -> str | None:
    """Return why a file is not a secret of this user, None if it is."""
    if not stat.S_ISREG(found.st_mode):
        return "it is not a file"
    if found.st_uid != user:
        return f"it is of user {found.st_uid}, not {user}"
    if found.st_mode & 0o077:
        return "other users can read or change it"
    return None


def _unusable(path: Path, problem: str) -> UsageError:
    return UsageError(f"{path} cannot be used: {problem}; remove it and restart the service: farm serve")


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FarmError(
            f"{path} cannot be written: {error.strerror}; remove it, or set FARM_HOME to a folder of yours"
        ) from error
