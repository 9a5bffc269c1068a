"""An image for the tests: a process that has imported a header, and seals each module in a fork of itself.

As a program it is the image: ``python sealing.py LIBRARY LEAN_PATH HEADER.olean`` takes orders from its
standard input, one JSON object a line, and answers each with one line.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.processes import CODE


@dataclass(frozen=True, kw_only=True)
class Sealed:
    """What a fork answered: facts, or the status that it died with, and its processor time."""

    facts: dict[str, Any] | None
    status: int
    cpu_seconds: float
    said: str

    def __getitem__(self, key: str) -> Any:
        assert self.facts is not None, self
        return self.facts[key]

    @property
    def words(self) -> list[tuple[str, str | None]]:
        """The findings, without their sentences."""
        return [(each["word"], each["name"]) for each in self["findings"]]


class Image:
    """A process with an imported header, and what it is asked."""

    def __init__(
        self, library: str, lean_path: Sequence[str], header: Path, description: Path | None = None
    ) -> None:
        given = [str(description)] if description else []
        words = [sys.executable, __file__, library, ":".join(lean_path), str(header), *given]
        self._process = subprocess.Popen(
            words,
            env={
                "PYTHONPATH": CODE,
                "UV_USE_IO_URING": "0",
                **({"WARM": os.environ["WARM"]} if "WARM" in os.environ else {}),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seal(self, module: Path, challenge: Path | None = None, **order: Any) -> Sealed:
        """Seal a module in a fork; the order's further words are those of `farm_workers.seal.SealRequest`."""
        order |= {"module": str(module), "challenge": challenge and str(challenge)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return Sealed(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        assert self._process.wait(60) == 0
        self._process.stdout.close()


def _serve(library: str, path: str, header: str, *description: str) -> None:
    from farm_workers.binding import table
    from farm_workers.binding.description import decoded
    from farm_workers.binding.lean import Lean
    from farm_workers.binding.objects import FALSE, TRUE, boxed, field, shared
    from farm_workers.images.frontend import NEEDED
    from farm_workers.seal import Kernel, SealRequest, seal

    os.environ["LEAN_PATH"], os.environ["LEAN_ABORT_ON_PANIC"] = path, "1"
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    described = decoded(Path(*description).read_text()) if description else None
    lean = Lean(library, NEEDED, described)
    lean.runtime(table.INITIALIZERS_RUN)()
    root = field(lean.call(table.READ_MODULE, lean.string(header)), 0)
    # Extensions of imports are loaded, as an image has them.
    more = boxed(0), lean.array([]), FALSE, TRUE, boxed(lean.number(table.WHOLE_MODULE))
    words = (
        lean.get(table.IMPORTS, root),
        lean.constant(table.NO_OPTIONS),
        *more,
        lean.call(table.NO_ARTIFACTS),
    )
    environment = lean.call(table.IMPORT, *words)
    kernel = Kernel(environment=lean.call(table.OF_KERNEL, shared(environment)))
    lean.runtime(table.START_TASKS)(1)

    def work(order: dict[str, Any]) -> dict[str, Any]:
        into = order.pop("into", None)
        limits = order.pop("memory", None)
        if limits:
            resource.setrlimit(resource.RLIMIT_AS, (limits, limits))
        files = {key: order.pop(key) for key in ("module", "challenge")}
        given = {key: None if file is None else Path(file).read_bytes() for key, file in files.items()}
        descriptor = None if into is None else os.open(into, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        if order.pop("strict", False):
            _lock()
        begun = time.process_time()
        facts = seal(lean, kernel, SealRequest(**given, **order, into=descriptor))  # type: ignore[arg-type]
        return facts | {"cpu_ms": 1e3 * (time.process_time() - begun)}

    if os.environ.get("WARM"):
        for _ in range(5):
            seal(lean, kernel, SealRequest(module=Path(os.environ["WARM"]).read_bytes()))
        import gc

        gc.collect()
        gc.freeze()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_forked(lean, work, json.loads(line))) + "\n")
        sys.stdout.flush()


def _forked(lean: Any, work: Any, order: dict[str, Any]) -> dict[str, Any]:
    seconds = order.pop("seconds", 60)
    (read, write), (hear, speak) = os.pipe(), os.pipe()
    from farm_workers.binding.table import START_TASKS

    child = os.fork()
    if child == 0:
        os.dup2(speak, 2)
        lean.runtime(START_TASKS)(1)
        try:
            os.write(write, json.dumps(work(order)).encode() + b"\n")
        except Exception:  # noqa: BLE001 - whatever it is, a test has to see it
            os.write(speak, traceback.format_exc().encode())
            os._exit(3)
        os._exit(0)
    os.close(write)
    os.close(speak)
    facts, said = _heard(child, read, hear, seconds)
    _, status, used = os.wait4(child, 0)
    return {
        "facts": json.loads(facts) if facts.endswith(b"\n") else None,
        "status": os.waitstatus_to_exitcode(status),
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "said": said.decode(errors="replace"),
    }


def _heard(child: int, read: int, hear: int, seconds: float) -> tuple[bytes, bytes]:
    """Read both pipes to their ends; the child is killed when its time is up."""
    end, heard = time.monotonic() + seconds, {read: b"", hear: b""}
    left = set(heard)
    while left:
        ready, _, _ = select.select(list(left), [], [], max(0.0, end - time.monotonic()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            end = time.monotonic() + 60
        for each in ready:
            block = os.read(each, 1 << 16)
            heard[each] += block
            if not block:
                left.discard(each)
                os.close(each)
    return heard[read], heard[hear]


#: What a seal needs of Linux, by machine: read, write, memory, futexes, clocks, signals of its own, the end.
CALLS = {
    "x86_64": (0, 1, 9, 10, 11, 12, 13, 14, 15, 25, 28, 60, 131, 202, 228, 231, 234, 39, 186),
    "aarch64": (63, 64, 222, 226, 215, 214, 134, 135, 139, 216, 233, 93, 132, 98, 113, 94, 131, 172, 178),
}


def _lock() -> None:
    """Allow this process what a seal needs, and nothing else: any other call ends it."""
    libc = ctypes.CDLL(None, use_errno=True)
    calls = CALLS[os.uname().machine]
    allow = [struct.pack("<HBBI", 0x15, len(calls) - number, 0, call) for number, call in enumerate(calls)]
    # Load the call's number; compare; kill the process; allow.
    words = [struct.pack("<HBBI", 0x20, 0, 0, 0), *allow]
    words += [struct.pack("<HBBI", 6, 0, 0, 0x80000000), struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(words))
    program = struct.pack("<HxxxxxxQ", len(words), ctypes.addressof(code))
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0


if __name__ == "__main__":
    _serve(*sys.argv[1:])
