"""Bundles of environments: what is packed comes out the same, and what is no sound bundle leaves nothing."""

from __future__ import annotations

import io
import json
import os
import platform
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import zstandard
from farm_workers.environments import bundle
from farm_workers.environments.configured import Parts
from farm_workers.environments.lean_environment import KernelChecker
from farm_workers.environments.toolchain import Toolchain

from farm.errors import FarmError, UsageError
from tests.processes import CODE
from tests.toolchains import script

SAYS = "Lean (version 4.35.0, x86_64-unknown-linux-gnu, commit eb6cafb7290e, Release)"


def quietly(_: str) -> None:
    """Tell nobody."""


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    """A toolchain and one folder of modules, with links of every kind."""
    toolchain, modules = tmp_path / "toolchain", tmp_path / "modules"
    lean = script(toolchain / "bin" / "lean", "exit 0")
    (toolchain / "lib" / "lean").mkdir(parents=True)
    (toolchain / "lib" / "lean" / "Init.olean").write_bytes(b"init")
    (toolchain / "lib" / "here").symlink_to("lean/Init.olean")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "Out.olean").write_bytes(os.urandom(100_000))
    modules.mkdir()
    (modules / "A.olean").write_bytes(b"a")
    (modules / "Absolute.olean").symlink_to(outside / "Out.olean")
    (modules / "Out").symlink_to("../outside")
    (modules / "Out again").symlink_to(outside)
    (outside / "Back").symlink_to(modules)
    (modules / "Round").symlink_to(".")
    (modules / ("N" * 200 + ".olean")).write_bytes(b"long")
    return Parts(
        toolchain=Toolchain(lean=lean, says=SAYS),
        packages="",
        options=("-DmaxRecDepth=600",),
        lean_path=(str(modules),),
        checkers=(),
    )


def test_permitting_sorries_of_the_library_changes_the_digest(parts: Parts) -> None:
    facts = {key: getattr(parts, key) for key in Parts.__slots__}
    lenient = Parts(**{**facts, "permits_library_sorries": True})
    assert lenient.digest("contents") != parts.digest("contents")


def packed(parts: Parts, file: Path, **table: Any) -> Path:
    bundle.pack("m", table, parts, "d" * 64, file, quietly)
    return file


def test_what_is_packed_comes_out_with_its_modes_and_links(parts: Parts, tmp_path: Path) -> None:
    file = packed(parts, tmp_path / "m.farm", headers=["import A\n"], options=list(parts.options))
    there = tmp_path / "there"
    before = os.umask(0o077)
    try:
        bundle.unpack(file, there, quietly)
    finally:
        os.umask(before)
    toolchain, modules = there / "toolchain", there / "modules" / "0"
    assert (toolchain / "bin" / "lean").stat().st_mode & 0o777 == 0o755
    assert (toolchain / "lib" / "lean" / "Init.olean").stat().st_mode & 0o777 == 0o644
    assert (toolchain / "lib" / "here").readlink() == Path("lean/Init.olean")
    assert (modules / "Round").readlink() == Path()
    out = (tmp_path / "outside" / "Out.olean").read_bytes()
    for name in ("Absolute.olean", "Out/Out.olean", "Out again/Out.olean"):
        assert not (modules / name).is_symlink()
        assert (modules / name).read_bytes() == out
    assert (modules / ("N" * 200 + ".olean")).read_bytes() == b"long"
    keys, digest = bundle.unpacked(there)
    assert (keys["lean"], keys["lean_path"]) == (str(toolchain / "bin" / "lean"), [str(modules)])
    assert (keys["headers"], digest) == (["import A\n"], "d" * 64)


def test_equal_environments_give_equal_bundles(parts: Parts, tmp_path: Path) -> None:
    first, second = (packed(parts, tmp_path / name).read_bytes() for name in ("a", "b"))
    assert first == second


def test_a_checker_of_the_toolchain_is_carried(parts: Parts, tmp_path: Path) -> None:
    own = script(tmp_path / "toolchain" / "bin" / "leanchecker", "exit 0")
    checker = KernelChecker(name="leanchecker", command=(str(own), "{module}"), visible=())
    replaced = Parts(**{**{key: getattr(parts, key) for key in Parts.__slots__}, "checkers": (checker,)})
    bundle.unpack(packed(replaced, tmp_path / "m.farm"), tmp_path / "there", quietly)
    keys, _ = bundle.unpacked(tmp_path / "there")
    assert keys["checker"] == [str(tmp_path / "there" / "toolchain" / "bin" / "leanchecker"), "{module}"]


