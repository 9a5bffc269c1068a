"""Environment step, by command: packs an environment into one file, for machines without a network.

A bundle is a tar, compressed with zstd, of the toolchain and the folders with compiled modules. All paths in
it are relative, so it works wherever it is unpacked. Its first member, ``environment.json``, holds the
digest, the keys of the table, and the number and size of the other members. A bundle is read as untrusted:
names, links, sizes and counts are checked, nothing is written through a link, and the unpacked folder appears
whole or not at all.
"""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import IO, Any

import zstandard

from farm.errors import FarmError, UsageError
from farm_workers.environments.configured import Parts
from farm_workers.environments.lean_environment import own_folder
from farm_workers.environments.table import Keys, Value

_FORMAT = 1
_TOLD, _TOOLCHAIN, _MODULES, _MANIFEST = "environment.json", "toolchain", "modules", "lake-manifest.json"
#: Stands in a bundle for the folder of the toolchain.
_HERE = "@toolchain/"
#: The most bytes of ``environment.json``, and the overhead of names and tar blocks per file.
_MOST_TOLD, _AROUND_A_FILE = 1 << 20, 4096
_LEVEL, _WINDOW = 3, 1 << 27
#: The most members of a bundle; one with Mathlib has some 30 000.
_MOST_MEMBERS = 1_000_000
#: Keys of a table that mean the same everywhere.
_CARRIED = ("options", "header", "headers", "audit", "library_sorries")


@dataclass(frozen=True, kw_only=True, slots=True)
class BundleFacts:
    """The content of ``environment.json``: `members` and `size` count the other members, and their bytes."""

    format: int
    name: str
    digest: str
    toolchain: str
    machine: str
    members: int
    size: int
    table: Keys


@dataclass(frozen=True, kw_only=True, slots=True)
class _Member:
    name: str
    path: Path
    link: str | None = None
    is_folder: bool = False

    @property
    def info(self) -> tarfile.TarInfo:
        """Its tar entry, without owner and time: equal trees give equal bundles."""
        info = tarfile.TarInfo(self.name)
        if self.link is not None:
            info.type, info.linkname = tarfile.SYMTYPE, self.link
        elif self.is_folder:
            info.type, info.mode = tarfile.DIRTYPE, 0o755
        else:
            state = self.path.stat()
            info.size, info.mode = state.st_size, 0o755 if state.st_mode & 0o111 else 0o644
        return info


def pack(
    name: str,
    table: Keys,
    parts: Parts,
    digest: str,
    file: Path,
    told: Callable[[str], None],
) -> BundleFacts:
    """Write an environment into a new file, which appears whole; calls `told` with each file's name.

    Raises UsageError if the environment needs a file that no bundle can carry.
    """
    members = list(_members(table, parts))
    facts = BundleFacts(
        format=_FORMAT,
        name=name,
        digest=digest,
        toolchain=parts.toolchain.name,
        machine=platform.machine(),
        members=len(members),
        size=sum(each.info.size for each in members),
        table=_carried(table, parts),
    )
    if file.exists():
        raise UsageError(f"{file} is there already; name another file, or remove it first")
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as written:
            _write(written, facts, members, told)
            written.flush()
            os.fsync(written.fileno())
        part.rename(file)
    except OSError as error:
        raise FarmError(f"{file} cannot be written: {error}; the partial file was removed") from error
    finally:
        with suppress(OSError):
            part.unlink()
    return facts


def _write(
    written: IO[bytes], facts: BundleFacts, members: list[_Member], told: Callable[[str], None]
) -> None:
    compressor = zstandard.ZstdCompressor(level=_LEVEL, threads=-1, write_checksum=True)
    text = json.dumps(asdict(facts), indent=1).encode()
    with (
        compressor.stream_writer(written, closefd=False) as packed,
        tarfile.open(fileobj=packed, mode="w|") as tar,
    ):
        first = tarfile.TarInfo(_TOLD)
        first.size = len(text)
        tar.addfile(first, io.BytesIO(text))
        for each in members:
            told(each.name)
            info = each.info
            if info.isreg():
                with each.path.open("rb") as content:
                    tar.addfile(info, content)
            else:
                tar.addfile(info)


def _members(table: Keys, parts: Parts) -> Iterator[_Member]:
    """Yield the members of a bundle; raises UsageError if a file lies outside of toolchain and modules."""
    toolchain = own_folder(parts.toolchain.lean)
    if not toolchain.is_dir():
        raise UsageError(
            f"lean: {toolchain} lies in no toolchain (bin/lean, lib/lean), so it cannot be packed"
        )
    if table.get("visible"):
        raise UsageError(
            "visible: paths outside of toolchain and modules cannot be packed; copy them by hand"
        )
    if any(Path(word.rpartition("=")[2]).is_absolute() for word in parts.options):
        raise UsageError(
            "options: an option names a path, which is another one elsewhere; it cannot be packed"
        )
    yield from _tree(toolchain, _TOOLCHAIN)
    for place, folder in enumerate(parts.lean_path):
        yield from _tree(Path(folder), f"{_MODULES}/{place}")
    if manifest := _manifest(table):
        yield _Member(name=_MANIFEST, path=manifest)


