"""Image step, printing: prints terms of a sealed module as Lean shows them, for people and programs to read.

No code of the submission takes part: the notations are those of the header. A term may be as large as its
module, and hostile: so it is printed in a fork of the seal's process, within a few seconds.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence

from farm_workers.binding import table
from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import shared
from farm_workers.binding.table import Ability
from farm_workers.box import launch
from farm_workers.images.filters import Filter
from farm_workers.images.process import leave
from farm_workers.images.terms import printed
from farm_workers.seal.kernel import Printed

_LOOK_SECONDS = 0.002


def printer(lean: Lean, context: int, calls: Filter, seconds: float) -> Printed:
    """Return a function that prints terms for at most `seconds`, in a fork that installs the filter.

    `context` is a `Lean.Elab.ContextInfo` of the header.
    """

    def printed(environment: int, terms: Sequence[int]) -> list[str | None]:
        if lean.lacks(Ability.PRINTING):
            return [None] * len(terms)
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        parent = os.getpid()
        if os.fork() == 0:
            leave(lambda: _print_alone(lean, context, environment, terms, (writing, calls, parent)))
        os.close(writing)
        found = _lines(reading, seconds)
        return [*found, *[None] * len(terms)][: len(terms)]

    return printed


def _lines(reading: int, seconds: float) -> list[str | None]:
    """Return the terms that come through a pipe before it is closed, or the time is over."""
    deadline, said = time.monotonic() + seconds, b""
    while time.monotonic() < deadline:
        try:
            more = os.read(reading, 1 << 16)
        except BlockingIOError:
            time.sleep(_LOOK_SECONDS)
            continue
        if not more:
            break
        said += more
    whole, _, _ = said.rpartition(b"\n")
    return [json.loads(line) for line in whole.split(b"\n") if line]


def _print_alone(
    lean: Lean, context: int, environment: int, terms: Sequence[int], where: tuple[int, Filter, int]
) -> int:
    """Print terms in this process, a fork of a seal, and write them to a pipe."""
    writing, calls, parent = where
    launch.prctl(launch.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return 1
    for descriptor in (1, 2):  # 0 leads nowhere already
        os.dup2(0, descriptor, inheritable=False)
    os.closerange(3, writing)
    os.closerange(writing + 1, launch.OPEN_FILES)
    calls.take()
    here = lean.copy(lean.get(table.COMMAND_CONTEXT, context))
    lean.put(table.CONTEXT_ENVIRONMENT, here, lean.call(table.VIEW_OF_KERNEL, shared(environment)))
    for term in terms:
        os.write(writing, json.dumps(printed(lean, context, here, term)).encode() + b"\n")
    return 0
