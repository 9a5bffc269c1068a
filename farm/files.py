"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_whole(path: Path, content: bytes, *, is_private: bool = False) -> None:
    """Write a file in place of an old one or a symbolic link; raises `OSError`.

    The content is written beside it first, under a name that no process can predict and put a link at. A
    private file is readable by its owner only, from its first moment.
    """
    new = path.with_name(f".farm-{secrets.token_hex(8)}.new")
    file = os.open(new, _CREATE, 0o600 if is_private else 0o666)
    try:
        with os.fdopen(file, "wb") as written:
            if is_private:
                os.fchmod(file, 0o600)  # a umask may have taken from it
            written.write(content)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
