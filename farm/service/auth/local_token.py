"""The token of a service on one's own machine: made at each start, and kept in two files of the home.

`FARM_HOME/http.token` contains the token and `FARM_HOME/http.json` the address, as `{"url": ...}`. Only their
owner can read them, at every moment. The address is as secret as the token: who could change it would be sent
the token. The first service of a home writes them, and removes them when it ends; it holds the flock on
`http.lock` until then, or until it is killed. Other services of that home leave them alone.
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

#: Who presents the local token, or asks over the unix socket: may do everything.
LOCAL = Key(
    id="local",
    name="local",
    scopes=frozenset(Scope),
    classes=frozenset(each.name.lower() for each in Priority),
)

# No API key's: their ids are hexadecimal.
_TOKEN = re.compile(r"farm_local_[A-Za-z0-9_-]{43}", re.ASCII)
_URL = re.compile(r"https?://[!-~]+", re.ASCII)
_PRIVATE = 0o600
_LONGEST = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Local:
    """Where a service of a home is, the token of this start of it, and whether the home's files tell both."""

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
    """Have the files in the home inside the block, with a token that is made now.

    While another service of the home runs, its files stay as they are, and `is_published` is False here.
    Raises `FarmError` where the files cannot be written.
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
    """Write the files of a home, in place of what is there; raises `FarmError`."""
    _put(_token_file(home), local.token)
    _put(_address_file(home), json.dumps({"url": local.url}))


def read(home: Path) -> Local:
    """Return what the files of a home say.

    Raises `ServerDown` where there are none, and `UsageError` for files that others can read, or may have
    written.
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

    What cannot be removed stays: the token of a service that has ended opens nothing.
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
    """Hold a lock until the block ends, or the process; gives whether nobody else holds it."""
    with _told(path):
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
    """Write a file that only its owner can read, from its first moment; a link in its place is replaced."""
    with _told(path):
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
        # Not blocking: somebody may have put a pipe there.
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ServerDown(f"no service runs here: {path} is not there; start it: farm serve") from error
    except OSError as error:
        problem = "it is a symbolic link" if error.errno == errno.ELOOP else str(error.strerror)
        raise _unusable(path, problem) from error


def distrust(found: os.stat_result, *, user: int) -> str | None:
    """Return why a file is no secret of this user, None when it is."""
    if not stat.S_ISREG(found.st_mode):
        return "it is not a file"
    if found.st_uid != user:
        return f"it is of user {found.st_uid}, not {user}"
    if found.st_mode & 0o077:
        return "other users can read or change it"
    return None


def _unusable(path: Path, problem: str) -> UsageError:
    return UsageError(f"{path} cannot be used: {problem}; remove it and start the service anew: farm serve")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FarmError(
            f"{path} cannot be written: {error.strerror}; remove it, or set FARM_HOME to a folder of yours"
        ) from error
