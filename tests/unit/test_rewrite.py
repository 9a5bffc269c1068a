"""Manifest step, writing back: the file is the old one or the new one, whole, and everything else is kept."""

from __future__ import annotations

import gzip
import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zstandard

from farm.errors import ManifestChanged, ManifestError
from farm.manifest.entries import fingerprint
from farm.manifest.rewrite import by_line, rewrite
from farm.manifest.splice import with_fields

NOBODY = 65534
ELSEWHERE = "export to another file: `farm export RUN -o OTHER.jsonl`"


def keep(number: int, text: str) -> str:
    return text


def mark(number: int, text: str) -> str:
    return with_fields(text, {"line": number})


def grow(number: int, text: str) -> str:
    return with_fields(text, {"x": "x" * 100_000})


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b"".join(b'{"n": %d}\n' % n for n in range(100)))
    return path


# --- what is written


def test_blank_lines_line_ends_and_unchanged_lines_keep_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    content = b'\n{"a":1e5}\r\n \t\n{"b" : "\\u0041"}\r\r\n\r\n {"c": 1.0} '
    path.write_bytes(content)
    rewrite(path, path, by_line(keep))
    assert path.read_bytes() == content


def test_changed_lines_keep_their_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'\n{"a": 1}\r\n\n{"b": "\xe2\x88\x80"}')
    rewrite(path, path, by_line(mark))
    assert path.read_bytes() == b'\n{"a": 1, "line": 2}\r\n\n{"b": "\xe2\x88\x80", "line": 4}'


def test_the_fingerprint_returned_is_the_new_files(manifest: Path) -> None:
    assert rewrite(
        manifest, manifest, by_line(mark), expected=lambda: (fingerprint(manifest),)
    ) == fingerprint(manifest)


def test_another_file_leaves_the_source_alone(manifest: Path) -> None:
    before = manifest.read_bytes()
    target = manifest.with_name("other.jsonl")
    rewrite(manifest, target, by_line(mark), expected=lambda: (fingerprint(manifest),))
    assert manifest.read_bytes() == before
    assert target.read_bytes().splitlines()[-1] == b'{"n": 99, "line": 100}'


def test_nothing_is_left_beside_the_file(manifest: Path) -> None:
    rewrite(manifest, manifest, by_line(mark))
    assert names_in(manifest.parent) == ["m.jsonl"]


PACKED = {
    ".jsonl": (bytes, bytes),
    ".jsonl.gz": (gzip.compress, gzip.decompress),
    ".jsonl.zst": (
        zstandard.compress,
        lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
    ),
}


@pytest.mark.parametrize("source_suffix", PACKED)
@pytest.mark.parametrize("target_suffix", PACKED)
def test_each_file_is_compressed_as_its_suffix_says(
    tmp_path: Path, source_suffix: str, target_suffix: str
) -> None:
    source, target = tmp_path / f"m{source_suffix}", tmp_path / f"n{target_suffix}"
    source.write_bytes(PACKED[source_suffix][0](b'{"a": 1}\n' * 1000))
    written = rewrite(source, target, by_line(keep))
    assert PACKED[target_suffix][1](target.read_bytes()) == b'{"a": 1}\n' * 1000
    assert written == fingerprint(target)


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst"])
def test_compressing_the_same_text_gives_the_same_bytes(manifest: Path, suffix: str) -> None:
    first, second = manifest.with_name(f"a{suffix}"), manifest.with_name(f"b{suffix}")
    assert rewrite(manifest, first, by_line(keep)) == rewrite(first, second, by_line(keep))


# --- what is kept of the file that is replaced


def test_a_symbolic_link_stays_and_its_file_is_replaced(manifest: Path) -> None:
    (manifest.parent / "folder").mkdir()
    link = manifest.parent / "folder" / "link.jsonl"
    link.symlink_to("../m.jsonl")
    rewrite(link, link, by_line(mark))
    assert link.is_symlink()
    assert b'"line": 1' in manifest.read_bytes()
    assert names_in(link.parent) == ["link.jsonl"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444, 0o400, 0o755])
