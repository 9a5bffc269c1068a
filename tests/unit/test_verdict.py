"""What the facts of a check make of a proof: one row of the table per rule."""

from __future__ import annotations

import dataclasses
import signal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.judging.audit import ADMITTED, Audit, Replay, Stated, against
from farm.judging.ending import needs_seal
from farm.judging.places import Place, at_line
from farm.judging.report import Answer, Execution, Message, Report
from farm.judging.tiers import Tier
from farm.judging.verdict import OUTCOMES, Outcome, Reason, Verdict, judge, judge_text
from farm.lean_text.policy.rules import RULES, Action, Hit
from tests.reports import CLEAN, SEALED, with_facts


def said(severity: str, text: str, kind: str = "") -> Message:
    return Message(severity=severity, kind=kind, text=text, line=3, column=8, end_line=None, end_column=None)


ERROR = said("error", "Unknown identifier `x`")
SORRY = said("warning", "declaration uses `sorry`", "hasSorry")
HEARTBEATS = said(
    "error",
    "(deterministic) timeout at `whnf`, maximum number of heartbeats (9) has been reached\nNote: more",
)
INSTANCE_HEARTBEATS = said("error", f"failed to synthesize\n  Foo 0\n{HEARTBEATS.text}")
KERNEL_HEARTBEATS = said("error", "(kernel) deterministic timeout")
LEAN_MEMORY = said("error", "(kernel) excessive memory consumption detected")
OUT_OF_MEMORY = "INTERNAL PANIC: out of memory"
LACKED = "other processes took all that this user can start"
NO_THREAD = (
    "libc++abi: terminating due to uncaught exception of type lean::exception: "
    "failed to create thread: Resource temporarily unavailable"
)


def a_hit(rule: str) -> Hit:
    return Hit(rule=rule, action=Action.REJECT, start=9, end=14, line=2, column=4, text="axiom")


def sealed(**facts: Any) -> dict[str, object]:
    return {"audit": dataclasses.replace(SEALED, **facts)}


def replayed(accepted: bool, said: str = "") -> dict[str, object]:
    return sealed(replay=Replay(accepted=accepted, said=said, constants=1))


def rechecked(accepted: bool, said: str = "") -> dict[str, object]:
    return sealed(second=Replay(accepted=accepted, said=said, checker="leanchecker"))


STATED = Stated(type_sha256="0" * 64)


def finding(word: str) -> Audit:
    return against(word, "t is not so.", "t")


def axioms(names: str) -> dict[str, object]:
    return {"messages": (said("information", f"'t' depends on axioms: [{names}]"),)}


def died(number: int, **facts: object) -> dict[str, object]:
    return {"exit_status": None, "signal": number, **facts}


def failed(*messages: Message, **facts: object) -> dict[str, object]:
    return {"exit_status": 1, "messages": messages, **facts}