def _manifest(table: Keys) -> Path | None:
    packages, workspace = table.get("packages"), table.get("workspace")
    named = (
        Path(packages) if isinstance(packages, str) and packages else Path(str(workspace or "/"), _MANIFEST)
    )
    return named if named.is_file() else None


def _carried(table: Keys, parts: Parts) -> dict[str, Value]:
    keys = {key: table[key] for key in _CARRIED if key in table}
    if len(parts.checkers) > 1 or any(each.reads_export for each in parts.checkers):
        raise UsageError(
            "checkers: several, and one that reads exports, cannot be packed; name one that reads modules, "
            "or copy the environment by hand"
        )
    for checker in parts.checkers:
        toolchain = f"{own_folder(parts.toolchain.lean)}/"
        words = [word.replace(toolchain, _HERE, 1) for word in checker.command]
        if any(word.startswith("/") for word in words):
            raise UsageError(
                "checker: it lies outside of the toolchain, so it cannot be packed; copy it by hand"
            )
        keys["checker"] = words
    return keys


def _tree(folder: Path, name: str) -> Iterator[_Member]:
    """Yield a folder and its content; a link that leaves the folder is replaced by its target."""
    root = folder.resolve()
    todo = [(root, name, frozenset[str]())]
    while todo:
        here, called, above = todo.pop()
        above |= {os.path.realpath(here)}
        yield _Member(name=called, path=here, is_folder=True)
        for entry in sorted(os.scandir(here), key=lambda each: each.name):
            path, named = Path(entry.path), f"{called}/{entry.name}"
            if entry.is_symlink() and _stays(path, root):
                yield _Member(name=named, path=path, link=str(path.readlink()))
            elif entry.is_dir() and os.path.realpath(path) not in above:  # a link may lead back
                todo.append((path, named, above))
            elif entry.is_file():
                yield _Member(name=named, path=path)


def _stays(link: Path, root: Path) -> bool:
    """Whether a link still leads to the same file after other links were replaced by their targets."""
    target, leads = link.readlink(), link.resolve()
    named = Path(os.path.normpath(link.parent / target))
    is_within = named.is_relative_to(root) and leads.is_relative_to(root)
    return is_within and not target.is_absolute() and named.resolve() == leads


