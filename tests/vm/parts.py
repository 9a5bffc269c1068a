"""What the machine is made of: this host's qemu and bubblewrap, and a Debian kernel and a busybox from apt.

The packages are downloaded and unpacked into one folder, never installed; once there, they stay as they are.
"""

from __future__ import annotations

import lzma
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

QEMU = "qemu-system-x86_64"
#: Debian's package that depends on the newest kernel. Not its "cloud" sister, which cannot mount 9p.
NEWEST_KERNEL = "linux-image-amd64"
#: Programs of this host that are asked for, and the packages that have them.
PROGRAMS = {QEMU: "qemu-system-x86", "bwrap": "bubblewrap", "dpkg-deb": "dpkg", "apt-get": "apt"}


class MissingPart(Exception):
    """Something that the machine needs is not on this host; the message says how to get it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """The files that a machine starts from: kernel image, its folder of modules, and a static busybox."""

    kernel: Path
    modules: Path
    busybox: Path


def gathered(folder: Path) -> Parts:
    """Return the parts, after downloading into `folder` what is not there yet. Raises `MissingPart`."""
    if lacking := [package for program, package in PROGRAMS.items() if not shutil.which(program)]:
        raise MissingPart(f"sudo apt-get install --no-install-recommends {' '.join(lacking)}")
    folder.mkdir(parents=True, exist_ok=True)
    kernel, busybox = folder / "kernel", folder / "busybox"
    if not kernel.exists():
        _unpack(_newest_kernel(), kernel)
    if not busybox.exists():
        _unpack("busybox-static", busybox)
    return Parts(
        kernel=next(kernel.glob("boot/vmlinuz-*")),
        modules=next(path for path in kernel.rglob("lib/modules/*/kernel")),
        busybox=next(path for path in busybox.rglob("bin/busybox")),
    )


def _newest_kernel() -> str:
    depends = _output(["apt-cache", "depends", "--important", NEWEST_KERNEL])
    found = re.search(r"Depends: (linux-image-\S+)", depends)
    if not found:
        raise MissingPart(f"sudo apt-get update  # apt knows no package {NEWEST_KERNEL}, Debian's kernel")
    return found[1]


def _unpack(package: str, folder: Path) -> None:
    """Download a package and unpack it into `folder`, which is there whole or not at all."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        new = Path(name)
        _output(["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", package], new)
        _output(["dpkg-deb", "-x", next(new.glob("*.deb")).name, "unpacked"], new)
        (new / "unpacked").rename(folder)


def _output(command: list[str], folder: Path | None = None) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MissingPart(f"sudo apt-get update  # {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def modules(folder: Path, *wanted: str) -> dict[str, bytes]:
    """Return kernel modules by name with all that they depend on, in an order in which they can be loaded."""
    found: dict[str, bytes] = {}
    for name in wanted:
        content = _module(folder, name)
        depends = re.search(rb"\0depends=([^\0]*)\0", content)
        below = depends[1].decode().split(",") if depends and depends[1] else []
        found = {**found, **modules(folder, *below), name: content}
    return found


def _module(folder: Path, name: str) -> bytes:
    # File names have either sign where module names have an underscore.
    pattern = re.sub("[-_]", "[-_]", name)
    file = next(file for end in (".ko", ".ko.xz") for file in folder.rglob(pattern + end))
    return lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_bytes()