def test_the_mode_is_kept(manifest: Path, mode: int) -> None:
    manifest.chmod(mode)
    rewrite(manifest, manifest, by_line(mark))
    assert stat.S_IMODE(manifest.stat().st_mode) == mode


def test_the_owner_is_kept(manifest: Path) -> None:
    if os.geteuid() == 0:
        os.chown(manifest, NOBODY, NOBODY)
    before = manifest.stat()
    rewrite(manifest, manifest, by_line(mark))
    after = manifest.stat()
    assert after.st_ino != before.st_ino
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


def test_extended_attributes_are_kept(manifest: Path) -> None:
    try:
        os.setxattr(manifest, "user.note", b"keep me")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    rewrite(manifest, manifest, by_line(mark))
    assert os.getxattr(manifest, "user.note") == b"keep me"


def test_the_file_being_written_is_its_owners_alone(manifest: Path) -> None:
    manifest.chmod(0o644)
    modes = set()

    def look(number: int, text: str) -> str:
        modes.update(stat.S_IMODE(part.stat().st_mode) for part in manifest.parent.glob(".farm-*.part"))
        return text

    rewrite(manifest, manifest, by_line(look))
    assert modes == {0o600}


@pytest.mark.parametrize(("source", "umask", "target"), [(0o600, 0o022, 0o600), (0o664, 0o022, 0o644)])
def test_a_new_file_is_open_to_no_more_people_than_the_source(
    manifest: Path, source: int, umask: int, target: int
) -> None:
    manifest.chmod(source)
    other = manifest.with_name("other.jsonl")
    before = os.umask(umask)
    rewrite(manifest, other, by_line(mark))
    os.umask(before)
    assert stat.S_IMODE(other.stat().st_mode) == target


@pytest.mark.parametrize("content", [b'{"a": 1}\n{"a": 2}', b'\n{"a": 2}\n', b""])
def test_a_mark_of_utf_8_stays_where_it_was(manifest: Path, content: bytes) -> None:
    manifest.write_bytes(content)
    rewrite(manifest, manifest, by_line(mark))
    wanted = b"\xef\xbb\xbf" + manifest.read_bytes()
    manifest.write_bytes(b"\xef\xbb\xbf" + content)
    rewrite(manifest, manifest, by_line(mark))
    assert manifest.read_bytes() == wanted


# --- a source that is not the one expected


def test_a_changed_file_is_not_written_over(manifest: Path) -> None:
    expected = fingerprint(manifest)
    manifest.write_bytes(manifest.read_bytes().replace(b"7", b"8"))
    before = manifest.read_bytes()
    with pytest.raises(ManifestChanged) as caught:
        rewrite(manifest, manifest, by_line(mark), expected=lambda: (expected,))
    assert str(caught.value) == f"{manifest}: has changed since it was submitted; to keep it, {ELSEWHERE}"
    assert manifest.read_bytes() == before
    assert names_in(manifest.parent) == ["m.jsonl"]


@pytest.mark.parametrize("content", [b"[]\n", b"\xff\n", b"{", b"x" * (17 << 20)])
def test_a_file_that_was_changed_into_a_wrong_one_is_told_as_changed(manifest: Path, content: bytes) -> None:
    expected = fingerprint(manifest)
    manifest.write_bytes(content)
    with pytest.raises(ManifestChanged):
        rewrite(manifest, manifest, by_line(mark), expected=lambda: (expected,))


