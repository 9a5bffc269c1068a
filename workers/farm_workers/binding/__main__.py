"""Binding step, as a process: prints the abilities that a library lacks, as one JSON object.

It is called as ``python -I -S -c "...; main()" LIBRARY [DESCRIPTION]``; without a description, the farm's own
for the library's release counts. It loads the library, which is why it has a process of its own.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

from farm_workers.binding.bind import bind
from farm_workers.binding.description import NotDescribed, decoded, shipped
from farm_workers.binding.mangling import symbol_of
from farm_workers.binding.signatures import Description
from farm_workers.binding.table import MAJOR, MINOR


def main() -> None:
    """Print the lacking abilities; the exit status is 1 without a library or a description."""
    path, *description = sys.argv[1:]
    try:
        library = ctypes.CDLL(path)
        found = decoded(Path(description[0]).read_text(encoding="utf-8")) if description else _own(library)
    except (OSError, ValueError, NotDescribed) as error:
        sys.exit(str(error))
    binding = bind(found, lambda symbol: hasattr(library, symbol))
    sys.stdout.write(json.dumps({"lean": binding.lean, "source": binding.source, "lacking": binding.lacking}))


def _own(library: ctypes.CDLL) -> Description:
    library.lean_initialize()
    major, minor = (
        ctypes.c_size_t.in_dll(library, symbol_of(each.name)).value >> 1 for each in (MAJOR, MINOR)
    )
    return shipped(major, minor)
