"""What a resident Lean answers, as values: places, kinds, and what is no answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.lsp import TOO_LONG, URI, BrokenProtocol, Exchange, Frames, change, opening, wait

VERSION = 5


def body(value: object) -> bytes:
    return json.dumps(value).encode()


def framed(*bodies: bytes) -> bytes:
    return b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(each), each) for each in bodies)


def diagnostic(line: int = 0, start: int = 0, end: int = 1, **fields: object) -> dict[str, object]:
    span = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    return {"range": span, "fullRange": span, "severity": 1, "message": "no", "source": "Lean 4"} | fields


def published(*diagnostics: object, version: int = VERSION) -> bytes:
    params = {"diagnostics": diagnostics, "uri": URI, "version": version}
    return body({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params})


def exchange(*bodies: bytes) -> Exchange:
    found = Exchange(VERSION)
    for each in bodies:
        found.take(each)
    return found


# Frames.


@given(st.lists(st.binary(max_size=50)), st.integers(1, 20))
def test_messages_come_out_as_they_were_sent_however_the_stream_is_cut(sent: list[bytes], cut: int) -> None:
    stream, frames, got = framed(*sent), Frames(), []
    for start in range(0, len(stream), cut):
        got += frames.feed(stream[start : start + cut], 50)
    assert got == sent


def test_what_is_said_to_lean_is_framed_by_its_length_in_bytes() -> None:
    for said in (opening("-- ω𝕏"), change(2, "-- ω𝕏"), wait(2)):
        assert all(json.loads(each)["jsonrpc"] == "2.0" for each in Frames().feed(said, 1000))


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_a_message_that_is_too_long_is_dropped_and_told(cut: int) -> None:
    stream, frames, got = framed(b"a", b"x" * 100, b"b"), Frames(), []
    for start in range(0, len(stream), cut):
        got += frames.feed(stream[start : start + cut], 99)
    assert got == [b"a", TOO_LONG, b"b"]


@pytest.mark.parametrize(
    "noise", [b"x" * 2000, b"hello\r\n\r\n", b"Content-Length: -1\r\n\r\n", b"Content-Length: x\r\n\r\n"]
)
def test_noise_is_no_message(noise: bytes) -> None:
    with pytest.raises(BrokenProtocol):
        Frames().feed(noise, 1000)


# Messages.


def test_places_count_lines_from_one_and_columns_in_code_points() -> None:
    (message,) = exchange(published(diagnostic(1, 3, 5))).messages("a\n𝕏ωxyz")
    assert (message.line, message.column, message.end_line, message.end_column) == (2, 2, 2, 4)


def test_the_whole_range_counts_where_editors_get_a_part_of_it() -> None:
    full = {"start": {"line": 0, "character": 0}, "end": {"line": 2, "character": 1}}
    (message,) = exchange(published(diagnostic(fullRange=full))).messages("a\nb\nc")
    assert (message.end_line, message.end_column) == (3, 1)


def test_the_last_word_of_this_version_counts() -> None:
    found = exchange(
        published(diagnostic(message="early")),
        published(diagnostic(message="late")),
        published(diagnostic(message="other"), version=VERSION + 1),
    )
    assert [m.text for m in found.messages("")] == ["late"]


def test_a_text_that_ends_like_another_version_deceives_nobody() -> None:
    found = exchange(published(diagnostic(message='"version":5}}'), version=55))
    assert not found.published


def test_ticks_for_editors_are_left_out() -> None:
    found = exchange(
        published(diagnostic(isSilent=True), diagnostic(leanTags=[2]), diagnostic(code="lean.x"))
    )
    assert [m.kind for m in found.messages("")] == ["lean.x"]


def test_a_hint_is_information() -> None:
    found = exchange(published(*(diagnostic(severity=number) for number in (1, 2, 3, 4))))
    assert [m.severity for m in found.messages("")] == ["error", "warning", "information", "information"]


@pytest.mark.parametrize(
    "bad",
    [1, None, {}, {"range": 1}, {"severity": 9}, diagnostic(severity=9), {"message": "x", "severity": 1}],
)
def test_a_message_in_an_unknown_form_breaks_the_protocol(bad: object) -> None:
    with pytest.raises(BrokenProtocol):
        exchange(published(bad)).messages("")


def test_no_word_about_a_version_is_not_the_same_as_nothing_to_say() -> None:
    assert not exchange().published
    assert exchange(published()).published
    assert exchange(published()).messages("") == []


# Answers.


def test_the_answer_is_the_one_to_this_versions_question() -> None:
    assert exchange(body({"jsonrpc": "2.0", "id": VERSION, "result": {}})).answered
    assert not exchange(body({"jsonrpc": "2.0", "id": VERSION - 1, "result": {}})).answered


@pytest.mark.parametrize("cut", range(1, 40))
def test_an_answer_looks_like_one_however_it_comes(cut: int) -> None:
    answer = b'{"id":7,"jsonrpc":"2.0","result":{}}'
    heard = bytearray(answer[:cut])
    first = Exchange(7).may_be_over(heard, 0)
    heard += answer[cut:]
    assert first or Exchange(7).may_be_over(heard, cut)
    assert not Exchange(8).may_be_over(heard, 0)


def test_a_request_of_leans_own_with_the_same_number_is_no_answer() -> None:
    assert not exchange(
        body({"id": VERSION, "jsonrpc": "2.0", "method": "workspace/inlayHint/refresh"})
    ).answered


@pytest.mark.parametrize("bad", [b"{", b"[1]", b"[" * 100_000, body({"id": VERSION, "error": {"code": -1}})])
def test_an_answer_that_is_none_breaks_the_protocol(bad: bytes) -> None:
    with pytest.raises(BrokenProtocol):
        exchange(bad)


def progress(*ranges: tuple[int, int], version: int = VERSION) -> bytes:
    spans = [
        {"range": {"start": {"line": start, "character": 0}, "end": {"line": end, "character": 0}}, "kind": 1}
        for start, end in ranges
    ]
    params = {"processing": spans, "textDocument": {"uri": URI, "version": version}}
    return body({"jsonrpc": "2.0", "method": "$/lean/fileProgress", "params": params})


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ([], None),
        ([progress()], None),
        ([progress((0, 9))], 1),
        ([progress((0, 0), (2, 2), (4, 6), (6, 9))], 5),
        ([progress((2, 3), (4, 6), (6, 9))], 5),
        ([progress((0, 0), (2, 3), (4, 6), (9, 9))], 3),
        ([progress((4, 4), (9, 9))], None),
        ([progress((4, 5)), progress((7, 8))], 8),
        ([progress((4, 5), version=1)], None),
        ([body({"method": "$/lean/fileProgress", "params": {"processing": [1]}})], None),
    ],
)
def test_progress_tells_the_line_that_lean_is_at_work_on(said: list[bytes], line: int | None) -> None:
    assert exchange(*said).working_on() == line