class Damaged(UsageError):
    """A file is no bundle, is incomplete, or was not written by `pack`."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(
            f"{file} is no sound bundle: {why}. Copy it again, or pack it again; nothing was unpacked"
        )


class _Bounded(io.RawIOBase):
    """A stream that raises an error beyond its allowed length."""

    def __init__(self, source: Any, most: int) -> None:
        self._source, self.left = source, most

    def read(self, size: int = -1, /) -> bytes:
        piece: bytes = self._source.read(size)
        self.left -= len(piece)
        if self.left < 0:
            raise ValueError("it contains more than it says")
        return piece


def unpack(file: Path, folder: Path, told: Callable[[str], None]) -> BundleFacts:
    """Unpack a bundle into a new folder, which appears whole; return the bundle's description.

    Raises Damaged for an unsound bundle, and FarmError if the disk is full.
    """
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # of one that was killed
    try:
        part.mkdir(mode=0o755)
        facts = _unpacked(file, part, told)
        (part / _TOLD).write_text(json.dumps(asdict(facts)), encoding="utf-8")
        part.rename(folder)
    except OSError as error:
        raise FarmError(
            f"{file} cannot be unpacked into {folder.parent}: {error}; the partial copy was removed. Make "
            "room, or name another folder with --dir"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return facts


#: The errors that reading a malformed bundle can raise: the last three come from members at the wrong place.
_SIGNS_OF_DAMAGE = (
    *(zstandard.ZstdError, tarfile.TarError, ValueError, EOFError, RuntimeError),
    *(FileExistsError, NotADirectoryError, IsADirectoryError),
)


def _unpacked(file: Path, part: Path, told: Callable[[str], None]) -> BundleFacts:
    try:
        with file.open("rb") as packed:
            plain = zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(packed, closefd=False)
            bounded = _Bounded(plain, _MOST_TOLD + _AROUND_A_FILE)
            with tarfile.open(fileobj=bounded, mode="r|") as tar:
                facts = _first(tar)
                _require_possible(facts, part)
                bounded.left = facts.size + (facts.members + 16) * _AROUND_A_FILE
                _extract(tar, facts, part, told)
            while bounded.read(1 << 16):  # the checksum is at the very end
                pass
    except FileNotFoundError as error:
        raise UsageError(
            f"{file}: there is no such file; give a bundle that `farm environments pack` made"
        ) from error
    except _SIGNS_OF_DAMAGE as error:
        raise Damaged(file, str(error)) from error
    return facts


def _first(tar: tarfile.TarFile) -> BundleFacts:
    first = tar.next()
    if first is None or first.name != _TOLD or not _is_plain(first) or first.size > _MOST_TOLD:
        raise ValueError(f"it does not begin with {_TOLD}")
    content = tar.extractfile(first)
    return _told(content.read() if content else b"")


def _told(text: bytes) -> BundleFacts:
    """Return the description in ``environment.json``; raises ValueError."""
    facts = json.loads(text)
    json.dumps(facts, ensure_ascii=False).encode()  # raises for lone surrogates
    kinds = {field.name: {"int": int, "str": str}.get(str(field.type), dict) for field in fields(BundleFacts)}
    if not isinstance(facts, dict) or facts.get("format") != _FORMAT:
        raise ValueError("this version of the farm does not know its format")
    if facts.keys() != kinds.keys() or not all(type(facts[name]) is kind for name, kind in kinds.items()):
        raise ValueError(f"{_TOLD} has other fields than it must have")
    if unknown := sorted(facts["table"].keys() - {*_CARRIED, "checker"}):
        raise ValueError(f"{_TOLD} has a key {unknown[0]!r} that no bundle carries")
    return BundleFacts(**facts)


def _require_possible(facts: BundleFacts, folder: Path) -> None:
    if not (0 <= facts.members <= _MOST_MEMBERS and facts.size >= 0):
        raise ValueError(
            f"it says that it has {facts.members} entries of {facts.size} bytes; a bundle has at most "
            f"{_MOST_MEMBERS} entries"
        )
    if facts.machine != platform.machine():
        raise UsageError(f"the bundle is for {facts.machine}, and this machine is {platform.machine()}")
    free = shutil.disk_usage(folder).free
    if free < facts.size:
        raise FarmError(
            f"the bundle needs {facts.size >> 20} MiB, and {folder.parent} has {free >> 20} MiB free; make "
            "room, or name another folder with --dir"
        )


def _extract(tar: tarfile.TarFile, facts: BundleFacts, folder: Path, told: Callable[[str], None]) -> None:
    """Write all members into the folder, links last; raises ValueError if they were not described."""
    links: list[tuple[Path, str]] = []
    members = size = 0
    while (member := tar.next()) is not None:
        path = folder / _safe(member.name)
        told(member.name)
        members, size = members + 1, size + member.size
        if members > facts.members or not 0 <= member.size <= size <= facts.size:
            raise ValueError(f"it contains more than it says, from {member.name!r} on")
        if member.isdir():
            path.mkdir(mode=0o755, parents=True, exist_ok=True)
        elif _is_plain(member):
            _write_file(tar, member, path)
        elif member.issym():
            links.append((path, member.linkname))
        else:
            raise ValueError(f"{member.name!r} is neither a plain file, a folder nor a symbolic link")
    if (members, size) != (facts.members, facts.size):
        raise ValueError(f"{members} of {facts.members} entries are there, {size} of {facts.size} bytes")
    root = folder.resolve()
    for path, target in links:
        _write_link(path, target, root)
    for path, _ in links:  # its target can be a link that came later
        _require_within(path, root)


def _is_plain(member: tarfile.TarInfo) -> bool:
    """Return whether a member is a file whose bytes are all in the bundle: holes would take no room there."""
    return member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()


def _write_link(path: Path, target: str, root: Path) -> None:
    _require_within(path.parent, root)  # which can be a link by now
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    if target.startswith("/"):
        raise ValueError(f"the link {path.name!r} leads out of the bundle")
    path.symlink_to(target)


def _require_within(path: Path, root: Path) -> None:
    if not path.resolve().is_relative_to(root):
        raise ValueError(f"the link {path.name!r} leads out of the bundle")


def _safe(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if (
        path.is_absolute()
        or ".." in path.parts
        or path.parts[:1] not in {(_TOOLCHAIN,), (_MODULES,), (_MANIFEST,)}
    ):
        raise ValueError(f"it has a member {name!r}, which is in no folder of a bundle")
    return path


def _write_file(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise ValueError(f"it has two members {member.name!r}") from error
    with os.fdopen(descriptor, "wb") as written:
        os.fchmod(descriptor, 0o755 if member.mode & 0o111 else 0o644)  # whatever the umask is
        content = tar.extractfile(member)
        if content is not None:
            shutil.copyfileobj(content, written, 1 << 20)


def unpacked(folder: Path) -> tuple[dict[str, Value], str]:
    """Return the keys of a table for an unpacked bundle, and the digest that it must have."""
    facts = _told((folder / _TOLD).read_bytes())
    modules = folder / _MODULES
    count = len(list(modules.iterdir())) if modules.is_dir() else 0
    found: dict[str, Value] = {"lean": str(folder / _TOOLCHAIN / "bin" / "lean")}
    if count:
        found["lean_path"] = [str(modules / str(place)) for place in range(count)]
    if (folder / _MANIFEST).is_file():
        found["packages"] = str(folder / _MANIFEST)
    carried = dict(facts.table)
    if isinstance(words := carried.pop("checker", None), list):
        found["checker"] = [str(word).replace(_HERE, f"{folder / _TOOLCHAIN}/", 1) for word in words]
    return {**found, **carried}, facts.digest
