"""Manifest step, replacing a file: readers see the old file or the new one, whole, whatever happens.

The new file is written beside the old one, under a name made from the old one's (`.farm-<hash>.part`),
synced, and renamed. Its writer holds an exclusive `flock` on it: a second process that replaces the same file
waits for the first and then starts from the first one's result. The kernel drops the lock of a process that
dies, and the next one clears its half-written file away.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from farm.manifest.lines import Fingerprint, HashedFile, compressing, unusable

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC

ELSEWHERE = "export to another file: `farm export RUN -o OTHER.jsonl`"


class Replacement:
    """A new file on its way to its place; made by `replacing`.

    Write the text to `text`, then call `finish` and `put_in_place`.
    """

    def __init__(self, target: Path, real: Path, folder: int, part: int) -> None:
        self._target, self._real = target, real
        self._folder, self._part = folder, part
        self._stored = HashedFile(io.FileIO(part, "wb", closefd=False))
        self.text = compressing(target, self._stored)

    def take_owner(self) -> None:
        """Give the new file to the owner of the one it replaces, if there is one and it is not ours."""
        mine = os.fstat(self._part)
        with suppress(FileNotFoundError):
            theirs = self._real.stat()
            if (theirs.st_uid, theirs.st_gid) != (mine.st_uid, mine.st_gid):
                self._give_to(theirs.st_uid, theirs.st_gid)

    def _give_to(self, user: int, group: int) -> None:
        try:
            os.fchown(self._part, user, group)
        except PermissionError as error:
            problem = "belongs to another user or group, and replacing it would make it yours"
            raise unusable(self._target, problem, ELSEWHERE) from error

    def finish(self) -> Fingerprint:
        """Bring the whole file to disk, with the mode of the one it replaces, and return its fingerprint."""
        self.text.close()
        with suppress(FileNotFoundError):
            mode = self._real.stat().st_mode
            # First, because an access list gives the mode's group bits another meaning.
            _copy_attributes(self._real, self._part)
            os.fchmod(self._part, stat.S_IMODE(mode))
        os.fsync(self._part)
        return self._stored.fingerprint

    def put_in_place(self) -> None:
        """Rename the new file to its place, for good once this returns."""
        os.replace(_part_name(self._real), self._real.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        try:
            os.fsync(self._folder)
        except OSError as error:
            # Some network file systems cannot sync a folder, and do not need it.
            if error.errno != errno.EINVAL:
                raise

    def close(self) -> None:
        """Close the buffers, discarding unwritten data."""
        self._stored.abandon()
        self.text.close()


@contextmanager
def replacing(target: Path, *, mode: int) -> Iterator[Replacement]:
    """Make a file that replaces `target`, or is made there, when the body has put it in place.

    The text is compressed by the suffix of `target`. A symbolic link stays, and the file it points to is
    replaced. A file that is replaced passes on owner, mode and extended attributes, and until then the new
    one is its owner's alone. A new file gets the rights of group and others that `mode` and the umask both
    allow.

    Raises ManifestError when the target cannot be written; it is then as it was, and no temporary file
    remains.
    """
    real = Path(os.path.realpath(target))
    with _writing(target):
        if real.exists() and not real.is_file():
            raise unusable(target, "is not a regular file", ELSEWHERE)
        shared = 0 if real.exists() else mode & 0o066
        with (
            _opened_folder(real.parent) as folder,
            _claimed(folder, _part_name(real), 0o600 | shared) as part,
        ):
            new = Replacement(target, real, folder, part)
            try:
                new.take_owner()
                yield new
            finally:
                new.close()


def require_replaceable(target: Path) -> None:
    """Raise ManifestError if a file could not be replaced now; no temporary file remains.

    It performs the beginning of a replacement, so that it finds every obstacle.
    """
    with replacing(target, mode=0o600):
        pass


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = f"free disk space, give yourself write permission in its folder, or {ELSEWHERE}"
        raise unusable(target, f"cannot be written: {error.strerror}", remedy) from error


def _part_name(real: Path) -> str:
    # A hash, since the name itself may be as long as names can be.
    return f".farm-{hashlib.sha256(os.fsencode(real.name)).hexdigest()[:16]}.part"


@contextmanager
def _opened_folder(path: Path) -> Iterator[int]:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield folder
    finally:
        os.close(folder)


@contextmanager
def _claimed(folder: int, name: str, mode: int) -> Iterator[int]:
    """Make an empty file that only we hold; take it away at the end if it still has this name."""
    while (part := _attempt(folder, name, mode)) is None:
        pass
    try:
        yield part
    finally:
        if _is_named(part, folder, name):
            os.unlink(name, dir_fd=folder)
        os.close(part)


def _attempt(folder: int, name: str, mode: int) -> int | None:
    """Return a new locked file, or None after waiting for the process that had this name first."""
    part, is_new = _create_or_open(folder, name, mode)
    with ExitStack() as unless_kept:
        unless_kept.callback(os.close, part)
        fcntl.flock(part, fcntl.LOCK_EX)
        # Another process may have locked, renamed or cleared it away between our two calls.
        if _is_named(part, folder, name):
            if is_new:
                unless_kept.pop_all()
                return part
            os.unlink(name, dir_fd=folder)
    return None


def _create_or_open(folder: int, name: str, mode: int) -> tuple[int, bool]:
    while True:
        with suppress(FileExistsError):
            return os.open(name, _CREATE, mode, dir_fd=folder), True
        with suppress(FileNotFoundError):
            return os.open(name, _OPEN, dir_fd=folder), False


def _is_named(part: int, folder: int, name: str) -> bool:
    try:
        named = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(named, os.fstat(part))


def _copy_attributes(old: Path, part: int) -> None:
    if sys.platform != "linux":
        return
    # Like `cp -a`: attributes that the file system or the kernel reserves are not copied.
    with suppress(OSError):
        for name in os.listxattr(old):
            with suppress(OSError):
                os.setxattr(part, name, os.getxattr(old, name))
