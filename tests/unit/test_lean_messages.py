"""How the answer of `lean --json` is read, hostile output included."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import pytest
from farm_workers.lean.messages import MOST_MESSAGES, MOST_TEXT, completes, parse, with_end_mark
from hypothesis import given
from hypothesis import strategies as st

from farm.judging.report import Message
from tests.counted import assert_linear

MARK = "00ff"
#: Eight lines and an empty one.
PROGRAM = "theorem t\n" * 8


def line(severity: str = "error", data: str = "no", **fields: object) -> str:
    value = {
        "caption": "",
        "data": data,
        "endPos": {"column": 9, "line": 7},
        "fileName": "<stdin>",
        "kind": "[anonymous]",
        "pos": {"column": 4, "line": 7},
        "severity": severity,
    }
    return json.dumps(value | fields, separators=(",", ":"))


def texts(stdout: str) -> list[str]:
    return [
        m.text for m in parse(stdout.encode(errors="surrogatepass"), b"", program=PROGRAM, mark=MARK).messages
    ]


def test_a_message_is_read_with_its_place() -> None:
    answer = parse(
        (line(kind="hasSorry", severity="warning") + "\n").encode(), b"", program=PROGRAM, mark=MARK
    )
    assert answer.messages == (
        Message(severity="warning", kind="hasSorry", text="no", line=7, column=4, end_line=7, end_column=9),
    )
    assert answer.foreign_output == ""


def test_a_message_without_an_end_has_none() -> None:
    (message,) = parse(line(endPos=None).encode(), b"", program=PROGRAM, mark=MARK).messages
    assert (message.end_line, message.end_column) == (None, None)


def test_a_kind_without_a_name_is_no_kind() -> None:
    assert parse(line().encode(), b"", program=PROGRAM, mark=MARK).messages[0].kind == ""


def test_lines_break_at_newlines_only() -> None:
    assert texts(line(data="a\u2028b\x85c") + "\n" + line(data="d")) == ["a\u2028b\x85c", "d"]


@pytest.mark.parametrize(
    "noise",
    [
        "plain words",
        "{}",
        "[1, 2]",
        '{"severity":"error"}',
        '{"data":"x","severity":"fatal"}',
        '{"data":1,"severity":"error"}',
        '{"data":"x","severity":["error"]}',
        '{"data":"x","severity":{}}',
        '{"data":"cut off',
        '{"data":' + "[" * 100_000,
        '{"data":' + "9" * 10_000 + "}",
    ],
)
def test_what_is_no_message_is_foreign(noise: str) -> None:
    answer = parse(f"{noise}\n{line()}\n".encode(), b"", program=PROGRAM, mark=MARK)
    assert [m.text for m in answer.messages] == ["no"]
    assert answer.foreign_output.startswith(noise[:100])


def test_what_stands_on_stderr_is_foreign() -> None:
    assert parse(b"out", b"PANIC\xff", program=PROGRAM, mark=MARK).foreign_output == "out\nPANIC\ufffd"


def test_a_message_survives_what_was_printed_before_it_on_its_line() -> None:
    answer = parse(f'noise {{"data": {line()}tail'.encode(), b"", program=PROGRAM, mark=MARK)
    assert [m.text for m in answer.messages] == ["no"]
    assert answer.foreign_output == 'noise {"data": tail'


def test_characters_that_no_database_takes_are_replaced() -> None:
    assert texts(line(data="a\0b\ud800c")) == ["a\ufffdb\ufffdc"]


def test_a_long_text_is_cut() -> None:
    (text,) = texts(line(data="x" * (MOST_TEXT + 1)))
    assert (len(text), text[-1]) == (MOST_TEXT, "…")


NO_PLACES = (
    *(
        '{"line": 11, "column": 0}',
        '{"line": 7, "column": 10}',
        '{"line": 0, "column": 0}',
        "7",
        "null",
        "{}",
    ),
    *('{"line": -1, "column": 4}', '{"line": 7, "column": -1}', '{"line": 7}', '{"line": [7], "column": {}}'),
    *('{"line": 2147483648, "column": 4}', f'{{"line": 1{"0" * 400}, "column": 4}}', '{"column": 4}'),
    *('{"line": 7.0, "column": 4}', '{"line": true, "column": 4}', '{"line": 7, "column": false}'),
    *('{"line": NaN, "column": 4}', '{"line": 7, "column": Infinity}', '{"line": "7", "column": "4"}'),
)


@pytest.mark.parametrize("position", NO_PLACES)
def test_a_place_that_the_program_does_not_have_is_dropped(position: str) -> None:
    begin = line().replace('"pos":{"column":4,"line":7}', f'"pos":{position}')
    end = line().replace('"endPos":{"column":9,"line":7}', f'"endPos":{position}')
    assert begin != line() != end
    told, ends = parse(f"{begin}\n{end}".encode(), b"", program=PROGRAM, mark=MARK).messages[::-1]
    assert (told.text, told.line, told.column, told.end_line) == ("no", 0, 0, None)
    assert (ends.line, ends.column, ends.end_line, ends.end_column) == (7, 4, None, None)


@pytest.mark.parametrize("end", [{"line": 7, "column": 3}, {"line": 6, "column": 9}])
def test_an_end_before_the_beginning_is_dropped(end: dict[str, int]) -> None:
    (message,) = parse(line(endPos=end).encode(), b"", program=PROGRAM, mark=MARK).messages
    assert (message.line, message.column, message.end_line, message.end_column) == (7, 4, None, None)


def test_an_error_with_a_place_comes_before_errors_without_one() -> None:
    assert texts("\n".join([line(data="forged", pos={"line": 99, "column": 0}), line()])) == ["no", "forged"]


def test_many_messages_in_a_long_program_take_work_that_grows_with_them() -> None:
    def reading(size: int) -> Callable[[], object]:
        marks = [line("information", MARK, pos={"line": n, "column": 0}) for n in range(size)]
        ends = [line(endPos={"line": 2**31 - 1 - n, "column": 0}) for n in range(size)]
        out = "\n".join(marks + ends).encode()
        return partial(parse, out, b"", program=PROGRAM * 2 * size, mark=MARK)

    assert_linear(reading, 200, timed=4000)


def test_of_too_many_messages_the_errors_are_kept_in_their_order() -> None:
    many = [line("information", str(i)) for i in range(MOST_MESSAGES)]
    out = "\n".join([*many, line("warning", "w"), line("error", "e")])
    kept = texts(out)
    assert len(kept) == MOST_MESSAGES
    assert kept[-3:] == [str(MOST_MESSAGES - 3), "w", "e"]


def test_of_too_many_messages_a_sorry_is_kept() -> None:
    many = [line("warning", str(i)) for i in range(MOST_MESSAGES)]
    sorry = "declaration uses `sorry`"
    kept = texts("\n".join([*many, line("warning", sorry)]))
    assert (len(kept), kept[-1]) == (MOST_MESSAGES, sorry)


def test_of_too_many_sorries_an_error_behind_them_is_kept() -> None:
    many = [line("warning", "declaration uses `sorry`", kind="hasSorry") for _ in range(MOST_MESSAGES)]
    kept = texts("\n".join([*many, line("error", "e")]))
    assert (len(kept), kept[-1]) == (MOST_MESSAGES, "e")


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_can_be_read(stdout: bytes, stderr: bytes) -> None:
    parse(stdout, stderr, program=PROGRAM, mark=MARK).foreign_output.encode()


@given(st.lists(st.sampled_from([line(), '{"data":', "{", "}", '"', "\\", "\n", "x"]), max_size=30))
def test_no_mixture_of_pieces_breaks_the_reading(pieces: list[str]) -> None:
    out = "".join(pieces)
    assert len(parse(out.encode(), b"", program=PROGRAM, mark=MARK).messages) <= pieces.count(line())


def test_the_end_mark_says_that_the_end_was_reached_and_is_no_message() -> None:
    answer = parse(line("information", f"{MARK}\n").encode(), b"", program=PROGRAM, mark=MARK)
    assert (answer.messages, answer.reached_end) == ((), True)


def test_without_its_end_mark_a_program_was_not_read_to_its_end() -> None:
    assert not parse(line("information", "another").encode(), b"", program=PROGRAM, mark=MARK).reached_end


def test_the_end_mark_is_found_behind_more_messages_than_are_kept() -> None:
    said = "\n".join([line()] * (2 * MOST_MESSAGES) + [line("information", MARK)])
    assert parse(said.encode(), b"", program=PROGRAM, mark=MARK).reached_end


MARKED = with_end_mark(PROGRAM, MARK)
#: The line behind the program's last one, and the place of the mark.
BEHIND = PROGRAM.count("\n") + 2
BEFORE = MARKED.rpartition("#exit")[0]
PLACE = {"line": BEFORE.count("\n") + 1, "column": len(BEFORE) - BEFORE.rfind("\n") - 1}
EXIT = line("warning", "using 'exit' to interrupt Lean", pos=PLACE)


def test_the_mark_behind_a_program_begins_a_line_and_is_no_message() -> None:
    assert MARKED.startswith(f"{PROGRAM}\n")
    assert texts(f"{EXIT}\n{line()}") == ["no"]


def test_the_place_of_a_mark_is_not_to_be_guessed() -> None:
    assert len({with_end_mark(PROGRAM, f"{number}").rpartition("#exit")[0] for number in range(99)}) == 99


@pytest.mark.parametrize(
    ("said", "is_complete"),
    [
        ([EXIT], True),
        ([line(), EXIT], True),
        ([line(endPos=None), EXIT], True),
        ([], False),
        ([line("warning", "using 'exit' to interrupt Lean", pos={"line": BEHIND, "column": 0})], False),
        ([line(pos={"line": BEHIND, "column": 0}), EXIT], False),
        ([line(endPos={"line": BEHIND, "column": 8}), EXIT], False),
        ([EXIT, line(pos={"line": PLACE["line"] + 1, "column": 0})], False),
        ([line("error", "using 'exit' to interrupt Lean", pos=PLACE)], False),
    ],
)
def test_a_program_is_complete_when_nothing_is_wrong_behind_it(said: list[str], is_complete: bool) -> None:
    assert completes("\n".join(said).encode(), program=PROGRAM, mark=MARK) is is_complete