TABLE: list[tuple[str, dict[str, object], Reason]] = [
    ("no message", {}, Reason.OK),
    ("a warning", {"messages": (said("warning", "unused variable"),)}, Reason.OK),
    ("information that says error", {"messages": (said("information", "error: sorry"),)}, Reason.OK),
    ("foreign output alone", {"foreign_output": "error: declaration uses sorry"}, Reason.OK),
    ("axioms without sorryAx", axioms("a.sorryAxiom"), Reason.OK),
    # Errors.
    ("an error", failed(ERROR), Reason.ERROR),
    ("an error and a sorry", failed(SORRY, ERROR), Reason.ERROR),
    ("an error though the exit status is 0", {"messages": (ERROR,)}, Reason.ERROR),
    ("recursion depth", failed(said("error", "maximum recursion", "runtime.maxRecDepth")), Reason.ERROR),
    ("an error that speaks of sorry", failed(said("error", "declaration uses sorry, does it")), Reason.ERROR),
    # Sorry in the wordings of all versions.
    ("sorry by kind", {"messages": (said("warning", "anything", "hasSorry"),)}, Reason.HAS_SORRY),
    ("sorry in backticks", {"messages": (said("warning", "declaration uses `sorry`"),)}, Reason.HAS_SORRY),
    ("sorry in quotes", {"messages": (said("warning", "declaration uses 'sorry'"),)}, Reason.HAS_SORRY),
    ("sorry made an error", failed(said("error", "declaration uses 'sorry'")), Reason.HAS_SORRY),
    ("stopped before its end", {"reached_end": False}, Reason.STOPPED_EARLY),
    ("stopped before its end, after an error", failed(said("error", "no"), reached_end=False), Reason.ERROR),
    ("sorry in the module alone", {"audit": finding("has_sorry")}, Reason.HAS_SORRY),
    ("sorry of the statement's own", {"messages": (SORRY,), **sealed(statement_has_sorry=True)}, Reason.OK),
    ("sorry that left no trace", {"messages": (SORRY,)}, Reason.HAS_SORRY),
    ("sorry before an early stop", {"messages": (SORRY,), "reached_end": False}, Reason.HAS_SORRY),
    ("sorryAx among axioms", axioms("propext,\n sorryAx"), Reason.HAS_SORRY),
    ("sorryAx the only axiom", axioms("sorryAx"), Reason.HAS_SORRY),
    # Lean's own limits.
    ("heartbeats by kind", failed(said("error", "so", "runtime.maxHeartbeats")), Reason.HEARTBEAT_LIMIT),
    ("heartbeats by text", failed(HEARTBEATS), Reason.HEARTBEAT_LIMIT),
    ("heartbeats of an instance search", failed(INSTANCE_HEARTBEATS), Reason.HEARTBEAT_LIMIT),
    ("heartbeats of the kernel", failed(KERNEL_HEARTBEATS), Reason.HEARTBEAT_LIMIT),
    ("heartbeats and another error", failed(HEARTBEATS, ERROR), Reason.ERROR),
    ("heartbeats and a sorry", failed(HEARTBEATS, SORRY), Reason.HEARTBEAT_LIMIT),
    ("Lean's memory limit", failed(LEAN_MEMORY), Reason.LEAN_MEMORY_LIMIT),
    ("Lean's memory limit and another error", failed(LEAN_MEMORY, ERROR), Reason.ERROR),
    # Limits of the box.
    ("wall", died(signal.SIGKILL, limit="wall"), Reason.WALL_LIMIT),
    ("cpu", died(signal.SIGKILL, limit="cpu"), Reason.CPU_LIMIT),
    ("memory", died(signal.SIGKILL, limit="memory"), Reason.MEMORY_LIMIT),
    ("processes", died(signal.SIGKILL, limit="processes"), Reason.PROCESS_LIMIT),
    ("output", {"limit": "output", "output_cut": True}, Reason.OUTPUT_LIMIT),
    ("output cut, whatever the box says", {"output_cut": True}, Reason.OUTPUT_LIMIT),
    ("a limit wins over an error", failed(ERROR, limit="wall"), Reason.WALL_LIMIT),
    ("a limit without an exit", {"exit_status": None, "limit": "wall"}, Reason.WALL_LIMIT),
    # Deaths.
    *(
        (f"died by {number.name}", died(number), Reason.CRASH)
        for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
    ),
    *(
        (f"asked for {number.name}", died(number), Reason.CRASH)
        for number in (signal.SIGALRM, signal.SIGPIPE, signal.SIGVTALRM, signal.SIGUSR1, signal.SIGRTMIN)
    ),
    *(
        (f"killed by {number.name}", died(number), Reason.KILLED)
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    ),
    ("killed after an error", died(signal.SIGKILL, messages=(ERROR,)), Reason.KILLED),
    ("crashed after an error", died(signal.SIGSEGV, messages=(ERROR,)), Reason.CRASH),
    ("crashed by an unknown signal", died(250), Reason.KILLED),
    ("too large a file", died(signal.SIGXFSZ), Reason.OUTPUT_LIMIT),
    ("too much processor time", died(signal.SIGXCPU, limit="cpu"), Reason.CPU_LIMIT),
    ("told of processor time that it did not use", died(signal.SIGXCPU), Reason.KILLED),
    ("exit status 134", {"exit_status": 134}, Reason.CRASH),
    ("exit status 2", {"exit_status": 2}, Reason.CRASH),
    ("exit status 1, out of memory", failed(foreign_output=OUT_OF_MEMORY), Reason.MEMORY_LIMIT),
    ("aborted, out of memory", died(signal.SIGABRT, foreign_output=OUT_OF_MEMORY), Reason.MEMORY_LIMIT),
    ("aborted, no thread to be had", died(signal.SIGABRT, foreign_output=NO_THREAD), Reason.BOX_FAILED),
    ("an error for lack of a process", failed(ERROR, lacked=LACKED), Reason.BOX_FAILED),
    ("a crash for lack of a process", died(signal.SIGABRT, lacked=LACKED), Reason.BOX_FAILED),
    (
        "no memory, which the machine refused",
        died(signal.SIGABRT, foreign_output=OUT_OF_MEMORY, lacked=LACKED),
        Reason.BOX_FAILED,
    ),
    ("a sorry in place of what it lacked", {"messages": (SORRY,), "lacked": LACKED}, Reason.BOX_FAILED),
    ("too many processes of its own", {"limit": "processes", "lacked": LACKED}, Reason.PROCESS_LIMIT),
    ("proved although it may have lacked something", {**sealed(), "lacked": LACKED}, Reason.OK),
    ("exit status 1 without an error", failed(), Reason.NO_REPLY),
    ("exit status 1, panicked", failed(foreign_output="INTERNAL PANIC: too big"), Reason.CRASH),
    ("exit status 1, a panic in passing", failed(foreign_output="x INTERNAL PANIC: y"), Reason.NO_REPLY),
    ("exit status 1 with a warning", failed(said("warning", "unused")), Reason.NO_REPLY),
    ("out of memory only in passing", failed(foreign_output=f"x {OUT_OF_MEMORY} x"), Reason.NO_REPLY),
    ("neither status nor signal", {"exit_status": None}, Reason.NO_REPLY),
    # The farm's failures.
    ("the box failed", {"box_error": "disk full"}, Reason.BOX_FAILED),
    ("the box failed after an error", failed(ERROR, box_error="disk full"), Reason.BOX_FAILED),
    ("the environment is broken", failed(ERROR, environment_error="no Core"), Reason.BAD_ENVIRONMENT),
    ("a limit nobody knows", {"limit": "moon"}, Reason.BOX_FAILED),
    ("refused by the policy", {"exit_status": None, "refused": a_hit("axiom")}, Reason.POLICY),
    ("refused with a sorry", {"refused": a_hit("option"), "messages": (SORRY,)}, Reason.POLICY),
    ("rests on the compiler", {"refused": a_hit("native")}, Reason.NATIVE_DECIDE),
    ("nothing has a forbidden name", {"task_error": "No such name."}, Reason.BAD_CHALLENGE),
    ("statement does not compile", {"challenge_error": "unknown identifier"}, Reason.BAD_CHALLENGE),
    # The seal.
    ("an axiom is found", {"audit": finding("axiom")}, Reason.AXIOM),
    ("something forbidden is used", {"audit": finding("forbidden")}, Reason.FORBIDDEN),
    ("the compiler is trusted", {"audit": finding("native_decide")}, Reason.NATIVE_DECIDE),
    ("another statement", {"audit": finding("statement_mismatch")}, Reason.STATEMENT_MISMATCH),
    ("no such theorem", {"audit": finding("target_missing")}, Reason.STATEMENT_MISMATCH),
    ("something else is found", {"audit": finding("kernel_primitive")}, Reason.AUDIT),
    ("a finding of a later version", {"audit": finding("new_word")}, Reason.AUDIT),
    ("no single target", {"audit": finding("bad_challenge")}, Reason.BAD_CHALLENGE),
    ("what no kernel may be given", {"audit": finding("kernel")}, Reason.KERNEL),
    (
        "no module of Lean's",
        {"audit": finding("malformed_olean")},
        Reason.MALFORMED_OLEAN,
    ),
    ("an open definition", {"audit": finding("answer_missing")}, Reason.ANSWER_MISSING),
    ("an answer of another form", {"audit": finding("answer_shape")}, Reason.ANSWER_SHAPE),
    ("another answer", {"audit": finding("answer_differs")}, Reason.ANSWER_DIFFERS),
    ("an answer nobody can compare", {"audit": finding("answer_undecided")}, Reason.ANSWER_UNDECIDED),
    ("what is asked cannot be", {"task_error": "No such definition."}, Reason.BAD_CHALLENGE),
    (
        "an open definition that Lean warns of",
        {"audit": finding("answer_missing"), "messages": (SORRY,)},
        Reason.ANSWER_MISSING,
    ),
    ("a permitted sorry", sealed(permitted=("helper",)), Reason.PARTIAL),
    ("refused by the kernel", replayed(False, "declaration type mismatch"), Reason.KERNEL),
    ("refused by the kernel, tier audit", {"tier": "audit", **replayed(False, "no")}, Reason.KERNEL),
    ("accepted by two kernels", rechecked(True), Reason.OK),
    ("accepted by one kernel of two", rechecked(False, "no"), Reason.KERNELS_DISAGREE),
    ("a negation", {"negates": True, **sealed()}, Reason.DISPROVED),
    ("a negation by a sorry", {"negates": True, **sealed(rests_on_sorry_of=("t",))}, Reason.HAS_SORRY),
    ("a negation, not compared", {"negates": True, **sealed(statement="unchecked")}, Reason.AUDIT),
    ("a negation on the tier lean", {"negates": True, "audit": None, "tier": "lean"}, Reason.AUDIT),
    ("both", {"negates": True, "contradicts": True, **sealed()}, Reason.CONTRADICTION),
    ("neither", {"negates": True, "contradicts": True, "audit": finding("axiom")}, Reason.AXIOM),
    ("a statement", {"states": True, **sealed(stated=STATED)}, Reason.STATED),
    ("with its sorry", {"states": True, "messages": (SORRY,), **sealed(stated=STATED)}, Reason.STATED),
    ("no statement", {"states": True, "audit": finding("bad_challenge")}, Reason.AUDIT),
    ("a statement without facts", {"states": True, **sealed()}, Reason.NO_REPLY),
    ("a statement on the tier lean", {"states": True, "audit": None, "tier": "lean"}, Reason.NO_REPLY),
    ("nothing to compare with", sealed(statement="unchecked"), Reason.OK),
    ("with trust in the compiler", sealed(trusts=["the compiler"]), Reason.OK),
    ("no audit", {"audit": None}, Reason.NO_REPLY),
    ("no audit, tier audit", {"audit": None, "tier": "audit"}, Reason.NO_REPLY),
    ("an audit that names no fault", {"audit": Audit(accepted=False)}, Reason.NO_REPLY),
    ("no replay", sealed(replay=None), Reason.NO_REPLY),
    ("no replay, tier audit", {"tier": "audit", **sealed(replay=None)}, Reason.OK),
    ("no audit, tier lean", {"audit": None, "tier": "lean"}, Reason.OK),
    ("the kernel out of time", {"audit": None, "kernel_limit": "time"}, Reason.KERNEL_TIME),
    ("the audit out of time", {"audit": None, "kernel_limit": "audit_wall"}, Reason.WALL_LIMIT),
    ("the audit out of processor time", {"audit": None, "kernel_limit": "audit_cpu"}, Reason.CPU_LIMIT),
    ("the audit too deep", {"audit": None, "kernel_limit": "audit_depth"}, Reason.KERNEL_LIMIT),
    ("the audit out of memory", {"audit": None, "kernel_limit": "audit_memory"}, Reason.MEMORY_LIMIT),
    ("the kernel out of memory", sealed(replay=None) | {"kernel_limit": "memory"}, Reason.MEMORY_LIMIT),
    ("the kernel too deep", sealed(replay=None) | {"kernel_limit": "depth"}, Reason.KERNEL_LIMIT),
    ("a limit of the kernel wins over an answer", {"kernel_limit": "time"}, Reason.KERNEL_TIME),
    ("a finding wins over a limit", {"audit": finding("axiom"), "kernel_limit": "time"}, Reason.AXIOM),
    ("a limit of the kernel nobody knows", {"audit": None, "kernel_limit": "moon"}, Reason.BOX_FAILED),
    ("audited and an error", failed(ERROR), Reason.ERROR),
    ("reported by the policy", {"hits": (a_hit("axiom"),)}, Reason.OK),
    ("text not given to Lean", {"exit_status": None, "text_error": "NUL"}, Reason.INVALID_TEXT),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "reason"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_facts_give_the_reason(facts: dict[str, object], reason: Reason) -> None:
    verdict = judge(with_facts(CLEAN, **facts))
    assert verdict.reason is reason
    assert verdict.outcome is OUTCOMES[reason]
    assert verdict.detail.strip()


def test_every_reason_belongs_to_one_outcome() -> None:
    assert set(OUTCOMES) == set(Reason)


def test_every_reason_that_facts_can_give_stands_in_the_table() -> None:
    without_facts = {Reason.WORKER_LOST, Reason.NO_ANSWER}
    assert {row[2] for row in TABLE} == set(Reason) - without_facts


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (Reason.OK, "completed"),
        (Reason.HAS_SORRY, "has_sorry"),
        (Reason.ERROR, "error"),
        (Reason.CRASH, "error"),
        (Reason.MEMORY_LIMIT, "error"),
        (Reason.WALL_LIMIT, "timeout"),
        (Reason.HEARTBEAT_LIMIT, "timeout"),
        (Reason.KILLED, "judge_error"),
    ],
)
def test_tools_read_a_word_they_know(reason: Reason, status: str) -> None:
    assert Verdict(outcome=OUTCOMES[reason], reason=reason, detail="").proof_status == status


