"""Replay step: has Lean's own kernel check every constant of a compiled module again.

It runs in a process of its own, which sees only this package, Lean's shared library, the compiled modules
that may be imported, and the one to replay. It trusts the module's bytes about the kind and the parts of each
object: a module is replayed after the audit has read it, and in a box.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_PACKAGE = Path(__file__).parent
_START = "import sys; sys.path.insert(0, {!r}); from farm_workers.replay.__main__ import main; main()"

#: The paths that a process of the replay must be able to read, besides its Python, Lean and the compiled
#: modules.
FOLDERS = (_PACKAGE, _PACKAGE.parent / "binding", _PACKAGE.parent / "__init__.py")


def command(python: str, library: Path, path: Sequence[str], module: Path) -> list[str]:
    """Return the command line that replays a module, whose imports are in the folders of `path`."""
    start = _START.format(str(_PACKAGE.parent.parent))
    words = ["--library", str(library), "--path", ":".join(path), str(module)]
    return [python, "-I", "-S", "-c", start, *words]
