"""Places in a Lean file: those in its text, as Lean reads it, and those in the file itself."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from farm.datasets.theorems import SourceFile

PATH = PurePosixPath("A/B.lean")


@pytest.mark.parametrize(
    "written",
    ["", "a\nb\n", "a\r\nb\r\n", "ℝ\r\n\r\nb\nc\r\n", "\r\n", "\r\r\nx\r\r\n", "a\rb\r\nc\r", "\n\r\n\n\r"],
)
def test_each_place_in_the_text_is_found_in_the_file(written: str) -> None:
    source = SourceFile.of(PATH, written)
    file = written.encode()
    for at in range(len(source.bytes) + 1):
        assert file[: source.in_file(at)].replace(b"\r\n", b"\n") == source.bytes[:at]
    assert source.in_file(len(source.bytes)) == len(file)
