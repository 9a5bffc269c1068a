"""Fork servers: processes that have done what takes long to begin, and fork for each thing asked of them.

`serve` and `lean` are what runs in the box, `server` is who asks from outside. Each thing asked is done by a
process of its own that begins exactly as the last one did; the box around them stays the same, and between
two of them nothing in it lives but the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_START = "import sys; sys.path.insert(0, {!r}); from workers.forks.{} import main; main()"
_HERE = Path(__file__).parent

#: What a fork server must be able to read, besides its Python and what its work is about.
FOLDERS = (_HERE, _HERE.parent / "__init__.py")


def command(python: str, program: str, words: Sequence[str]) -> list[str]:
    """Return the command line of one of the servers, ``audit`` or ``lean``."""
    return [python, "-I", "-S", "-c", _START.format(str(_HERE.parent.parent), program), *words]
