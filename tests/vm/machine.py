"""A software-emulated machine: it boots this host's files under another kernel, and ends or is ended."""

from __future__ import annotations

import collections
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.vm.initramfs import HOST, RESULTS
from tests.vm.parts import QEMU

#: What the command in the machine says on the console once it runs.
UP = b"The machine is up"
#: The file among the results that the command writes last.
DONE = "done.json"
#: A boot takes some 6 s on a quiet host.
BOOT_SECONDS = 120.0
_LINES = 80


class MachineFailed(Exception):
    """The machine did not boot, hung or crashed; the message has the last lines of its console."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """A kernel, its first files, the one folder of this host that it may write to, and what else it gets."""

    kernel: Path
    initramfs: Path
    results: Path
    processors: int = 2
    memory_mib: int = 2048

    def run(self, *, seconds: float) -> None:
        """Boot, pass the console on to stdout, and return when the machine has done its work and is off.

        Raises `MachineFailed` when it is not up within `BOOT_SECONDS`, not off within `seconds`, or off
        without having written `DONE`.
        """
        command = ["setpriv", "--pdeathsig", "KILL", QEMU, *self._options()]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            assert process.stdout
            console = Console(process.stdout.fileno())
            try:
                console.follow(seconds)
            finally:
                process.kill()
        if not (self.results / DONE).exists():
            raise console.failure("was off before its work was done")

    def _options(self) -> list[str]:
        return [
            *("-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio"),
            # q35 has the timer by which the kernel knows the time under emulation.
            *("-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max"),
            *("-smp", str(self.processors), "-m", str(self.memory_mib)),
            *("-kernel", str(self.kernel), "-initrd", str(self.initramfs)),
            # A panic restarts at once, and a restart ends qemu.
            *("-append", "console=ttyS0 panic=-1 loglevel=1 mitigations=off", "-no-reboot"),
            *_shared(HOST, Path("/"), "readonly=on,multidevs=remap"),
            *_shared(RESULTS, self.results, "readonly=off"),
        ]


def _shared(name: str, folder: Path, options: str) -> list[str]:
    return [
        *("-fsdev", f"local,id={name},path={folder},security_model=none,{options}"),
        *("-device", f"virtio-9p-pci,fsdev={name},mount_tag={name}"),
    ]


class Console:
    """What a machine says on its console: passed on as it comes, and the last of it kept."""

    def __init__(self, source: int) -> None:
        self._source = source
        self._begun = time.monotonic()
        self._up = False
        self._last: collections.deque[bytes] = collections.deque([b""], maxlen=_LINES)

    def follow(self, seconds: float, *, boot: float = BOOT_SECONDS) -> None:
        """Pass on what comes until the machine is off. Raises `MachineFailed` when that takes too long."""
        while self._ready(seconds if self._up else boot):
            data = os.read(self._source, 1 << 16)
            if not data:
                return
            self._pass_on(data.replace(b"\r", b""))
        raise self.failure(f"was not done after {seconds:g} s" if self._up else "did not boot in time")

    def _ready(self, seconds: float) -> bool:
        left = self._begun + seconds - time.monotonic()
        return bool(select.select([self._source], [], [], max(0.0, left))[0])

    def _pass_on(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        first, *more = data.split(b"\n")
        self._last[-1] += first
        self._last.extend(more)
        self._up = self._up or any(UP in line for line in self._last)

    def failure(self, what: str) -> MachineFailed:
        """Return the exception that says so, with the last lines."""
        lines = b"\n".join(self._last).decode(errors="replace")
        return MachineFailed(f"the machine {what}; the last lines of its console:\n{lines}")