WRONG = {
    "array": (b"[]", "not one JSON object: Expecting one of { } : , at column 1"),
    "encoding": (b"\xff", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
}


@pytest.mark.parametrize(("line", "problem"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_line_is_told_with_its_number(manifest: Path, line: bytes, problem: str) -> None:
    manifest.write_bytes(b"\n" + line)
    with pytest.raises(ManifestError) as caught:
        rewrite(manifest, manifest, by_line(mark))
    assert str(caught.value) == f"{manifest}:2: {problem}; fix or remove this line"


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"n": 100}\n')


def swap(path: Path) -> None:
    other = path.with_name("swapped")
    other.write_bytes(path.read_bytes())
    other.rename(path)


TOUCHES = {"appended to": append, "swapped": swap, "removed while": Path.unlink}


@pytest.mark.parametrize("touch", TOUCHES.values(), ids=TOUCHES.keys())
def test_a_file_that_changes_under_the_rewrite_is_not_written_over(
    manifest: Path, touch: Callable[[Path], None]
) -> None:
    target = manifest.with_name("other.jsonl")

    def edit(number: int, text: str) -> str:
        if number == 100:
            touch(manifest)
        return text

    with pytest.raises(ManifestChanged):
        rewrite(manifest, target, by_line(edit))
    assert not target.exists()


# --- targets that cannot be written


def refusal(source: Path, target: Path) -> str:
    with pytest.raises(ManifestError) as caught:
        rewrite(source, target, by_line(mark))
    return str(caught.value)


def test_a_folder_is_no_target(manifest: Path) -> None:
    assert refusal(manifest, manifest.parent).endswith(f"is not a regular file; {ELSEWHERE}")


def test_a_device_is_no_target(manifest: Path) -> None:
    assert refusal(manifest, Path("/dev/null")) == f"/dev/null: is not a regular file; {ELSEWHERE}"


def test_a_folder_that_is_not_there_is_told(manifest: Path) -> None:
    assert "cannot be written: No such file or directory" in refusal(manifest, manifest.parent / "no" / "m")


def test_a_source_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none", tmp_path / "m") == f"{tmp_path}/none: no such file; " + (
        "check the spelling and the folder"
    )


@contextmanager
def ordinary_user() -> Iterator[Path]:
    """Give a folder of an ordinary user, and be that user where the tests run as root."""
    with tempfile.TemporaryDirectory() as name:
        if os.geteuid() != 0:
            yield Path(name)
            return
        os.chown(name, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        try:
            yield Path(name)
        finally:
            os.seteuid(0)


def test_a_read_only_folder_is_told() -> None:
    with ordinary_user() as folder:
        path = folder / "m.jsonl"
        path.write_bytes(b'{"a": 1}\n')
        folder.chmod(0o500)
        message = refusal(path, path)
        content = path.read_bytes()
        folder.chmod(0o700)
    assert message == (
        f"{path}: cannot be written: Permission denied; "
        f"free disk space, give yourself write permission in its folder, or {ELSEWHERE}"
    )
    assert content == b'{"a": 1}\n'


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of somebody else's")
def test_a_file_of_another_user_is_left_to_them() -> None:
    with ordinary_user() as folder:
        path = folder / "m.jsonl"
        path.write_bytes(b'{"a": 1}\n')
        path.chmod(0o644)
        os.seteuid(0)
        os.chown(path, 0, 0)
        os.seteuid(NOBODY)
        assert "belongs to another user or group" in refusal(path, path)
        assert names_in(folder) == ["m.jsonl"]


def in_another_process(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-X", "dev", "-c", code, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True)


FILL = """
import resource, sys
from pathlib import Path
from farm.errors import ManifestError
from farm.manifest.rewrite import by_line, rewrite
import random

resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
random.seed(1)
path = Path(sys.argv[1])
try:
    rewrite(path, path, by_line(lambda number, text: text + random.randbytes(50_000).hex()))
except ManifestError as error:
    print(error)
"""


@pytest.mark.parametrize("suffix", PACKED)
def test_a_full_disk_leaves_the_old_file_whole_and_nothing_beside_it(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"m{suffix}"
    content = PACKED[suffix][0](b"{}\n" * 100)
    path.write_bytes(content)
    with in_another_process(FILL, path) as process:
        output, _ = process.communicate(timeout=60)
    assert output == (
        f"{path}: cannot be written: File too large; "
        f"free disk space, give yourself write permission in its folder, or {ELSEWHERE}\n"
    )
    assert path.read_bytes() == content
    assert names_in(tmp_path) == [path.name]


def test_an_error_of_the_edit_leaves_the_old_file_whole_and_nothing_beside_it(manifest: Path) -> None:
    before = manifest.read_bytes()

    def fail(number: int, text: str) -> str:
        if number == 50:
            raise KeyboardInterrupt
        return grow(number, text)

    with pytest.raises(KeyboardInterrupt):
        rewrite(manifest, manifest, by_line(fail))
    assert manifest.read_bytes() == before
    assert names_in(manifest.parent) == ["m.jsonl"]


# --- processes that die, and several at once

WAIT_AT_LINE_50 = """
import sys
from pathlib import Path
from farm.manifest.rewrite import by_line, rewrite

def edit(number, text):
    if number == 50:
        print("half way", flush=True)
        sys.stdin.read()
    return text + " " * 100_000

path = Path(sys.argv[1])
rewrite(path, path, by_line(edit))
"""


def test_a_process_killed_half_way_leaves_the_old_file_whole(manifest: Path) -> None:
    before = manifest.read_bytes()
    with in_another_process(WAIT_AT_LINE_50, manifest) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half way\n"
        process.kill()
    assert manifest.read_bytes() == before


def test_what_a_killed_process_left_is_cleared_away_by_the_next(manifest: Path) -> None:
    with in_another_process(WAIT_AT_LINE_50, manifest) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half way\n"
        process.kill()
    assert len(names_in(manifest.parent)) == 2
    rewrite(manifest, manifest, by_line(mark))
    assert names_in(manifest.parent) == ["m.jsonl"]


REWRITE_FOR_EVER = """
import sys
from pathlib import Path
from farm.manifest.rewrite import by_line, rewrite
from farm.manifest.splice import with_fields

path = Path(sys.argv[1])
turn = 0
while True:
    turn += 1
    rewrite(path, path, by_line(lambda number, text: with_fields(text, {"turn": turn})))
    print(turn, flush=True)
"""


def test_a_process_killed_at_any_moment_leaves_one_whole_version(manifest: Path) -> None:
    for turns in range(1, 9):
        with in_another_process(REWRITE_FOR_EVER, manifest) as process:
            assert process.stdout is not None
            for _ in range(turns):
                process.stdout.readline()
            process.kill()
        lines = [json.loads(line) for line in manifest.read_text().splitlines()]
        assert [line["n"] for line in lines] == list(range(100))
        assert len({line["turn"] for line in lines}) == 1


COUNT = """
import json, sys
from pathlib import Path
from farm.manifest.rewrite import by_line, rewrite
from farm.manifest.splice import with_fields

path = Path(sys.argv[1])

def edit(number, text):
    return with_fields(text, {"count": json.loads(text).get("count", 0) + 1})

sys.stdin.readline()
for _ in range(20):
    rewrite(path, path, by_line(edit))
"""


def test_processes_that_rewrite_one_file_at_once_take_turns(manifest: Path) -> None:
    processes = [in_another_process(COUNT, manifest) for _ in range(4)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=60)[0] for process in processes] == ["", "", "", ""]
    assert {json.loads(line)["count"] for line in manifest.read_text().splitlines()} == {80}
    assert names_in(manifest.parent) == ["m.jsonl"]


def test_of_two_that_expect_the_same_file_only_one_writes(manifest: Path) -> None:
    expected = fingerprint(manifest)
    written = rewrite(manifest, manifest, by_line(mark), expected=lambda: (expected,))
    with pytest.raises(ManifestChanged):
        rewrite(manifest, manifest, by_line(mark), expected=lambda: (expected,))
    assert fingerprint(manifest) == written


# --- size


def test_memory_stays_bounded(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl.zst"
    line = json.dumps({"x": "y" * 2000}).encode() + b"\n"
    with zstandard.open(path, "wb") as file:
        for _ in range(50):
            file.write(line * 1000)
    with in_another_process(MEASURE, path) as process:
        output, _ = process.communicate(timeout=60)
    assert int(output) < 64 * 1024


MEASURE = """
import re, sys
from pathlib import Path
from farm.manifest.rewrite import by_line, rewrite

path = Path(sys.argv[1])
rewrite(path, path, by_line(lambda number, text: text[:-1] + ', "y": 1}'))
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