@pytest.mark.parametrize("reason", Reason)
def test_only_what_would_come_out_the_same_again_is_reproducible(reason: Reason) -> None:
    chance = {"wall_limit", "cpu_limit", "memory_limit", "lean_memory_limit", "process_limit"}
    chance |= {"kernel_time", "kernel_limit", "crash"}
    expected = reason not in chance and OUTCOMES[reason] is not Outcome.JUDGE_ERROR
    assert Verdict(outcome=OUTCOMES[reason], reason=reason, detail="").reproducible is expected


def test_no_other_line_shares_a_statement_of_which_some_tactics_had_too_little_time() -> None:
    hurried = dataclasses.replace(STATED, cut_short=True)
    whole, cut = (judge(with_facts(CLEAN, states=True, **sealed(stated=each))) for each in (STATED, hurried))
    assert (whole.outcome, cut.outcome) == (Outcome.STATED, Outcome.STATED)
    assert (whole.reproducible, cut.reproducible) == (True, False)


@pytest.mark.parametrize("reason", Reason)
def test_only_a_failure_that_may_pass_is_tried_again(reason: Reason) -> None:
    final = {Reason.BAD_CHALLENGE, Reason.KERNELS_DISAGREE, Reason.CONTRADICTION, Reason.ANSWER_UNDECIDED}
    expected = OUTCOMES[reason] is Outcome.JUDGE_ERROR and reason not in final
    assert Verdict(outcome=OUTCOMES[reason], reason=reason, detail="").is_tried_again is expected


