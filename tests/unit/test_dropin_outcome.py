"""What a result is to a client that knows Lean alone: success only where the verdict says so."""

from __future__ import annotations

import re
from typing import Any

import pytest

from farm.client.results import Result
from farm.documents import decoded
from farm.judging.messages import SORRY_TEXTS
from farm.judging.reward import OF_MACHINES, WEAKER
from farm.judging.verdict import OUTCOMES, Outcome, Reason
from farm.service.dropins.lean_outcome import SORRY, OutcomeKind, Remark, bounded, printed, read

FILE = "/lean4/my_project/program.lean"
#: What NeMo-Gym takes for an error, in what it is told.
ERROR = re.compile(r"/lean4/my_project/.*?:(\d+):(\d+): error: (.*?)(?=\n/lean4/my_project|\Z)", re.DOTALL)
LIMITS = {Reason.WALL_LIMIT, Reason.CPU_LIMIT, Reason.KERNEL_TIME}


def a_result(reason: Reason = Reason.OK, *messages: dict[str, Any], **fields: Any) -> Result:
    """Return what the service knows of an item that was judged for this reason."""
    known = {
        "index": 0,
        "status": "done",
        "verdict": OUTCOMES[reason].value,
        "reason": reason.value,
        "detail": "because",
        "messages": list(messages),
        "seconds": {"wall": 1.5, "cpu": 1.0},
    }
    return decoded(Result, known | fields)


def a_message(severity: str, text: str, line: int = 3, column: int = 2) -> dict[str, Any]:
    return {
        "severity": severity,
        "text": text,
        "line": line,
        "column": column,
        "end_line": None,
        "end_column": None,
    }


#: What programs print to look like something else.
LURES = [
    a_message("information", f"{FILE}:1:0: error: never mind"),
    a_message("information", '{"process_status": "completed", "error": null}'),
    a_message("warning", "unused variable `x`"),
]


@pytest.mark.parametrize("messages", [[], LURES], ids=["silent", "talkative"])
@pytest.mark.parametrize("reason", Reason)
def test_only_proved_is_a_success(reason: Reason, messages: list[dict[str, Any]]) -> None:
    reading = read(a_result(reason, *messages), is_stated=True)
    assert (reading.kind is OutcomeKind.SUCCESS) == (reason is Reason.OK)
    assert (reading.kind is OutcomeKind.UNKNOWN) == (OUTCOMES[reason] is Outcome.JUDGE_ERROR)
    assert (reading.kind is OutcomeKind.TIMEOUT) == (reason in LIMITS)


@pytest.mark.parametrize("messages", [[], LURES], ids=["silent", "talkative"])
@pytest.mark.parametrize("reason", Reason)
def test_what_is_not_accepted_has_an_error_of_leans_shape(
    reason: Reason, messages: list[dict[str, Any]]
) -> None:
    reading = read(a_result(reason, *messages), is_stated=True)
    has_error = any(each.severity == "error" for each in reading.remarks)
    assert has_error == (reading.kind is OutcomeKind.ERRORS)
    if has_error:
        assert ERROR.match(printed(reading.remarks, file=FILE))


@pytest.mark.parametrize("status", ["queued", "running", "cancelled"])
def test_what_is_not_done_is_unknown(status: str) -> None:
    reading = read(a_result(status=status, verdict=None), is_stated=False)
    assert (reading.kind, reading.is_pending) == (OutcomeKind.UNKNOWN, status != "cancelled")


@pytest.mark.parametrize("is_stated", [True, False])
@pytest.mark.parametrize("word", WEAKER)
def test_a_weaker_proof_is_no_success(word: str, is_stated: bool) -> None:
    reading = read(a_result(weaker=[word]), is_stated=is_stated)
    if word in OF_MACHINES:  # nobody knows what it is worth
        assert reading.kind is OutcomeKind.UNKNOWN
    elif word == "unchecked" and not is_stated:  # there was nothing to compare it with
        assert reading.kind is OutcomeKind.SUCCESS
    else:
        assert reading.kind is OutcomeKind.ERRORS
        assert word in reading.remarks[0].text


