"""Sealed files in memory: the input of a command, and copies of the files that a check left behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from farm_workers.box.launch import FILE_BYTES

_UNCHANGING = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


def taken(name: str | Path, folder: int | None = None, *, most_bytes: int = FILE_BYTES) -> BinaryIO | None:
    """Return a sealed copy, in memory, of a plain file; None if it is missing or too large.

    Call it when no process that could write the file is alive. `folder` is a descriptor that `name` is looked
    up in. Links are not followed, and nothing is opened that could block the reader. A file that cannot be
    read to its end gives None as well.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        left = os.open(name, flags, dir_fd=folder)
    except OSError:
        return None
    try:
        status = os.fstat(left)
        fits = stat.S_ISREG(status.st_mode) and 0 < status.st_size <= most_bytes
        return sealed(left, status.st_size) if fits else None
    finally:
        os.close(left)


def sealed(file: int, size: int) -> BinaryIO | None:
    """Return a sealed copy, in memory, of the first `size` bytes of an open file; None if it is shorter."""
    copy = os.fdopen(os.memfd_create("module", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), "r+b", buffering=0)
    while size > 0 and (sent := os.sendfile(copy.fileno(), file, None, size)):
        size -= sent
    if size > 0:
        copy.close()
        return None
    fcntl.fcntl(copy, fcntl.F_ADD_SEALS, _UNCHANGING)
    copy.seek(0)
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