def test_a_kernel_that_disagrees_without_a_word_is_told_as_such() -> None:
    report = with_facts(CLEAN, **rechecked(False))
    assert judge(report).detail == "The kernel accepted the module, but leanchecker rejected it: no output"


def test_the_detail_names_the_first_error_and_how_many_follow() -> None:
    report = with_facts(CLEAN, exit_status=1, messages=(ERROR, ERROR, ERROR))
    assert judge(report).detail == "Error at line 3, column 8: Unknown identifier `x` (and 2 more)"


def test_the_detail_names_no_place_of_a_message_that_has_none() -> None:
    nowhere = dataclasses.replace(ERROR, line=0, column=0)
    report = with_facts(CLEAN, exit_status=1, messages=(nowhere,))
    assert judge(report).detail == "Error: Unknown identifier `x`"


messages = st.builds(
    Message,
    severity=st.sampled_from(["error", "warning", "information"]),
    kind=st.sampled_from(["", "hasSorry", "runtime.maxHeartbeats"]) | st.text(max_size=5),
    text=st.sampled_from([SORRY.text, HEARTBEATS.text, LEAN_MEMORY.text]) | st.text(max_size=20),
    line=st.integers(0, 9),
    column=st.integers(0, 9),
    end_line=st.none(),
    end_column=st.none(),
)
runs = st.builds(
    Execution,
    exit_status=st.none() | st.integers(0, 255),
    signal=st.none() | st.integers(1, 64),
    wall_seconds=st.floats(0, 99),
    cpu_seconds=st.floats(0, 99),
    peak_memory_kib=st.integers(0, 1 << 30),
    limit=st.none() | st.sampled_from(["wall", "cpu", "memory", "output", "processes"]) | st.text(max_size=3),
    output_bytes=st.integers(0, 1 << 30),
    output_cut=st.booleans(),
    box_error=st.none() | st.text(max_size=5),
    isolation=st.just("rlimit"),
)
answers = st.builds(
    Answer,
    messages=st.lists(messages, max_size=4).map(tuple),
    foreign_output=st.text(max_size=20),
    reached_end=st.booleans(),
)
reports = st.builds(
    Report,
    run=runs,
    answer=answers,
    tier=st.sampled_from(list(Tier)),
    environment_error=st.none() | st.text(max_size=5),
    text_error=st.none() | st.text(max_size=5),
    refused=st.none() | st.builds(a_hit, st.sampled_from(list(RULES))),
    audit=st.sampled_from([None, Audit(accepted=False), Audit(accepted=True), SEALED])
    | st.booleans().map(lambda accepted: dict(rechecked(accepted))["audit"])
    | st.builds(finding, st.text(max_size=9)),
    kernel_limit=st.none() | st.sampled_from(["time", "memory", "depth"]) | st.text(max_size=3),
    challenge_error=st.none() | st.text(max_size=5),
)


