"""Bodies packed with gzip: what comes out, in whatever pieces they come, and what is refused."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc

import pytest

from farm.service.unpacking import UnfitPacking, UnknownPacking, Unpacking, unpacking

BODY = b'{"items": [{"program": "theorem t : True := True.intro"}]}' * 100
PACKED = gzip.compress(BODY)


def unpacked(content: bytes, *, pieces: int = 1, most: int = 1 << 20) -> bytes:
    """Return what comes out of a body that arrives in so many pieces."""

    async def read() -> bytes:
        packed, found = Unpacking(), b""
        size = -(-len(content) // pieces) or 1
        for start in range(0, max(1, len(content)), size):
            is_last = start + size >= len(content)
            found += await packed.piece(content[start : start + size], most - len(found), is_last=is_last)
        return found

    return asyncio.run(read())


@pytest.mark.parametrize("pieces", [1, 2, 7, len(PACKED)])
def test_a_body_comes_out_as_it_was(pieces: int) -> None:
    assert unpacked(PACKED, pieces=pieces) == BODY
    assert unpacked(gzip.compress(b""), pieces=pieces) == b""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (BODY, "is no gzip"),
        (b"", "ends before"),
        (PACKED[:-1], "ends before"),
        (PACKED[:-5] + b"xxxxx", "is no gzip"),
        (PACKED + b"x", "goes on"),
        (PACKED + PACKED, "goes on"),
    ],
)
@pytest.mark.parametrize("pieces", [1, 3])
def test_what_is_not_one_whole_member_is_refused(content: bytes, words: str, pieces: int) -> None:
    with pytest.raises(UnfitPacking, match=words):
        unpacked(content, pieces=pieces)


def test_no_more_is_unpacked_than_a_body_may_have() -> None:
    bomb = gzip.compress(bytes(64 << 20), compresslevel=1)
    tracemalloc.start()
    try:
        assert len(unpacked(bomb, most=1 << 20)) == (1 << 20) + 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20


@pytest.mark.parametrize("value", [None, b"", b"identity", b" Identity , "])
def test_a_body_as_it_is_is_not_unpacked(value: bytes | None) -> None:
    assert unpacking([(b"host", b"x"), *([] if value is None else [(b"content-encoding", value)])]) is None


@pytest.mark.parametrize("value", [b"gzip", b"x-gzip", b"GZIP", b"identity, gzip"])
def test_gzip_is_known_by_all_its_names(value: bytes) -> None:
    assert isinstance(unpacking([(b"content-encoding", value)]), Unpacking)


@pytest.mark.parametrize("values", [[b"zstd"], [b"br"], [b"gzip, gzip"], [b"gzip", b"gzip"], [b"\xff"]])
def test_another_packing_is_unknown(values: list[bytes]) -> None:
    with pytest.raises(UnknownPacking, match="send gzip or an unpacked body"):
        unpacking([(b"content-encoding", value) for value in values])
