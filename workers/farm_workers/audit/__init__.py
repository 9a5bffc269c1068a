"""Audit step: reads a compiled module as data, and decides whether it proves the challenge's statement.

It runs no code of the files that it reads, and needs nothing but the standard library, so it can run in a
process that sees only this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_PACKAGE = Path(__file__).parent
_START = "import sys; sys.path.insert(0, {!r}); from farm_workers.audit.{} import main; main()"

#: The paths that a process of the audit must be able to read, besides its Python and the audited files.
FOLDERS = (_PACKAGE, _PACKAGE.parent / "__init__.py")


def command(python: str, program: str, words: Sequence[str]) -> list[str]:
    """Return the command line of one of the audit's programs: ``__main__``, ``imports`` or ``export``."""
    return [python, "-I", "-S", "-c", _START.format(str(_PACKAGE.parent.parent), program), *words]
