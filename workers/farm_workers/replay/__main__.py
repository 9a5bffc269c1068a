"""Replay step, as a process: has Lean's kernel check one module's constants, and prints one JSON object.

It needs a Python, this package and Lean's shared library. From a checkout, `main` of this module is called
by::

    python -I -S -c "import sys; sys.path[:0] = [DIR]; from farm_workers.replay.__main__ import main; main()"

with ``--library LIBLEANSHARED.so --path DIR[:DIR...] MODULE.olean`` behind it. The exit status is 0 when the
kernel has accepted every constant, 1 when it has refused one or the module differs from the kernel's own
result for the declarations, 2 when the replay reached no result. A crash of Lean is a signal, which is none
of these.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
from collections.abc import Sequence
from typing import NoReturn

from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import LeanError
from farm_workers.binding.table import Ability
from farm_workers.replay.replay import KernelRefused, replay

ACCEPTED, REFUSED, FAILED = 0, 1, 2
#: The most characters of the kernel's message, and the most constants, in a result.
MOST_CHARACTERS, MOST_NAMES = 500, 20
#: Dependencies are followed by recursion. Linux leaves 128 MiB below the main thread's stack in any case.
STACK_BYTES = 100 << 20


def main(words: Sequence[str] | None = None) -> NoReturn:
    """Replay the module named on the command line and end the process."""
    arguments = _parser().parse_args(words)
    _prepare(arguments.path)
    try:
        facts, status = _answer(arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, nothing was found out
        print(" ".join(str(error).split()) or repr(error), file=sys.stderr)  # noqa: T201 - talk
        facts, status = {}, FAILED
    if facts:
        print(json.dumps(facts))  # noqa: T201 - the answer
    sys.stdout.flush()
    os._exit(status)  # Lean's shutdown might crash after the answer


def _answer(arguments: argparse.Namespace) -> tuple[dict[str, object], int]:
    lean = Lean(arguments.library, [Ability.REPLAY])
    try:
        done = replay(lean, arguments.module)
    except KernelRefused as refused:
        return {"accepted": False, "what": str(refused)[:MOST_CHARACTERS]}, REFUSED
    if done.skipped and not done.constants:
        raise LeanError(f"all {len(done.skipped)} constants are unsafe or partial: nothing was replayed")
    facts = {"accepted": True, "constants": done.constants}
    return facts | ({"skipped": list(done.skipped[:MOST_NAMES])} if done.skipped else {}), ACCEPTED


def _prepare(path: str) -> None:
    """Set the variables and limits that Lean reads: the path of modules, and to abort on a panic."""
    os.environ["LEAN_PATH"] = path
    os.environ["LEAN_ABORT_ON_PANIC"] = "1"
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    most = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="replay", description="Have Lean's kernel check a compiled module again."
    )
    parser.add_argument("module", help="the compiled module (.olean)")
    parser.add_argument("--library", required=True, help="Lean's shared library (libleanshared.so)")
    parser.add_argument("--path", required=True, help="folders of compiled modules, separated by colons")
    return parser


if __name__ == "__main__":
    main()