def test_what_no_bundle_can_carry_is_refused(parts: Parts, tmp_path: Path) -> None:
    facts = {key: getattr(parts, key) for key in Parts.__slots__}
    with pytest.raises(UsageError, match="visible: "):
        packed(parts, tmp_path / "m.farm", visible=["/nix"])
    with pytest.raises(UsageError, match="options: an option names a path"):
        packed(Parts(**{**facts, "options": ("--plugin=/x.so",)}), tmp_path / "m.farm")
    checker = KernelChecker(name="nanoda", command=("/opt/nanoda", "{module}"), visible=())
    with pytest.raises(UsageError, match="checker: it lies outside"):
        packed(Parts(**{**facts, "checkers": (checker,)}), tmp_path / "m.farm")
    with pytest.raises(UsageError, match="checkers: several, and one that reads exports"):
        packed(Parts(**{**facts, "checkers": (checker, checker)}), tmp_path / "m.farm")
    assert not (tmp_path / "m.farm").exists()


def test_a_file_that_is_there_is_not_overwritten(parts: Parts, tmp_path: Path) -> None:
    file = tmp_path / "m.farm"
    file.write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        packed(parts, file)
    assert file.read_text() == "mine"


def test_a_disk_without_room_leaves_no_part_of_a_bundle(parts: Parts, tmp_path: Path) -> None:
    program = (
        "import resource, sys; from pathlib import Path; import tests.unit.test_bundles as t\n"
        "from farm.errors import FarmError\n"
        "folder, tree = map(Path, sys.argv[1:])\n"
        "lean = t.Toolchain(lean=tree / 'bin' / 'lean', says=t.SAYS)\n"
        "modules = (str(tree.with_name('modules')),)\n"
        "parts = t.Parts(toolchain=lean, packages='', options=(), lean_path=modules, checkers=())\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        "try: t.packed(parts, folder / 'm.farm')\n"
        "except FarmError as error: print(error, list(folder.iterdir()))"
    )
    folder = tmp_path / "folder"
    folder.mkdir()
    command = [sys.executable, "-c", program, folder, tmp_path / "toolchain"]
    said = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": CODE})
    assert "m.farm cannot be written: [Errno 27] File too large" in said.stdout, said
    assert said.stdout.endswith("the partial file was removed []\n")


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.999])
def test_a_truncated_bundle_is_said_to_be_none_and_leaves_nothing(
    parts: Parts, tmp_path: Path, share: float
) -> None:
    file = packed(parts, tmp_path / "m.farm")
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])
    refused(file, "is no sound bundle")


