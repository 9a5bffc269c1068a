"""Manifest step: what becomes an entry, and what each mistake in a file is told."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import ManifestError
from farm.manifest.entries import expand, fingerprint, read
from farm.manifest.entry import Entry
from farm.manifest.lines import Fingerprint, opened

NOBODY = 65534

TASK = {"header": "import Mathlib\n", "formal_statement": "theorem a : 1 = 1 := by\n", "generation": "rfl"}
LINE = json.dumps(TASK).encode()


def with_field(name: str, value: str) -> bytes:
    """Return the task's line with one more field, its value as JSON text."""
    return LINE[:-1] + f', "{name}": {value}}}'.encode()


def without(name: str) -> bytes:
    return json.dumps({key: value for key, value in TASK.items() if key != name}).encode()


def message_of(path: Path) -> str:
    with pytest.raises(ManifestError) as caught:
        list(read(path))
    return str(caught.value)


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


# --- what becomes an entry


def test_a_line_becomes_an_entry(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    own = {"name": "a", "environment": "core", "timeout": 5, "group": "g", "predicted_proof": "", "score": 1}
    path.write_text(json.dumps(TASK | own) + "\n")
    assert list(read(path)) == [
        Entry(
            path=str(path),
            line=1,
            name="a",
            header=TASK["header"],
            formal_statement=TASK["formal_statement"],
            generation="rfl",
            predicted_proof="",
            environment="core",
            timeout=5.0,
            group="g",
        )
    ]


@pytest.mark.parametrize("field", ["name", "predicted_proof", "environment", "timeout", "group"])
def test_null_for_a_field_that_may_be_left_out_counts_as_left_out(tmp_path: Path, field: str) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(LINE + b"\n" + with_field(field, "null"))
    first, second = read(path)
    assert getattr(first, field) == getattr(second, field)


@pytest.mark.parametrize("line", ['{"predicted_proof": "x"}', '{"predicted_proof": "x", "header": null}'])
def test_a_line_with_a_whole_program_needs_no_parts(tmp_path: Path, line: str) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(line)
    (entry,) = read(path)
    assert (entry.predicted_proof, entry.header, entry.generation) == ("x", "", "")


def test_a_line_to_reassemble_needs_its_parts(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"predicted_proof": "x"}')
    with pytest.raises(ManifestError, match='field "formal_statement": missing'):
        list(read(path, reassemble=True))


WRITTEN = "theorem a : 1 = 1 := rfl \ud800"
WRITTEN_SHA256 = hashlib.sha256(WRITTEN.encode("utf-8", "surrogatepass")).hexdigest()
OWN = {"program_sha256": WRITTEN_SHA256}


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({"farm": OWN}, False),
        ({"farm": OWN | {"assembled": True}}, False),
        ({"farm": OWN | {"assembled": True}, "generation": ""}, False),
        ({"farm": OWN | {"assembled": False}}, True),
        ({"farm": OWN, "predicted_proof": "edited"}, True),
        ({"farm": OWN, "generation": ...}, True),
        ({"farm": OWN | {"assembled": True}, "generation": ..., "formal_statement": ...}, True),
        ({"farm": {"program_sha256": 7}}, True),
        ({"farm": {"program_sha256": [WRITTEN_SHA256]}}, True),
        ({"farm": ["program_sha256", WRITTEN_SHA256]}, True),
        ({"farm": WRITTEN_SHA256}, True),
        ({"farm": None}, True),
        ({}, True),
    ],
)
def test_a_program_counts_when_it_is_not_one_that_the_farm_wrote_there(
    tmp_path: Path, changes: dict[str, object], counts: bool
) -> None:
    path = tmp_path / "m.jsonl"
    fields = TASK | {"predicted_proof": WRITTEN} | changes
    path.write_text(json.dumps({key: value for key, value in fields.items() if value is not ...}))
    (entry,) = read(path)
    assert entry.predicted_proof == (fields["predicted_proof"] if counts else "")


