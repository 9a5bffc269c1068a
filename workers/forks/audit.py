"""A fork server of the audit: reads compiled modules, each in a process of its own, and runs nothing of any.

The words are those of `workers.audit.__main__`; ``fd:N`` is the Nth of the further files, from 0.
"""

from __future__ import annotations

import re

from workers.audit.__main__ import run
from workers.forks.serve import serve

_FILE = re.compile(r"fd:(\d+)")


def main() -> None:
    """Serve until nobody asks any more."""
    serve(lambda words, files: run([_FILE.sub(lambda n: f"fd:{files[int(n[1])]}", word) for word in words]))