def test_every_changed_byte_is_noticed(parts: Parts, tmp_path: Path) -> None:
    file = packed(parts, tmp_path / "m.farm")
    content = file.read_bytes()
    for place in range(0, len(content), len(content) // 50):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        refused(file, "is no sound bundle|does not know its format|is for")


def test_a_file_that_is_no_bundle_at_all_is_said_to_be_none(tmp_path: Path) -> None:
    file = tmp_path / "m.farm"
    for content in (b"", b"hello", zstandard.compress(b"hello" * 10_000), zstandard.compress(b"")):
        file.write_bytes(content)
        refused(file, "is no sound bundle")


def refused(file: Path, complaint: str) -> None:
    folder = file.parent / "refused"
    folder.mkdir(exist_ok=True)
    with pytest.raises(UsageError, match=complaint):
        bundle.unpack(file, folder / "there", quietly)
    assert list(folder.iterdir()) == []


# Hostile bundles.


def made(file: Path, contents: list[tuple[tarfile.TarInfo, bytes]], **facts: object) -> Path:
    """Write a bundle of these members that tells the truth of itself, but for the facts that are given."""
    told = {
        "format": 1,
        "name": "m",
        "digest": "d" * 64,
        "toolchain": "Lean 4.35.0",
        "machine": platform.machine(),
        "table": {},
        "members": len(contents),
        "size": sum(len(content) for _, content in contents),
        **facts,
    }
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for info, content in [member("environment.json", json.dumps(told).encode()), *contents]:
            tar.addfile(info, io.BytesIO(content))
    file.write_bytes(zstandard.compress(plain.getvalue()))
    return file


def member(name: str, content: bytes = b"", **facts: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in facts.items():
        setattr(info, key, value)
    return info, content


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=kind, linkname=target)


def with_holes(mebibytes: int, **headers: str) -> tuple[tarfile.TarInfo, bytes]:
    """Return a file of nothing but holes, in a form of GNU tar: none of its bytes is in the bundle."""
    size = str(mebibytes << 20)
    given = {f"GNU.sparse.{key}": value.replace("SIZE", size) for key, value in headers.items()}
    return member("toolchain/holes", b"1\n0\n0\n".ljust(512, b"\0"), pax_headers=given)


HOLES = {
    "pax 1.0": {"major": "1", "minor": "0", "realsize": "SIZE", "name": "toolchain/holes"},
    "pax 0.1": {"size": "SIZE", "numblocks": "1", "map": "0,0", "name": "toolchain/holes"},
}


@pytest.mark.parametrize("headers", HOLES.values(), ids=HOLES)
def test_a_file_with_holes_is_refused_before_it_is_written(tmp_path: Path, headers: dict[str, str]) -> None:
    file = made(tmp_path / "m.farm", [with_holes(64, **headers)], size=64 << 20)
    assert file.stat().st_size < 500
    refused(file, "is neither a plain file, a folder nor a symbolic link")


def test_a_file_with_holes_in_the_form_of_old_tars_is_refused(tmp_path: Path) -> None:
    file = made(tmp_path / "m.farm", [member("toolchain/holes", type=tarfile.GNUTYPE_SPARSE)], size=64 << 20)
    plain = bytearray(zstandard.decompress(file.read_bytes(), 1 << 20))
    start = plain.index(b"toolchain/holes")
    plain[start + 386 : start + 410] = b"%011o\0%011o\0" % (64 << 20, 0)  # one block, of nothing, at the end
    plain[start + 483 : start + 495] = b"%011o\0" % (64 << 20)
    plain[start + 257 : start + 265] = tarfile.GNU_MAGIC
    plain[start + 148 : start + 156] = b" " * 8
    plain[start + 148 : start + 155] = b"%06o\0" % sum(plain[start : start + 512])
    file.write_bytes(zstandard.compress(bytes(plain)))
    refused(file, "is neither a plain file, a folder nor a symbolic link")


@pytest.mark.parametrize(
    "members",
    [
        [member("toolchain/x", type=tarfile.CONTTYPE)],
        [member("/etc/farm-was-here", b"x")],
        [member("toolchain/../../farm-was-here", b"x")],
        [member("elsewhere/x", b"x")],
        [member("environment.json", b"{}")],
        [link("toolchain/out", "/etc")],
        [link("toolchain/out", "../../..")],
        [link("toolchain/a/b", ".."), link("toolchain/out", "a/b/../../../x")],
        [link("toolchain/out", ".."), member("toolchain/out/x", b"x")],
        [link("toolchain/out", "../../.."), link("toolchain/out/farm-was-here", "x")],
        [link("toolchain/out", "../../.."), link("toolchain/out/farm-was-here/x", "x")],
        [link("toolchain/round", "round")],
        [link("toolchain/hard", "/etc/passwd", tarfile.LNKTYPE)],
        [member("toolchain/device", type=tarfile.CHRTYPE)],
        [member("toolchain/pipe", type=tarfile.FIFOTYPE)],
        [member("toolchain/x", b"x"), member("toolchain/x", b"y")],
        [member("toolchain/x", b"x"), member("toolchain/x/y", b"y")],
        [member("toolchain/x/y", b"y"), member("toolchain/x", b"x")],
    ],
    ids=lambda members: " ".join(info.name for info, _ in members),
)
def test_a_member_that_could_reach_elsewhere_is_refused(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    refused(made(tmp_path / "m.farm", members), "is no sound bundle")
    assert not Path("/etc/farm-was-here").exists()
    assert [each.name for each in tmp_path.iterdir()].count("farm-was-here") == 0


@pytest.mark.parametrize(
    ("facts", "complaint"),
    [
        ({"format": 2}, "does not know its format"),
        ({"members": 1.0}, "other fields"),
        ({"more": 1}, "other fields"),
        ({"table": {"visible": ["/etc"]}}, "a key 'visible' that no bundle carries"),
        ({"table": {"header": "\ud800"}}, "is no sound bundle"),
        ({"machine": "riscv128"}, "is for riscv128"),
        ({"size": 0}, "it contains more than it says"),
        ({"size": -1}, "it says that it has"),
        ({"members": 0}, "it contains more than it says"),
        ({"members": 5}, "1 of 5 entries"),
        ({"members": 10**8}, "it says that it has 100000000 entries"),
    ],
)
def test_what_a_bundle_tells_of_itself_must_be_so(
    tmp_path: Path, facts: dict[str, object], complaint: str
) -> None:
    refused(made(tmp_path / "m.farm", [member("toolchain/x", b"x")], **facts), complaint)


def test_a_bundle_that_the_disk_has_no_room_for_is_not_unpacked(tmp_path: Path) -> None:
    file = made(tmp_path / "m.farm", [member("toolchain/x", b"x")], size=1 << 60)
    with pytest.raises(FarmError, match="MiB free; make room"):
        bundle.unpack(file, tmp_path / "there", quietly)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m.farm"]


def test_a_small_file_that_unpacks_to_much_more_than_it_says_is_stopped(tmp_path: Path) -> None:
    file = made(tmp_path / "m.farm", [member("toolchain/x", bytes(1 << 27))], size=1)
    assert file.stat().st_size < 100_000
    refused(file, "it contains more than it says")