@pytest.mark.parametrize("generation", [{}, {"generation": None}])
def test_a_program_that_the_farm_wrote_stands_for_no_answer(
    tmp_path: Path, generation: dict[str, object]
) -> None:
    path = tmp_path / "m.jsonl"
    farm = OWN | {"assembled": True}
    path.write_text(
        json.dumps(
            {"header": "", "formal_statement": "s", "predicted_proof": WRITTEN, "farm": farm} | generation
        )
    )
    with pytest.raises(ManifestError, match=r'"generation": (missing|null); .* take "farm" out of the line'):
        list(read(path))


def test_blank_lines_are_counted_and_skipped(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b"\n  \t\r\n" + LINE + b"\n\n\n" + LINE + b"\n \n")
    assert [entry.line for entry in read(path)] == [3, 6]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_any_line_end_will_do(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(LINE + end)
    assert [entry.generation for entry in read(path)] == ["rfl"]


@pytest.mark.parametrize("text", ["\x00", "\ud800", "\udfff", "\U0001f600", "\u2028", "\x85"])
def test_any_text_json_can_say_comes_through(tmp_path: Path, text: str) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps(TASK | {"generation": text}))
    assert [entry.generation for entry in read(path)] == [text]


def test_numbers_longer_than_python_reads_as_integers_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(with_field("score", "9" * 10_000))
    assert len(list(read(path))) == 1


def test_a_field_of_the_users_own_may_stand_twice(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(LINE[:-1] + b', "x": 1, "x": {"name": 1, "name": 2}}')
    assert len(list(read(path))) == 1


CONTEXT = {"context": "import A\n", **{name: TASK[name] for name in ("formal_statement", "generation")}}


@pytest.mark.parametrize("header", [{}, {"header": ""}, {"header": None}], ids=str)
def test_a_line_may_have_a_context_in_place_of_a_header(tmp_path: Path, header: dict[str, object]) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps(CONTEXT | header) + "\n")
    (entry,) = read(path)
    assert (entry.context, entry.header) == ("import A\n", "")


@pytest.mark.parametrize("context", [None, ""])
def test_a_context_that_is_null_or_empty_is_none(tmp_path: Path, context: str | None) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps(TASK | {"context": context}) + "\n")
    assert [(entry.context, entry.header) for entry in read(path)] == [("", TASK["header"])]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (CONTEXT | {"header": "import B\n"}, "give one"),
        (CONTEXT | {"context": "import A\n\n-- é\tb"}, "tab at line 3, column 4"),
        (CONTEXT | {"context": "import A\r\n"}, "carriage return at line 1, column 8"),
        (CONTEXT | {"context": 1}, "not a string but a number"),
        (CONTEXT | {"context": "\t", "predicted_proof": "theorem t : True := trivial"}, "tab"),
    ],
    ids=str,
)
def test_a_context_that_cannot_be_is_told_with_its_field(
    tmp_path: Path, line: dict[str, object], said: str
) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps(line) + "\n")
    told = message_of(path)
    assert said in told
    assert "context" in told
    assert f"{path}:1" in told


def test_a_line_without_a_header_has_an_empty_one(tmp_path: Path) -> None:
    line = without("header")
    path = tmp_path / "m.jsonl"
    path.write_bytes(line)
    assert [entry.header for entry in read(path)] == [""]


# --- what each mistake is told


def test_the_first_ten_wrong_lines_are_told_and_the_others_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes((LINE + b"\n{}\n\n") * 13 + LINE)
    *told, rest = message_of(path).split("\n")
    assert told == [f'{path}:{3 * n + 2}: field "formal_statement": missing; {PART}' for n in range(10)]
    assert rest == f"{path}: 3 more lines are wrong"


