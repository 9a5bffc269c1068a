"""A fork server of the audit: reads compiled modules, each in a process of its own, and runs nothing of any.

The words are those of `workers.audit.__main__`, or `IMPORTS` and a module to be told its imports; ``fd:N`` is
the Nth of the further files, from 0.
"""

from __future__ import annotations

from workers.audit.__main__ import run
from workers.audit.imports import tell
from workers.forks.serve import serve

IMPORTS = "imports"


def main() -> None:
    """Serve until nobody asks any more."""
    serve(_work)


def _work(words: list[str], files: list[int]) -> int:
    if words == [IMPORTS]:
        return tell(files[0])
    return run([_named(word, files) for word in words])


def _named(word: str, files: list[int]) -> str:
    return f"fd:{files[int(word[3:])]}" if word.startswith("fd:") else word