def test_a_program_alone_that_is_weaker_in_two_ways_is_no_success() -> None:
    assert read(a_result(weaker=["unchecked", "native"]), is_stated=False).kind is OutcomeKind.ERRORS


@pytest.mark.parametrize("text", sorted(SORRY_TEXTS))
def test_what_is_admitted_is_told_in_the_words_that_clients_know(text: str) -> None:
    reading = read(a_result(Reason.HAS_SORRY, a_message("warning", text)), is_stated=False)
    assert reading.kind is OutcomeKind.SORRY
    assert reading.remarks == (Remark(severity="warning", text=SORRY, line=3, column=2),)


def test_what_is_admitted_without_a_warning_gets_one() -> None:
    reading = read(a_result(Reason.HAS_SORRY, *LURES), is_stated=False)
    assert reading.kind is OutcomeKind.SORRY
    assert reading.remarks[0].is_sorry


def test_what_lean_calls_an_error_stays_one_where_something_is_admitted_too() -> None:
    admitted = a_message("error", "declaration uses `sorry`")
    assert read(a_result(Reason.HAS_SORRY, admitted), is_stated=False).kind is OutcomeKind.ERRORS


def test_an_error_that_was_cut_off_is_told_in_the_farms_words() -> None:
    reading = read(a_result(Reason.ERROR, *LURES, messages_cut=True), is_stated=False)
    assert (reading.kind, reading.is_cut) == (OutcomeKind.ERRORS, True)
    assert reading.remarks[0].severity == "error"
    assert "because" in reading.remarks[0].text


def test_messages_are_printed_as_lean_does() -> None:
    remarks = (
        Remark(severity="information", text="Nat : Type\n", line=1),
        Remark(severity="warning", text="unused", line=2, column=1),
        Remark(severity="error", text="a\nb", line=3, column=4),
    )
    assert printed(remarks, file="x.lean") == (
        "Nat : Type\nx.lean:2:1: warning: unused\nx.lean:3:4: error: a\nb\n"
    )


def test_a_message_without_a_place_stands_at_the_beginning() -> None:
    (remark,) = read(a_result(Reason.ERROR, a_message("error", "x", 0, 0)), is_stated=False).remarks
    assert (remark.line, remark.column) == (1, 0)


LONG = "x" * 500
#: Remarks in the order of their places, and what must remain of them within any number of characters.
FLOODS = {
    "warnings": ([Remark(severity="warning", text="unused", line=n) for n in range(1, 90)], None),
    "sorry": (
        [
            *(Remark(severity="warning", text="unused", line=n) for n in range(1, 90)),
            Remark(severity="information", text=LONG, line=90),
            Remark(severity="warning", text=SORRY, line=12_345, column=123),
        ],
        f"{FILE}:12345:123: warning: {SORRY}\n",
    ),
    "error": (
        [
            Remark(severity="warning", text=SORRY, line=1),
            *(Remark(severity="information", text=LONG, line=n) for n in range(1, 90)),
            Remark(severity="error", text=LONG, line=91),
            Remark(severity="error", text="a consequence", line=92),
        ],
        f"{FILE}:91:0: error: x",
    ),
}


@pytest.mark.parametrize("most", [0, 1, 60, 119, 120, 121, 500, 1000, 1 << 20])
@pytest.mark.parametrize("flood", FLOODS)
def test_bounded_output_keeps_the_words_that_clients_decide_by(flood: str, most: int) -> None:
    remarks, deciding = FLOODS[flood]
    text, is_cut = bounded(remarks, file=FILE, most=most)
    assert deciding is None or deciding in text
    assert len(text) <= max(most, 120)
    assert is_cut == (text != printed(remarks, file=FILE))
    assert is_cut == (len(printed(remarks, file=FILE)) > most)


def test_bounded_output_has_its_remarks_in_their_own_order() -> None:
    remarks, _ = FLOODS["sorry"]
    text, _ = bounded(remarks, file=FILE, most=1000)
    lines = [int(each) for each in re.findall(rf"^{re.escape(FILE)}:(\d+):", text, re.MULTILINE)]
    assert lines == sorted(lines)
    assert text.count(FILE) == len(re.findall(f"^{re.escape(FILE)}", text, re.MULTILINE)) > 1
    assert len(text) == 1000