@pytest.mark.parametrize(("more", "is_cut"), [(20_000, False), (20_001, True)])
def test_lines_far_behind_the_first_wrong_one_are_not_looked_at(
    tmp_path: Path, more: int, is_cut: bool
) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(LINE + b"\n{}\n" + b"\n" * (more - 1) + b"{}\n")
    first, second = message_of(path).split("\n")
    assert first.startswith(f"{path}:2: ")
    found, cut = f"{path}:{more + 2}: ", f"{path}: the lines behind line 20002 were not looked at"
    assert second.startswith(cut if is_cut else found)


WHOLE = "write one complete JSON object per line"
OBJECT = 'write each line as one object, {"header": ..., "formal_statement": ..., "generation": ...}'
PART = "give it as a string, or the whole program as predicted_proof"
SECONDS = "give seconds, above 0 and at most 86400, or leave it out"

MISTAKES = {
    "malformed": (b'{"a" 1}', f"malformed JSON at column 6: Expecting ':' delimiter; {WHOLE}"),
    "cut off": (LINE[:20], f"malformed JSON at column 12: Unterminated string starting at; {WHOLE}"),
    "cut off at a value": (b'{"a":', f"malformed JSON at column 6: Expecting value; {WHOLE}"),
    "two objects": (b"{} {}", f"malformed JSON at column 4: Extra data; {WHOLE}"),
    "raw tab": (b'{"a": "\t"}', f"malformed JSON at column 8: Invalid control character at; {WHOLE}"),
    "array": (b"[1]", f"not an object but an array; {OBJECT}"),
    "empty array": (b"[]", f"not an object but an array; {OBJECT}"),
    "string": (b'"a"', f"not an object but a string; {OBJECT}"),
    "number": (b"1", f"not an object but a number; {OBJECT}"),
    "null": (b"null", f"not an object but null; {OBJECT}"),
    "true": (b"true", f"not an object but true; {OBJECT}"),
    "no field": (b"{}", f'field "formal_statement": missing; {PART}'),
    "no statement": (without("formal_statement"), f'field "formal_statement": missing; {PART}'),
    "no generation": (without("generation"), f'field "generation": missing; {PART}'),
    "null generation": (
        without("generation")[:-1] + b', "generation": null}',
        f'field "generation": null; {PART}',
    ),
    "number for name": (
        with_field("name", "7"),
        'field "name": not a string but a number; write it as a string',
    ),
    "list for environment": (
        with_field("environment", "[]"),
        'field "environment": not a string but an array; write it as a string',
    ),
    "object for group": (
        with_field("group", "{}"),
        'field "group": not a string but an object; write it as a string',
    ),
    "false for proof": (
        with_field("predicted_proof", "false"),
        'field "predicted_proof": not a string but false; write it as a string',
    ),
    "timeout as string": (
        with_field("timeout", '"30"'),
        f'field "timeout": not a number but a string; {SECONDS}',
    ),
    "timeout true": (with_field("timeout", "true"), f'field "timeout": not a number but true; {SECONDS}'),
    "timeout zero": (with_field("timeout", "0"), f'field "timeout": 0 is out of range; {SECONDS}'),
    "timeout below": (with_field("timeout", "-1"), f'field "timeout": -1 is out of range; {SECONDS}'),
    "timeout NaN": (with_field("timeout", "NaN"), f'field "timeout": nan is out of range; {SECONDS}'),
    "timeout inf": (
        with_field("timeout", "Infinity"),
        f'field "timeout": inf is out of range; {SECONDS}',
    ),
    "timeout huge": (
        with_field("timeout", "9" * 5000),
        f'field "timeout": inf is out of range; {SECONDS}',
    ),
    "timeout a day and more": (
        with_field("timeout", "86401"),
        f'field "timeout": 86401 is out of range; {SECONDS}',
    ),
    "name twice": (
        LINE[:-1] + b', "name": "a", "name": "a"}',
        'field "name": given twice; keep one of the two',
    ),
    "farm twice": (LINE[:-1] + b', "farm": 1, "farm": 2}', 'field "farm": given twice; keep one of the two'),
    "nested deeply": (
        with_field("x", "[" * 200_000 + "]" * 200_000),
        "JSON nested too deeply; flatten the nested fields of this line",
    ),
    "invalid UTF-8": (
        b'{"a": "\xff"}',
        "invalid UTF-8 at byte 8; save the file as UTF-8 (a compressed file must be named .gz or .zst)",
    ),
    "raw surrogate": (
        b'{"a": "\xed\xa0\x80"}',
        "invalid UTF-8 at byte 8; save the file as UTF-8 (a compressed file must be named .gz or .zst)",
    ),
    "mark": (
        b"\xef\xbb\xbf" + LINE,
        "begins with a byte order mark (UTF-8); save the file as UTF-8 without one",
    ),
}


