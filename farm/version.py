"""The version of this farm. Outside of a release it names the commit and a digest of the code.

The version is part of the cache key of a check: two farms that judge differently must not have the same.
"""

from __future__ import annotations

import os
import re
from functools import cache
from hashlib import sha256
from pathlib import Path

#: The release that this code is, or that it follows.
RELEASE = "0.1.0"
#: The digest of that release's code (`_code`), written when it is made; "" before.
RELEASED_CODE = ""
_PACKAGES = ("farm", "workers/farm_workers", "migrations/farm_migrations")


@cache
def farm_version() -> str:
    """Return the version, such as ``0.1.0``, or ``0.1.0+g1a2b3c4d.s5e6f7a8b`` outside of a release.

    An installed distribution has it in its metadata. In a source tree `s` precedes the digest of the code,
    and `g` the commit of a clone, for people: the digest also changes with what was not committed.
    """
    # A client imports less than this of the farm.
    from importlib.metadata import distributions

    root = Path(__file__).parents[1]
    # Only beside this package: elsewhere an editable installation says what the clone was when it was made.
    for installed in distributions(name="lean-proof-farm", path=[str(root)]):
        return installed.version
    code = _code(root)
    return RELEASE if code == RELEASED_CODE else f"{RELEASE}+{_commit(root)}{code}"


def _code(root: Path) -> str:
    """Return the digest of the packages' files, with their names but without this one's contents."""
    digest, own = sha256(), Path(__file__)
    for package in _PACKAGES:
        for folder, subfolders, names in os.walk(root / package):
            subfolders[:] = sorted(name for name in subfolders if name != "__pycache__")
            place = os.path.relpath(folder, root)
            for file in (Path(folder, name) for name in sorted(names)):
                if file != own and file.exists():  # editors make links that lead nowhere
                    content = file.read_bytes()
                    digest.update(os.fsencode(f"{place}/{file.name}\0{len(content)}\0") + content)
    return f"s{digest.hexdigest()[:8]}"  # a number would lose its zeros in the normal form of PEP 440


def _commit(root: Path) -> str:
    """Return the commit that a clone has checked out; "" where git keeps it in other files than usual."""
    git = root / ".git"
    try:
        name = _text(git / "HEAD").removeprefix("ref: ")
        packed = re.search(rf"^(\S+) {re.escape(name)}$", _text(git / "packed-refs"), flags=re.MULTILINE)
        commit = _text(git / name) or (packed[1] if packed else name)
    except (OSError, ValueError):
        return ""
    return f"g{commit[:8]}." if re.match("[0-9a-f]{40}", commit) else ""


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""
