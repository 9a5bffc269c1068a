"""Sealed files in memory: the input of a command, and copies of the files that a check left behind."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from farm_workers.box.launch import FILE_BYTES

_UNCHANGING = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
#: The errors with which Linux says what stands at a name: nothing, a link, or a socket or device. Every other
#: error, such as EMFILE, ENOMEM, EIO or EACCES, leaves open what stands there.
_NO_FILE = frozenset({errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.ENODEV})


def taken(name: str | Path, folder: int | None = None, *, most_bytes: int = FILE_BYTES) -> BinaryIO | None:
    """Return a sealed copy, in memory, of a plain file; None if there is none, or an empty or too large one.

    Call it when no process that could write the file is alive. `folder` is a descriptor that `name` is looked
    up in. Links are not followed, and nothing is opened that could block the reader. Raises OSError where the
    file cannot be read: that is a failure of this machine, and no fact about who should have written it.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        left = os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise
    try:
        status = os.fstat(left)
        fits = stat.S_ISREG(status.st_mode) and 0 < status.st_size <= most_bytes
        return _sealed(left, status.st_size) if fits else None
    finally:
        os.close(left)


def _sealed(file: int, size: int) -> BinaryIO:
    """Return a sealed copy, in memory, of the first `size` bytes of an open file. Raises OSError."""
    copy = os.fdopen(os.memfd_create("module", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), "r+b", buffering=0)
    with contextlib.ExitStack() as undo:
        undo.callback(copy.close)
        while size > 0:
            sent = os.sendfile(copy.fileno(), file, None, size)
            if not sent:
                raise OSError(errno.EIO, "a file of a check became shorter while it was read")
            size -= sent
        fcntl.fcntl(copy, fcntl.F_ADD_SEALS, _UNCHANGING)
        copy.seek(0)
        undo.pop_all()
    return copy


@contextlib.contextmanager
def as_file(content: bytes) -> Iterator[int]:
    """Give `content` as a sealed file in memory; unlike a pipe it needs no writer."""
    descriptor = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _UNCHANGING)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