def is_sealed(report: Report) -> bool:
    """Whether audit and kernel have answered so far as the tier asks for it."""
    audit = report.audit or Audit(accepted=False)
    replayed = audit.replay is not None and audit.replay.accepted
    audited = audit.accepted and report.kernel_limit is None
    return {
        Tier.KERNEL: audited and replayed and (audit.second is None or audit.second.accepted),
        Tier.AUDIT: audited,
        Tier.LEAN: True,
    }[Tier(report.tier)]


@given(reports)
def test_every_report_has_a_verdict_and_only_a_spotless_one_is_a_pass(report: Report) -> None:
    verdict = judge(report)
    assert verdict.outcome is OUTCOMES[verdict.reason]
    if (place := verdict.place) is not None:
        assert verdict.detail[place.start :].startswith(at_line(place.line, place.column))
    spotless = (
        report.run.exit_status == 0
        and report.run.signal is None
        and (report.run.limit, report.run.box_error, report.environment_error, report.text_error)
        == (None,) * 4
        and (report.refused, report.challenge_error) == (None, None)
        and not report.run.output_cut
        and report.answer.reached_end
        and is_sealed(report)
        and all(m.severity != "error" and m.kind != "hasSorry" for m in report.answer.messages)
    )
    assert spotless or verdict.outcome is not Outcome.PROVED