@pytest.mark.parametrize("line,message", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_wrong_line_is_told_where_and_what_to_do(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(LINE + b"\n\n" + line + b"\n" + LINE + b"\n")
    assert message_of(path) == f"{path}:3: {message}"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_mark_of_another_encoding_is_recognised(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(LINE.decode().encode(encoding))
    remedy = "save the file as UTF-8 without one"
    assert message_of(path) == f"{path}:1: begins with a byte order mark ({encoding.upper()}); {remedy}"


@pytest.mark.parametrize("encoding", ["UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE"])
@pytest.mark.parametrize("text", [LINE.decode(), f"  {LINE.decode()}", '{"name": "ℝ"}'])
def test_another_encoding_without_a_mark_is_named_with_the_command_that_mends_it(
    tmp_path: Path, encoding: str, text: str
) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(f"{text}\n{text}\n".encode(encoding))
    remedy = f"save the file as UTF-8: iconv -f {encoding} -t UTF-8 FILE > NEW"
    assert f"{path}:1: is {encoding} without a byte order mark; {remedy}" in message_of(path)


@pytest.mark.parametrize("between", [b"\r", b" \r", b"\r\r"])
@pytest.mark.parametrize("behind", [b"", b"\r", b"\n"])
def test_lines_that_end_in_a_carriage_return_alone_are_named(
    tmp_path: Path, between: bytes, behind: bytes
) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(LINE + between + LINE + behind)
    problem = "ends its lines with a carriage return (CR) alone"
    assert message_of(path).startswith(f"{path}:1: {problem}; end each line with a line feed: tr")


def test_a_long_file_with_carriage_returns_alone_is_named_as_that(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes((LINE + b"\r") * (17_000_000 // len(LINE)))
    assert "carriage return (CR) alone" in message_of(path)


def test_windows_ends_of_lines_and_returns_within_a_line_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(LINE + b"\r\n" + LINE.replace(b'": ', b'":\r') + b"\r")
    assert len(list(read(path))) == 2
    path.write_bytes(b'{"a": "x\ry"}')
    assert "malformed JSON" in message_of(path)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_file_may_begin_with_the_mark_of_utf_8(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"m.jsonl{suffix}"
    content = b"\xef\xbb\xbf" + LINE + b"\n" + LINE
    path.write_bytes(gzip.compress(content) if suffix else content)
    assert [each.line for each in read(path)] == [1, 2]
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf\n") if suffix else b"\xef\xbb\xbf\n")
    assert "has no line with content" in message_of(path)


def test_an_error_knows_its_line_and_field(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(with_field("timeout", "-1"))
    with pytest.raises(ManifestError) as caught:
        list(read(path))
    assert (caught.value.path, caught.value.line, caught.value.field) == (str(path), 1, "timeout")


@pytest.mark.parametrize("content", [b"", b"\n", b" \n\r\n\t"])
def test_a_file_without_content_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(content)
    remedy = "write one JSON object per line, or leave the file out"
    assert message_of(path) == f"{path}: has no line with content; {remedy}"


def test_a_line_that_is_too_long_is_refused_without_being_held(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(LINE + b"\n" + with_field("x", '"' + "x" * 50_000_000 + '"'))
    tracemalloc.start()
    message = message_of(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert message == f"{path}:2: the line is longer than 16 MiB; remove this line or shorten its fields"
    assert peak < 40 << 20


def test_a_line_of_the_greatest_length_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    around = len(with_field("x", '""')) + 1
    path.write_bytes(with_field("x", '"' + "x" * ((16 << 20) - around) + '"') + b"\n")
    assert len(list(read(path))) == 1


def test_a_message_shows_a_files_name_without_its_control_characters(tmp_path: Path) -> None:
    path = tmp_path / "\x1b[31m\nm.jsonl"
    path.write_bytes(b"[]")
    assert message_of(path).startswith(f"{tmp_path}/\\x1b[31m\\nm.jsonl:1: not an object")


@given(st.binary(max_size=200))
def test_any_bytes_give_entries_or_an_error_of_printable_lines(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.jsonl"
        path.write_bytes(LINE + b"\n" + content)
        try:
            list(read(path))
        except ManifestError as error:
            told = str(error).split("\n")
            assert all(line.isprintable() and len(line) < 400 for line in told) and len(told) <= 12


# --- compressed files and fingerprints

PACKERS = {"m.jsonl": bytes, "m.jsonl.gz": gzip.compress, "m.jsonl.zst": zstandard.compress}


@pytest.mark.parametrize("name,pack", PACKERS.items())
def test_the_suffix_says_how_a_file_is_compressed(tmp_path: Path, name: str, pack: type[bytes]) -> None:
    path = tmp_path / name
    path.write_bytes(pack((LINE + b"\n") * 1000))
    assert [entry.line for entry in read(path)] == list(range(1, 1001))


@pytest.mark.parametrize("name,pack", PACKERS.items())
def test_compressed_files_may_be_joined(tmp_path: Path, name: str, pack: type[bytes]) -> None:
    path = tmp_path / name
    path.write_bytes(pack(LINE + b"\n") + pack(b"") + pack(LINE + b"\n" + LINE[:20]) + pack(LINE[20:]))
    assert [entry.line for entry in read(path)] == [1, 2, 3]


COMPRESSED = [(name, pack) for name, pack in PACKERS.items() if name != "m.jsonl"]
AGAIN = "compress it again, or give it the right suffix"


@pytest.mark.parametrize("name,pack", COMPRESSED)
@pytest.mark.parametrize("damage", ["cut", "garbage after", "plain text", "flipped"])
def test_a_damaged_compressed_file_is_refused(
    tmp_path: Path, name: str, pack: type[bytes], damage: str
) -> None:
    path = tmp_path / name
    whole = bytearray(pack(b"".join(with_field("x", f"{n}") + b"\n" for n in range(5000))))
    damaged = {"cut": whole[:-3], "garbage after": whole + b"garbage", "plain text": LINE}.get(damage)
    if damaged is None:
        whole[4 if name.endswith(".zst") else -6] ^= 0xFF
        damaged = whole
    path.write_bytes(damaged)
    message = message_of(path)
    assert message.startswith(f"{path}: is not a complete {path.suffix} file: ") and message.endswith(AGAIN)


@pytest.mark.parametrize("name,pack", PACKERS.items())
def test_the_fingerprint_is_of_the_bytes_that_were_read(tmp_path: Path, name: str, pack: type[bytes]) -> None:
    path = tmp_path / name
    path.write_bytes(pack((LINE + b"\n") * 1000))
    before = fingerprint(path)
    with opened(path) as lines:
        numbered = iter(lines)
        next(numbered)
        path.rename(tmp_path / "moved")
        path.write_bytes(pack(LINE))
        assert len(list(numbered)) == 999
        assert lines.fingerprint() == before != fingerprint(path)


def test_a_fingerprint_is_the_sha256_and_size_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b"abc")
    sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert fingerprint(path) == Fingerprint(sha256=sha256, size=3)


# --- which files are meant


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in a folder with a few manifests."""
    monkeypatch.chdir(tmp_path)
    for name in ("b.jsonl", "a.jsonl", "deep/er/c.jsonl", "deep/d.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(LINE)
    return tmp_path


EXPANSIONS = {
    "one file": (["a.jsonl"], ["a.jsonl"]),
    "the order given": (["b.jsonl", "a.jsonl"], ["b.jsonl", "a.jsonl"]),
    "sorted within a glob": (["*.jsonl"], ["a.jsonl", "b.jsonl"]),
    "any depth": (["**/*.jsonl"], ["a.jsonl", "b.jsonl", "deep/d.jsonl", "deep/er/c.jsonl"]),
    "folders passed over": (["deep/*"], ["deep/d.jsonl"]),
    "named twice": (["b.jsonl", "./b.jsonl", "*.jsonl"], ["b.jsonl", "a.jsonl"]),
}


@pytest.mark.parametrize("patterns,names", EXPANSIONS.values(), ids=EXPANSIONS.keys())
def test_names_and_globs_give_files(folder: Path, patterns: list[str], names: list[str]) -> None:
    assert expand(patterns) == tuple(folder / name for name in names)


def test_absolute_globs_work(folder: Path) -> None:
    assert expand([f"{folder}/*.jsonl"]) == (folder / "a.jsonl", folder / "b.jsonl")


def test_a_file_is_taken_once_through_links_and_under_its_first_name(folder: Path) -> None:
    (folder / "0.jsonl").symlink_to("b.jsonl")
    assert expand(["*.jsonl"]) == (folder / "0.jsonl", folder / "a.jsonl")


def test_a_name_with_a_star_in_it_is_a_file_if_there_is_one(folder: Path) -> None:
    (folder / "*.jsonl").write_bytes(LINE)
    assert expand(["*.jsonl"]) == (folder / "*.jsonl",)


def test_the_files_of_a_rewrite_under_way_are_not_matched(folder: Path) -> None:
    (folder / ".farm-0123456789abcdef.part").write_bytes(LINE)
    assert expand(["*"]) == (folder / "a.jsonl", folder / "b.jsonl")


UNUSABLE = {
    "no such file": ("none.jsonl", "no such file; check the spelling and the folder"),
    "no match": ("x*.jsonl", "no file matches; check the pattern and the folder"),
    "folder": ("deep", "is a folder; name the files in it, such as '{path}/*.jsonl'"),
    "empty": ("empty", "has no line with content; write one JSON object per line, or leave the file out"),
    "pipe": ("pipe", "is not a regular file; write its content to a file and give that file"),
    "dangling link": ("link", "no such file; check the spelling and the folder"),
    "loop": ("loop", "cannot be read: Too many levels of symbolic links; give yourself read permission"),
}


@pytest.mark.parametrize("name,problem", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_what_is_no_manifest_is_refused(folder: Path, name: str, problem: str) -> None:
    (folder / "empty").touch()
    (folder / "link").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    with pytest.raises(ManifestError) as caught:
        expand(["a.jsonl", name])
    path = name if "*" in name else folder / name
    assert str(caught.value) == f"{path}: {problem.format(path=path)}"


def test_an_unreadable_file_is_refused() -> None:
    with ordinary_user() as folder:
        path = folder / "m.jsonl"
        path.write_bytes(LINE)
        path.chmod(0)
        with pytest.raises(ManifestError) as caught:
            expand([str(path)])
    assert str(caught.value) == f"{path}: cannot be read: Permission denied; give yourself read permission"


def test_a_name_that_is_not_utf_8_is_refused(folder: Path) -> None:
    name = os.fsdecode(b"\xff.jsonl")
    (folder / name).write_bytes(LINE)
    with pytest.raises(ManifestError, match="the file's name is not UTF-8; rename the file"):
        expand([name])
