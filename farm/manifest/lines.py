"""Manifest step, reading and writing lines: plain, gzip or zstd by the file's suffix, in bounded memory."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, cast

import zstandard

from farm.errors import ManifestError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

LINE_MIB = 16
"""The longest line a manifest may have, in MiB."""

_BUFFER = 1 << 20

# One block of a zstd frame takes 4 bytes and yields up to 128 KiB (RFC 8878, section 3.1.1.2), and the
# decoder has no bound on the output of one call: pieces this small keep a hostile file at 16 MiB a call.
_ZSTD_PIECE = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Fingerprint:
    """Identifies one version of a file: the hash of its bytes as stored on disk, `size` in bytes."""

    sha256: str
    size: int


def stamp(status: os.stat_result) -> tuple[int, ...]:
    """Return the metadata of one version of a file, which no other version shares."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class HashedFile(io.RawIOBase):
    """A file that takes the fingerprint of every byte read from it or written to it in turn."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._sha256 = hashlib.sha256()
        self._size = 0
        self._abandoned = False

    def readable(self) -> bool:
        """Return whether the file is readable, for `io`."""
        return self._file.readable()

    def writable(self) -> bool:
        """Return whether the file is writable, for `io`."""
        return self._file.writable()

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read the next bytes into the buffer and return how many; raises OSError."""
        count = cast("int", self._file.readinto(buffer))
        self._note(memoryview(buffer)[:count])
        return count

    def write(self, data: ReadableBuffer) -> int:
        """Write all of the bytes and return how many they are; raises OSError."""
        whole = memoryview(data)
        rest = whole
        while rest and not self._abandoned:
            count = cast("int", self._file.write(rest))
            self._note(rest[:count])
            rest = rest[count:]
        return whole.nbytes

    def abandon(self) -> None:
        """Discard later writes, so that the buffers above can be closed after a failure."""
        self._abandoned = True

    def _note(self, data: memoryview) -> None:
        self._sha256.update(data)
        self._size += len(data)

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the bytes so far."""
        return Fingerprint(sha256=self._sha256.hexdigest(), size=self._size)


class _ZstdFrames(io.RawIOBase):
    """The text of a zstd file; unlike zstandard's reader it notices a file that ends too early."""

    def __init__(self, compressed: io.BufferedReader) -> None:
        self._compressed = compressed
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._rest = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._ready:
            piece = self._rest or self._compressed.read(_ZSTD_PIECE)
            if not piece:
                if self._frame is not None:
                    raise EOFError("the last frame is cut short")
                return 0
            self._decompress(piece)
        into = memoryview(buffer)
        count = min(len(into), len(self._ready))
        into[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _decompress(self, piece: bytes) -> None:
        frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
        self._ready = memoryview(frame.decompress(piece))
        self._rest = frame.unused_data
        self._frame = None if frame.eof else frame


class LineFault(NamedTuple):
    """A fault of a line's bytes, and its remedy."""

    problem: str
    remedy: str


_TOO_LONG = LineFault(f"the line is longer than {LINE_MIB} MiB", "remove this line or shorten its fields")


class Lines:
    """The lines of one open manifest and, once they have been read, the fingerprint of the whole file.

    Iterating gives `(number, line)`: the number counts from 1, the line is bytes with its line end as it was.
    Raises ManifestError when the file cannot be read, is corrupt, or has a line above `LINE_MIB`; such a
    line is never in memory as a whole.
    """

    def __init__(self, path: Path, file: io.FileIO) -> None:
        self.path = path
        self.stamp = stamp(os.fstat(file.fileno()))
        self._stored = HashedFile(file)
        self._text = _decompressed(path, self._stored)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        limit = LINE_MIB << 20
        number = 0
        with reading(self.path):
            while line := self._text.readline(limit + 1):
                number += 1
                if len(line) > limit:
                    wrong = encoding_of(line) or _TOO_LONG
                    raise ManifestError(
                        printable(self.path, None), wrong.problem, remedy=wrong.remedy, line=number
                    )
                yield number, line

    def pieces(self, *, most_lines: int, most_bytes: int) -> Iterator[tuple[int, bytes]]:
        """Yield the same lines, several at a time: the number of the first one, and their bytes.

        A piece holds at most `most_lines` and `most_bytes`, or one longer line. The lines before an error are
        yielded before it is raised.
        """
        piece, first, size = list[bytes](), 1, 0
        failure = None
        try:
            for number, line in self:
                if piece and (len(piece) == most_lines or size + len(line) > most_bytes):
                    yield first, b"".join(piece)
                    piece, first, size = [], number, 0
                piece.append(line)
                size += len(line)
        except ManifestError as error:
            failure = error
        if piece:
            yield first, b"".join(piece)
        if failure is not None:
            raise failure

    def is_blank(self) -> bool:
        """Say whether no line has content; reads up to the first that has. Raises ManifestError."""
        return not any(unmarked(number, text).strip() for number, text in self)

    def fingerprint(self) -> Fingerprint:
        """Return the fingerprint of the whole file, after reading its rest. Raises ManifestError."""
        with reading(self.path):
            scratch = bytearray(_BUFFER)
            while self._stored.readinto(scratch):
                pass
        return self._stored.fingerprint


@contextmanager
def opened(path: Path) -> Iterator[Lines]:
    """Open a manifest for reading its lines, and close it at the end.

    Raises ManifestError when there is no such file, it is no regular file, or it may not be read.
    """
    with reading(path):
        if path.is_dir():
            raise unusable(
                path, "is a folder", f"name the files in it, such as '{printable(path, None)}/*.jsonl'"
            )
        if path.exists() and not path.is_file():
            raise unusable(path, "is not a regular file", "write its content to a file and give that file")
        file = io.FileIO(path)
    with file:
        yield Lines(path, file)


def compressing(path: Path, stored: HashedFile) -> IO[bytes]:
    """Return a file to write text to, which reaches `stored` as the suffix of `path` says once it is closed.

    The same text gives the same bytes: neither a name nor a time is written.
    """
    if _suffix(path) == ".gz":
        packed = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=stored, mtime=0)
        return io.BufferedWriter(cast("io.RawIOBase", packed), _BUFFER)
    if _suffix(path) == ".zst":
        compressor = zstandard.ZstdCompressor(write_checksum=True)
        frame = compressor.stream_writer(cast("IO[bytes]", stored))
        return io.BufferedWriter(cast("io.RawIOBase", frame), _BUFFER)
    return io.BufferedWriter(stored, _BUFFER)


