"""The body of a request that is packed with gzip: unpacks it as it arrives, within a limit."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable

_HEADER = b"content-encoding"
#: Window and header of gzip: https://docs.python.org/3/library/zlib.html#zlib.decompressobj
_GZIP = 16 + zlib.MAX_WBITS
#: Other requests are answered after so many unpacked bytes: about a millisecond.
_STEP_BYTES = 1 << 20


class UnfitPacking(ValueError):
    """A body is not packed as its headers say."""


class UnknownPacking(ValueError):
    """A body is packed in a way that the service does not know."""


def unpacking(headers: Iterable[tuple[bytes, bytes]]) -> Unpacking | None:
    """Return what unpacks a request's body, None for a body as it is; raises `UnknownPacking`."""
    given = ",".join(value.decode("latin-1") for name, value in headers if name == _HEADER)
    codings = [each for part in given.split(",") if (each := part.strip().lower()) not in ("", "identity")]
    if not codings:
        return None
    if codings not in (["gzip"], ["x-gzip"]):
        raise UnknownPacking(f"Content-Encoding {given[:80]!r} is unknown; send gzip or an unpacked body")
    return Unpacking()


class Unpacking:
    """Unpacks the pieces of one body."""

    def __init__(self) -> None:
        self._unpacker = zlib.decompressobj(_GZIP)

    async def piece(self, packed: bytes, most: int, *, is_last: bool) -> bytes:
        """Return an unpacked piece, of which more than `most` bytes are cut off after the first one.

        Raises `UnfitPacking`.
        """
        found = bytearray()
        try:
            while packed and not self._unpacker.eof and len(found) <= most:
                found += self._unpacker.decompress(packed, min(_STEP_BYTES, most + 1 - len(found)))
                packed = self._unpacker.unconsumed_tail
                await asyncio.sleep(0)
        except zlib.error as error:
            raise UnfitPacking(f"the body is no gzip, as Content-Encoding says: {error}") from error
        if len(found) > most:
            return bytes(found)
        if self._unpacker.eof and (self._unpacker.unused_data or packed):
            raise UnfitPacking("the body goes on behind the end of its gzip member; send one member")
        if is_last and not self._unpacker.eof:
            raise UnfitPacking("the body ends before the end of its gzip member; send it again")
        return bytes(found)