@pytest.mark.parametrize(
    ("facts", "detail"),
    [
        ({}, "The kernel accepted the module."),
        (sealed(statement="unchecked"), "The kernel accepted the module; statement: unchecked."),
        (sealed(trusts=["the compiler"]), "The kernel accepted the module; trusts the compiler."),
        (
            sealed(trusts=["the compiler", ADMITTED], rests_on_sorry_of=["a", "b", "c", "d"]),
            "The kernel accepted the module; rests on the sorry of a, b, c and 1 more; trusts the compiler.",
        ),
        (rechecked(True), "The kernel and leanchecker accepted the module."),
        ({"tier": "audit"}, "Lean accepted the program, and the audit accepted its module."),
        ({"tier": "lean", "audit": None}, "Lean accepted the program; statement: unchecked."),
    ],
)
def test_a_proof_says_whom_it_believes_and_what_it_leaves_open(facts: dict[str, object], detail: str) -> None:
    assert judge(with_facts(CLEAN, **facts)).detail == detail


@pytest.mark.parametrize(
    ("facts", "statement_has_sorry", "expected"),
    [
        ({}, False, True),
        ({"tier": "audit"}, False, True),
        ({"tier": "lean"}, False, False),
        ({"messages": (SORRY,)}, False, False),
        ({"messages": (SORRY,)}, True, True),
        ({"reached_end": False}, True, False),
        (failed(ERROR), True, False),
        ({"limit": "wall"}, False, False),
    ],
)
def test_a_module_is_looked_at_where_nothing_else_speaks_against_the_proof(
    facts: dict[str, object], statement_has_sorry: bool, expected: bool
) -> None:
    report = with_facts(CLEAN, audit=None, **facts)
    assert needs_seal(report, reads_open=statement_has_sorry) is expected


