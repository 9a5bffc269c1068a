"""Readable paths: the words of a command that descriptors of closed paths replace."""

from __future__ import annotations

from pathlib import Path

import pytest
from farm_workers.box.readable_paths import ReadablePaths, readable_paths

PATHS = ReadablePaths(descriptors={"/root/a/b": 7, "/root/a": 8})


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("/root/a", "/proc/self/fd/8"),
        ("/root/a/file", "/proc/self/fd/8/file"),
        ("/root/a/b/file", "/proc/self/fd/7/file"),
        ("/root/a/b:/usr:/root/a", "/proc/self/fd/7:/usr:/proc/self/fd/8"),
        ("--path=/root/a/b", "--path=/proc/self/fd/7"),
        ("cat '/root/a'", "cat '/proc/self/fd/8'"),
        ("/root/abc", "/root/abc"),
        ("/root/a-b", "/root/a-b"),
        ("/root/a.so", "/root/a.so"),
    ],
)
def test_a_path_becomes_its_way_wherever_it_stands_and_a_longer_name_does_not(word: str, other: str) -> None:
    assert PATHS.word(word) == other


def test_the_way_leads_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a")
    with readable_paths([tmp_path]) as readable:
        assert Path(readable.word(str(tmp_path / "file"))).read_text() == "a"
