"""Tables of dependencies of compiled modules, made in the test's own process."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

from farm_workers.audit.dependencies import Contents, Table, write
from farm_workers.audit.library import read


def table_of(folders: Iterable[Path | str], environment: str = "") -> Table:
    """Return the table of all modules in some folders."""
    return table(read([Path(folder) for folder in folders]), environment)


def table(contents: Contents, environment: str = "") -> Table:
    """Return the table with these contents."""
    return Table(memoryview(packed(contents, environment)))


def packed(contents: Contents, environment: str = "") -> bytes:
    """Return the file of a table."""
    out = io.BytesIO()
    write(contents, environment, out)
    return out.getvalue()