@pytest.mark.parametrize(
    ("text", "detail", "at"),
    [
        ("theorem\n a\0b", "The program contains a NUL character at line 2, column 2.", (2, 2)),
        ("\ud83d", "The program contains the lone surrogate U+D83D at line 1, column 0.", (1, 0)),
    ],
)
def test_a_text_that_lean_cannot_take_is_rejected_with_its_place(
    text: str, detail: str, at: tuple[int, int]
) -> None:
    verdict = judge_text(text)
    place = Place(line=at[0], column=at[1], start=detail.index(" at "))
    expected = Verdict(outcome=Outcome.REJECTED, reason=Reason.INVALID_TEXT, detail=detail, place=place)
    assert verdict == expected


def test_any_other_text_can_be_given_to_lean() -> None:
    assert judge_text("theorem 𝔸 : α → β := by\r\n\tsorry \ufeff\U0010ffff") is None


def error_at(text: str, begin: tuple[int, int], end: tuple[int, int] | None) -> Message:
    line, column = begin
    end_line, end_column = end or (None, None)
    return Message(
        severity="error",
        kind="",
        text=text,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
    )


WHOLE = error_at("unsolved goals", (1, 28), (3, 13))


@pytest.mark.parametrize(
    ("others", "named"),
    [
        ([error_at("inside", (3, 4), (3, 13))], "line 3, column 4: inside"),
        ([error_at("inside", (3, 4), (3, 13)), error_at("deeper", (3, 10), (3, 13))], "3, column 10: deeper"),
        ([error_at("inside", (2, 2), (2, 5)), error_at("beside it", (3, 4), (3, 13))], "2, column 2: inside"),
        ([error_at("the same place", (1, 28), (3, 13))], "line 1, column 28: unsolved goals"),
        ([error_at("behind", (3, 14), (3, 20))], "line 1, column 28: unsolved goals"),
        ([error_at("across its end", (3, 4), (4, 1))], "line 1, column 28: unsolved goals"),
        ([error_at("without an end", (3, 4), None)], "line 3, column 4: without an end"),
        ([error_at("of no place", (0, 0), None)], "line 1, column 28: unsolved goals"),
        ([error_at("expected token", (3, 14), None)], "line 3, column 14: expected token (and 1 more)"),
        ([error_at("unknown tactic", (4, 2), None)], "line 4, column 2: unknown tactic (and 1 more)"),
        ([error_at("unexpected end of input", (4, 0), None)], "line 4, column 0: unexpected end of input"),
        ([error_at("expected token", (5, 0), None)], "line 1, column 28: unsolved goals"),
        (
            [error_at("type mismatch", (3, 10), (3, 13)), error_at("expected token", (3, 14), None)],
            "line 3, column 14: expected token (and 2 more)",
        ),
        (
            [error_at("unexpected token", (3, 4), (3, 13)), error_at("expected token", (3, 14), None)],
            "line 3, column 4: unexpected token (and 2 more)",
        ),
        (
            [error_at("beside", (4, 0), (4, 9)), error_at("expected token", (4, 9), None)],
            "line 1, column 28: unsolved goals",
        ),
    ],
)
def test_the_detail_names_an_error_inside_the_first_before_that(others: list[Message], named: str) -> None:
    verdict = judge(with_facts(CLEAN, exit_status=1, audit=None, messages=(WHOLE, *others)))
    assert verdict.reason is Reason.ERROR
    assert named in verdict.detail


def test_a_first_error_without_an_end_is_the_one_that_the_detail_names() -> None:
    first = error_at("first", (1, 0), None)
    verdict = judge(with_facts(CLEAN, exit_status=1, messages=(first, error_at("second", (1, 2), (1, 3)))))
    assert verdict.detail == "Error at line 1, column 0: first (and 1 more)"
