"""The machine's first files: a cpio archive with busybox, kernel modules and the script that is process 1.

The script lays an overlay in memory over the host's root, which it has over 9p: all can be written to, and
nothing reaches the host. Then it becomes the command.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from tests.vm.parts import Parts, modules

#: Names under which qemu offers the two folders.
HOST, RESULTS = "host", "results"
#: Where the machine finds the folder for results.
RESULTS_AT = Path("/run/results")

_INIT = f"""#!/bin/busybox sh
set -e
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
# Programs set aside more memory than the machine has; what they may use is for their cgroups to say.
echo 1 > /proc/sys/vm/overcommit_memory
for module in @MODULES@; do insmod /modules/$module.ko; done
over_virtio=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o ro,cache=loose,$over_virtio {HOST} /lower
mount -t tmpfs -o mode=755 tmpfs /upper
mkdir /upper/files /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /root
cd /root
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t devtmpfs devtmpfs dev
mkdir -p dev/pts dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts dev/pts
for folder in dev/shm tmp; do mount -t tmpfs -o mode=1777 tmpfs $folder; done
mount -t tmpfs -o mode=755 tmpfs run
mkdir run/results
mount -t 9p -o cache=none,$over_virtio {RESULTS} run/results
mount -t cgroup2 cgroup2 sys/fs/cgroup
ip link set lo up
umount /proc
exec switch_root -c /dev/console /root @COMMAND@
"""


def write(file: Path, parts: Parts, command: Sequence[str]) -> None:
    """Write the archive for a machine whose first process becomes `command`, found on the host's root."""
    loaded = modules(parts.modules, "virtio_pci", "9pnet_virtio", "9p", "overlay")
    init = _INIT.replace("@MODULES@", " ".join(loaded)).replace("@COMMAND@", shlex.join(command))
    folders = ("bin", "dev", "lower", "modules", "proc", "root", "upper")
    entries = [
        *(_entry(folder, 0o40755) for folder in folders),
        _entry("dev/console", 0o20600, device=(5, 1)),
        _entry("bin/busybox", 0o100755, parts.busybox.read_bytes()),
        *(_entry(f"modules/{name}.ko", 0o100644, content) for name, content in loaded.items()),
        _entry("init", 0o100755, init.encode()),
        _entry("TRAILER!!!", 0),
    ]
    file.write_bytes(b"".join(entries))


def _entry(name: str, mode: int, content: bytes = b"", *, device: tuple[int, int] = (0, 0)) -> bytes:
    """Return one file of an archive: Linux's Documentation/driver-api/early-userspace/buffer-format.rst."""
    path = name.encode() + b"\0"
    # inode, mode, owner, group, links, time, size, device below, device that it is, length of name, sum
    fields = (0, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(path), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    return _padded(head) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