def unmarked(number: int, line: bytes) -> bytes:
    """Return a line without the byte order mark of UTF-8, which a file may begin with."""
    return line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def encoding_of(line: bytes) -> LineFault | None:
    """Return the encoding fault of a line that cannot be decoded, None if its bytes show none.

    JSON, and text of Lean, begins with an ASCII character and has no NUL: the places of these are RFC 4627's
    sign of UTF-16 and UTF-32 (section 3). No string of JSON has a bare carriage return, so one between two
    objects ends a line.
    """
    for mark, name in _MARKS.items():
        if line.startswith(mark):
            return LineFault(f"begins with a byte order mark ({name})", "save the file as UTF-8 without one")
    nulls = tuple(byte == 0 for byte in line[:4])
    unmarked_name = next((name for sign, name in _NULLS.items() if nulls[: len(sign)] == sign), None)
    if unmarked_name is not None:
        remedy = f"save the file as UTF-8: iconv -f {unmarked_name} -t UTF-8 FILE > NEW"
        return LineFault(f"is {unmarked_name} without a byte order mark", remedy)
    if _BARE_RETURN.search(line) is not None:
        return LineFault(
            "ends its lines with a carriage return (CR) alone",
            "end each line with a line feed: tr '\\r' '\\n' < FILE > NEW",
        )
    return None


_MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    codecs.BOM_UTF8: "UTF-8",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_BARE_RETURN = re.compile(rb"\}[ \t]*\r[ \t\r]*\{")
#: Which bytes of a beginning are NUL, the longest first.
_NULLS = {
    (True, True, True, False): "UTF-32BE",
    (False, True, True, True): "UTF-32LE",
    (True, False): "UTF-16BE",
    (False, True): "UTF-16LE",
}


def unusable(path: Path, problem: str, remedy: str) -> ManifestError:
    """Return the error that says why a manifest as a whole cannot be used."""
    return ManifestError(printable(path, None), problem, remedy=remedy)


def printable(text: object, longest: int | None = 60) -> str:
    """Return text for a message: control characters of a terminal are escaped, a long text is truncated."""
    cut = str(text)
    if longest is not None and len(cut) > longest:
        cut = cut[:longest] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)


def _suffix(path: Path) -> str:
    return path.suffix.lower()


def _decompressed(path: Path, stored: HashedFile) -> io.BufferedReader:
    buffered: io.BufferedReader = io.BufferedReader(stored, _BUFFER)
    if _suffix(path) == ".gz":
        return io.BufferedReader(cast("io.RawIOBase", gzip.GzipFile(fileobj=buffered)), _BUFFER)
    if _suffix(path) == ".zst":
        return io.BufferedReader(_ZstdFrames(buffered), _BUFFER)
    return buffered


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Translate the errors of opening and reading a file into a ManifestError."""
    try:
        yield
    except FileNotFoundError as error:
        raise unusable(path, "no such file", "check the spelling and the folder") from error
    except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
        raise unusable(
            path,
            f"is not a complete {_suffix(path)} file: {printable(error, 200)}",
            "compress it again, or give it the right suffix",
        ) from error
    except OSError as error:
        raise unusable(path, f"cannot be read: {error.strerror}", "give yourself read permission") from error
