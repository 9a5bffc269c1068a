"""Image step: a process that has imported a header, and forks for every check and every seal.

`farm_workers.images.images` keeps the images of a worker. One of them (`farm_workers.images.image`) is a fork
server in a box (`farm_workers.images.serve`) that has loaded Lean's shared library, has imported a header
with it, and never reads a submission. For a check it forks a process (`farm_workers.images.child`) in which
Lean's own frontend (`farm_workers.images.frontend`) elaborates the program and writes its module; a keeper
(`farm_workers.images.pid_namespace`) clears its cell afterwards. For a seal it forks a process that reads
the module as data and has the kernel check it (`farm_workers.seal`). For a context it forks two images that
stay (`farm_workers.images.recipe`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_PACKAGE = Path(__file__).parent
_WORKERS = _PACKAGE.parent
_START = "import sys; sys.path.insert(0, {!r}); from {} import main; main()"

#: The paths that an image must be able to read, besides its Python, Lean and the compiled modules.
FOLDERS = (
    _WORKERS / "__init__.py",
    _PACKAGE,
    _WORKERS / "audit",
    _WORKERS / "binding",
    _WORKERS / "replay",
    _WORKERS / "seal",
    _WORKERS / "box" / "launch.py",
    _WORKERS / "box" / "seccomp.py",
    _WORKERS / "box" / "sockets.py",
)


def command(python: str, words: Sequence[str], library: Path, options: Sequence[str]) -> list[str]:
    """Return the command line of an image of Lean's library, with options of Lean's own command line.

    `words` say where it forks, see `farm_workers.images.serve`.
    """
    return started(python, "farm_workers.images.serve", [*words, str(library), *options])


def started(python: str, module: str, words: Sequence[str]) -> list[str]:
    """Return the command line of an image whose `main` is in this module."""
    return [python, "-I", "-S", "-c", _START.format(str(_WORKERS.parent), module), *words]
