"""How fast the disk of the modules is, and which file system it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from farm_workers.environments.storage import Storage, filesystem, measure

MIB = 1024 * 1024
MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /srv rw - nfs4 server:/export rw
31 30 0:41 / /srv/with\\040space rw master:2 propagate_from:3 - fuse.sshfs user@host: rw
32 22 8:1 /sub /srv2 rw - xfs /dev/sdb rw
"""


def test_few_modules_are_not_measured(tmp_path: Path) -> None:
    (tmp_path / "A.olean").write_bytes(bytes(MIB))
    assert measure([tmp_path]) is None


def test_modules_are_read_from_the_disk_and_counted(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "A.olean").write_bytes(os.urandom(40 * MIB))
    (tmp_path / "B.olean").write_bytes(os.urandom(8 * MIB))
    (tmp_path / "C.ilean").write_bytes(bytes(8 * MIB))
    found = measure([tmp_path])
    assert found is not None
    assert (found.mib, found.folder) == (48, tmp_path)
    assert found.mib_per_second > 0
    assert found.filesystem == filesystem(tmp_path) != "unknown"


def test_only_a_slow_disk_is_warned_of() -> None:
    found = Storage(folder=Path("/srv"), filesystem="nfs4", mib=6000, mib_per_second=20)
    words = found.warning()
    assert "/srv (nfs4) are read at 20 MiB/s: reading all 6000 MiB takes 300 s" in words
    assert "farm environments pack" in words
    assert found.warning(least=20) == ""


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/home/x", "ext4"), ("/srv/modules", "nfs4"), ("/srv/with space/a", "fuse.sshfs"), ("/srv2/a", "xfs")],
)
def test_the_file_system_is_that_of_the_closest_mount(tmp_path: Path, path: str, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert filesystem(Path(path), mounts) == kind
