"""The protocol of a prepared Lean: how its output is cut, what ends an answer, and where messages are."""

from __future__ import annotations

import json

import pytest
from farm_workers.lean.lsp import PROGRAM, Answer, opening, program
from farm_workers.lean.way import Doubtful


def framed(*values: object) -> bytes:
    bodies = [json.dumps(each).encode() for each in values]
    return b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(each), each) for each in bodies)


def diagnostic(line: int = 0, start: int = 0, end: int = 1, **fields: object) -> dict[str, object]:
    span = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    return {"range": span, "fullRange": span, "severity": 1, "message": "no", **fields}


def published(*diagnostics: object, version: int = PROGRAM) -> dict[str, object]:
    params = {"diagnostics": diagnostics, "uri": "untitled:program", "version": version}
    return {"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params}


ANSWERED = {"jsonrpc": "2.0", "id": PROGRAM, "result": {}}


def printed(text: str, *diagnostics: object) -> list[dict[str, object]]:
    answer = Answer(PROGRAM)
    assert answer.ends(framed(published(*diagnostics), ANSWERED))
    return [json.loads(line) for line in answer.as_printed(text).splitlines()]


@pytest.mark.parametrize("step", [1, 7, 64, 10_000])
def test_an_answer_ends_with_the_response_however_the_output_is_cut(step: int) -> None:
    output, answer = framed(published(diagnostic()), ANSWERED), Answer(PROGRAM)
    ends = [answer.ends(output[:end]) for end in [*range(step, len(output), step), len(output)]]
    assert ends == [False] * (len(ends) - 1) + [True]
    assert answer.is_complete


def test_an_answer_to_another_request_ends_nothing() -> None:
    answer = Answer(PROGRAM)
    assert not answer.ends(framed(published(), {"id": PROGRAM + 1, "result": {}}))


@pytest.mark.parametrize(
    "output",
    [
        b"x" * 40,
        b"Content-Length: 9999999999\r\n\r\n" + b"x" * 10,
        framed({"id": PROGRAM, "error": {}}),
        framed([1]),
        b"Content-Length: 2\r\n\r\n[[",
    ],
)
def test_what_is_no_answer_ends_it_and_completes_nothing(output: bytes) -> None:
    answer = Answer(PROGRAM)
    assert answer.ends(output)
    assert not answer.is_complete


def test_requests_carry_their_length_in_bytes() -> None:
    for requests in (opening("-- ω𝕏"), program("-- ω𝕏")):
        first, _, rest = requests.partition(b"\r\n\r\n")
        length = int(first.removeprefix(b"Content-Length: "))
        assert json.loads(rest[:length])["jsonrpc"] == "2.0"


def test_places_count_lines_from_one_and_columns_in_code_points() -> None:
    (message,) = printed("a\n𝕏ωxyz", diagnostic(1, 3, 5))
    assert message["pos"] == {"line": 2, "column": 2}
    assert message["endPos"] == {"line": 2, "column": 4}


def test_the_name_of_an_error_is_its_kind() -> None:
    (message,) = printed("a", diagnostic(code="lean.unknownIdentifier"))
    assert message["kind"] == "lean.unknownIdentifier._namedError"


def test_what_only_an_editor_shows_is_not_printed() -> None:
    assert printed("a", diagnostic(isSilent=True), diagnostic(leanTags=[2])) == []


@pytest.mark.parametrize(
    "given",
    [
        7,
        None,
        {},
        diagnostic(severity=4),
        diagnostic(line=9),
        diagnostic(leanTags=5),
        diagnostic(fullRange=5),
        diagnostic(message="a (trace)"),
    ],
)
def test_a_message_of_an_unknown_form_is_doubtful(given: object) -> None:
    with pytest.raises(Doubtful):
        printed("a", given)


def test_messages_about_another_text_are_doubtful() -> None:
    answer = Answer(PROGRAM)
    answer.ends(framed(published(version=1), ANSWERED))
    with pytest.raises(Doubtful):
        answer.as_printed("a")
