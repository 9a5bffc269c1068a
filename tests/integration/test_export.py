"""Stored verdicts back into manifests, on a real store: each line gets its own, whole."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from farm.cli.run_tables import print_line
from farm.errors import FarmError, NotExported, ServerDown
from farm.judging.assurance import Assurance
from farm.judging.audit import ADMITTED, UNREBUILT, Audit
from farm.judging.report import Message
from farm.judging.tiers import Tier
from farm.lean_text.policy.screen import Screen
from farm.manifest.lines import Lines, opened
from farm.manifest.rewrite import rewrite
from farm.runs.export import export, export_to, marking
from farm.runs.writeback.fields import Marking, fields
from farm.runs.writeback.writing import writing
from farm.service.page.program import program
from farm.store.looking import LineFilter, Looking
from farm.store.queries import Queries, StoredRun
from farm.store.transitions import Store
from tests.commands import PROVED, entry, lines
from tests.farms import CORE, finished, load, submitted
from tests.processes import Process, eventually, processes
from tests.reports import SEALED

#: More lines than the exporter itself writes, and than fit into its children at once.
LINES = 6_000

FIELDS = {
    *("verdict", "reason", "detail", "error_kind", "messages", "warnings", "policy", "audit"),
    *("statement", "trusts", "rests_on_sorry_of", "answers", "uses_choice"),
    *("module_sha256", "sealed_sha256", "advisories"),
    *("wall_seconds", "cpu_seconds", "peak_memory_mib", "attempts"),
    *("environment", "environment_digest", "toolchain", "isolation", "unrebuilt", "contested"),
    *(
        "program_sha256",
        "assembled",
        "preamble",
        "profile",
        "tier",
        "checker_version",
        "farm_version",
        "run_id",
        "trace_id",
    ),
}


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE])
    return store


@pytest.fixture
def queries(database: Engine) -> Queries:
    return Queries(database)


def judge_all(store: Store, *messages: Message) -> None:
    facts = {"exit_status": 1, "messages": messages} if messages else {}
    for claim in store.claim(["core"], worker="w", lease_seconds=60, most=1000):
        assert finished(store, claim, **facts)


def children(parent: int | None = None) -> list[Process]:
    """Return the children of a process, by default of this one, that write verdicts."""
    parent = os.getpid() if parent is None else parent
    return [
        each
        for each in processes()
        if each.parent == parent and "farm.runs.children.answering" in each.command
    ]


def prove_all(store: Store, unless: str = "false") -> None:
    """Give every line, but those of which this holds, a verdict that names the line."""
    with store.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO verdicts (check_id, attempt, verdict, reason, detail, messages, hits, "
                "wall_seconds, cpu_seconds, peak_memory_kib, isolation, environment_digest, toolchain, "
                "checker_version) SELECT check_id, 1, 'proved', 'ok', name, '[]', '[]', "
                f"1, 1, 1, '', '', '', '' FROM jobs WHERE NOT ({unless})"
            )
        )
        connection.execute(
            text("UPDATE checks SET status = 'done' WHERE id IN (SELECT check_id FROM verdicts)")
        )


def exported(store: Store, queries: Queries, run_id: str) -> StoredRun:
    run = queries.run(run_id)
    list(export(store, queries, run))
    return run


def test_what_the_policy_found_is_told_with_its_place_in_the_answer(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    answer = "```lean\ntheorem t : 1 = 1 := by\n  exact?\n  native_decide\n```"
    statement = "theorem t : 1 = 1 := by sorry"
    asked = {"name": "t", "header": "open A\n", "formal_statement": statement, "generation": answer}
    run_id = load(store, path, asked)
    (claim,) = store.claim(["core"], worker="w", lease_seconds=60)
    screen = Screen(policy=Assurance(tier=Tier.LEAN).rules, submitted=claim.check.submitted)
    hits, refused = screen.look(claim.check.program, header="")
    assert refused is not None
    assert finished(store, claim, exit_status=None, hits=hits, refused=refused)
    exported(store, queries, run_id)
    farm = lines(path)[0]["farm"]
    assert (farm["verdict"], farm["reason"]) == ("rejected", "native_decide")
    assert [(hit["rule"], hit["action"], hit["text"], hit["in"]) for hit in farm["policy"]] == [
        ("native", "reject", "native_decide", {"field": "generation", "line": 4, "column": 2}),
    ]


SET = {
    "name": "t",
    "header": "open A\n\n",
    "formal_statement": "theorem t : 1 = 1 := by\n",
    "generation": "```lean\nopen B\n\ntheorem t : 1 = 1 := by\n  rfl\n```",
}


def place(preamble: str) -> int:
    """Return the place of the one of two candidates that the word stands for."""
    return ("model", "farm").index(preamble)


WITH, WITHOUT = "open A\n\nopen B\n\n{}  rfl", "open A\n\n{}  rfl"


@pytest.mark.parametrize(("preamble", "program", "line"), [("model", WITH, 6), ("farm", WITHOUT, 4)])
def test_a_line_gets_the_program_that_counted(
    store: Store, queries: Queries, tmp_path: Path, preamble: str, program: str, line: int
) -> None:
    path = tmp_path / "a.jsonl"
    run_id = load(store, path, SET)
    (claim,) = store.claim(["core"], worker="w", lease_seconds=60)
    assert finished(store, claim, exit_status=1, messages=(an_error(line, 2),), candidate=place(preamble))
    exported(store, queries, run_id)
    (written,) = lines(path)
    text = program.format(SET["formal_statement"])
    assert written["predicted_proof"] == text
    assert written["farm"]["program_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert written["farm"]["preamble"] == preamble
    assert written["farm"]["messages"][0]["in"] == {"field": "generation", "line": 5, "column": 2}


OWN = {"generation": "```lean\nnamespace X\nvariable (n : ℕ)\ntheorem t : 1 = 1 := by\n  rfl\nend X\n```"}
OF_THREE = {
    "model": "open A\n\nnamespace X\nvariable (n : ℕ)\ntheorem t : 1 = 1 := by\n  rfl\nend X",
    "restated": "open A\n\nvariable (n : ℕ)\n\ntheorem t : 1 = 1 := by\n  rfl",
    "farm": "open A\n\ntheorem t : 1 = 1 := by\n  rfl",
}


@pytest.mark.parametrize("preamble", OF_THREE)
def test_a_line_gets_the_one_of_three_programs_that_counted(
    store: Store, queries: Queries, tmp_path: Path, preamble: str
) -> None:
    path, program = tmp_path / "a.jsonl", OF_THREE[preamble]
    run_id = load(store, path, SET | OWN)
    (claim,) = store.claim(["core"], worker="w", lease_seconds=60)
    assert [each.program for each in claim.check.candidates] == list(OF_THREE.values())
    error = an_error(program[: program.index("  rfl")].count("\n") + 1, 2)
    assert finished(store, claim, exit_status=1, messages=(error,), candidate=list(OF_THREE).index(preamble))
    exported(store, queries, run_id)
    (written,) = lines(path)
    assert (written["predicted_proof"], written["farm"]["preamble"]) == (program, preamble)
    assert written["farm"]["messages"][0]["in"] == {"field": "generation", "line": 5, "column": 2}


def test_a_worker_is_given_both_programs(store: Store, tmp_path: Path) -> None:
    load(store, tmp_path / "a.jsonl", SET)
    (claim,) = store.claim(["core"], worker="w", lease_seconds=60)
    text = WITHOUT.format(SET["formal_statement"])
    first, last = claim.check.candidates
    assert first.program == WITH.format(SET["formal_statement"])
    assert last.program == text
    assert [text[start:end] for start, end in last.submitted or ()] == ["  rfl"]


def test_a_line_with_one_program_names_no_preamble(store: Store, queries: Queries, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    run_id = load(store, path, SET | {"generation": "rfl"})
    (claim,) = store.claim(["core"], worker="w", lease_seconds=60)
    assert len(claim.check.candidates) == 1
    assert finished(store, claim)
    exported(store, queries, run_id)
    assert lines(path)[0]["farm"]["preamble"] is None


def test_a_line_gets_all_that_is_known_of_its_check(store: Store, queries: Queries, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    run_id = load(store, path, entry(PROVED, 1))
    judge_all(store)
    exported(store, queries, run_id)
    (line,) = lines(path)
    farm = line["farm"]
    assert set(farm) == FIELDS | {"forgeable"}  # for nothing but rlimit held it
    assert line["proof_status"] == "completed"
    assert (farm["wall_seconds"], farm["cpu_seconds"], farm["peak_memory_mib"]) == (0.5, 0.4, 2.0)
    assert (farm["environment"], farm["environment_digest"]) == ("core", "d1")
    assert (farm["attempts"], farm["run_id"]) == (1, run_id)


@pytest.mark.parametrize(
    ("audit", "statement", "trusts"),
    [
        (SEALED, "compared", []),
        (replace(SEALED, statement="unchecked", trusts=("the compiler",)), "unchecked", ["the compiler"]),
        (replace(SEALED, trusts=(ADMITTED,), rests_on_sorry_of=("a",)), "compared", [ADMITTED]),
        (replace(SEALED, trusts=(UNREBUILT,)), "compared", [UNREBUILT]),
    ],
)
def test_a_line_says_whom_it_believes_and_what_it_leaves_open(
    store: Store,
    queries: Queries,
    tmp_path: Path,
    audit: Audit,
    statement: str,
    trusts: list[str],
) -> None:
    path = tmp_path / "a.jsonl"
    run_id = load(store, path, entry(PROVED, 1))
    (claim,) = store.claim(["core"], worker="w", lease_seconds=60)
    assert finished(store, claim, audit=audit)
    exported(store, queries, run_id)
    farm = lines(path)[0]["farm"]
    assert (farm["tier"], farm["statement"], farm["trusts"]) == ("kernel", statement, trusts)
    assert (farm["module_sha256"], farm["sealed_sha256"]) == ("a" * 64, "b" * 64)
    tally = queries.tally(run_id)
    below, unrebuilt = trusts == [ADMITTED], trusts == [UNREBUILT]
    assert farm["rests_on_sorry_of"] == (["a"] if below else [])
    assert farm["unrebuilt"] is unrebuilt
    trusting = bool(trusts) and not below and not unrebuilt
    counted = statement == "unchecked", trusting, below, unrebuilt
    assert (tally.unchecked, tally.trusting, tally.open_below, tally.unrebuilt) == counted


def test_a_line_that_nothing_was_looked_at_for_says_nothing_of_its_statement(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    run_id = load(store, path, entry(PROVED, 1), assurance=Assurance(tier=Tier.LEAN))
    (claim,) = store.claim(["core"], worker="w", lease_seconds=60)
    assert claim.check.assurance == Assurance(tier=Tier.LEAN)
    assert finished(store, claim, audit=None, tier=Tier.LEAN, exit_status=1, messages=(an_error(1, 0),))
    exported(store, queries, run_id)
    farm = lines(path)[0]["farm"]
    assert (farm["tier"], farm["statement"], farm["module_sha256"]) == ("lean", None, None)


def an_error(line: int, column: int) -> Message:
    return Message(
        severity="error", kind="", text="wrong", line=line, column=column, end_line=None, end_column=None
    )


def test_a_message_points_to_its_place_in_the_answer(store: Store, queries: Queries, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    run_id = load(
        store,
        path,
        {
            "header": "import A\n",
            "formal_statement": "theorem t : True := by\n",
            "generation": "So ℝ:\n\n```lean4\ntheorem t : True := by\n  have := 1\n  wrong\n```\n",
        },
    )
    judge_all(store, an_error(4, 2), an_error(2, 0))
    exported(store, queries, run_id)
    (line,) = lines(path)
    assert line["predicted_proof"].split("\n")[3] == "  wrong"
    places = [message["in"] for message in line["farm"]["messages"]]
    assert places == [
        {"field": "generation", "line": 6, "column": 2},
        {"field": "formal_statement", "line": 1, "column": 0},
    ]


def test_what_is_shown_of_a_line_names_the_same_places_without_its_file(
    store: Store, queries: Queries, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    answer = "So ℝ:\n\n```lean4\ntheorem t : True := by\n  have := 1\n  wrong\n```\n"
    stated = {"header": "import A\n", "formal_statement": "theorem t : True := by\n"}
    run_id = load(store, path, {**stated, "generation": answer})
    judge_all(store, an_error(4, 2), an_error(99, 0))
    exported(store, queries, run_id)
    (farm,) = (line["farm"] for line in lines(path))
    own = "line 6, column 2 of the answer (line 4, column 2 of the program)"
    assert farm["detail"] == f"Error at {own}: wrong (and 1 more)"
    path.unlink()
    job = queries.line(run_id, 0, 1)
    (listed,) = Looking(store.engine).lines(run_id, LineFilter())
    assert listed.detail == farm["detail"]
    assert job.verdict is not None
    told: Any = fields(job, job.verdict, None, Marking(run_id=run_id, profile="farm"))["farm"]
    assert (job.detail(), told["messages"]) == (farm["detail"], farm["messages"])
    print_line(job, [])
    shown = capsys.readouterr().out
    assert "answer 6:2 (program 4:2): error: wrong" in shown
    assert "program 99:0: error: wrong" in shown
    assert [note.place for row in program(job).rows for note in row.notes] == ["answer 6:2 (program 4:2)"]


def test_a_message_about_a_ready_program_points_into_it(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    run_id = load(store, path, entry(PROVED, 1))
    judge_all(store, an_error(4, 22))
    exported(store, queries, run_id)
    (message,) = lines(path)[0]["farm"]["messages"]
    assert message["in"] == {"field": "predicted_proof", "line": 4, "column": 22}


def test_a_message_beyond_the_program_has_no_place(store: Store, queries: Queries, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    run_id = load(store, path, entry(PROVED, 1))
    judge_all(store, an_error(99, 0))
    exported(store, queries, run_id)
    (message,) = lines(path)[0]["farm"]["messages"]
    assert (message["line"], "in" in message) == (99, False)


def test_every_line_of_a_long_manifest_gets_its_own_verdict(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    run_id = load(store, path, *(entry(PROVED, number) for number in range(1203)))
    prove_all(store)
    exported(store, queries, run_id)
    assert [line["farm"]["detail"] for line in lines(path)] == [line["name"] for line in lines(path)]
    assert len(lines(path)) == 1203


def test_a_second_run_of_an_exported_file_replaces_the_verdicts(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    first = load(store, path, entry(PROVED, 1))
    judge_all(store)
    exported(store, queries, first)
    second = load(store, path, *lines(path), share=False)
    judge_all(store, an_error(4, 22))
    exported(store, queries, second)
    (line,) = lines(path)
    assert (line["proof_status"], line["farm"]["run_id"]) == ("error", second)
    assert list(line) == ["name", "predicted_proof", "proof_status", "farm"]


# --- what an exported line is when it is submitted again

BROUGHT = {"generation": "rfl", "predicted_proof": "theorem t : 1 = 1 := by decide"}


def identities(store: Store, run_id: str) -> list[object]:
    with store.engine.connect() as connection:
        asked = text("SELECT identity FROM jobs JOIN checks ON checks.id = check_id WHERE run_id = :run")
        return list(connection.scalars(asked, {"run": run_id}))


@pytest.mark.parametrize("preamble", ["model", "farm"])
@pytest.mark.parametrize("more", [{}, BROUGHT], ids=["assembled", "brought"])
def test_an_exported_line_submitted_again_is_the_same_check(
    store: Store, queries: Queries, tmp_path: Path, preamble: str, more: dict[str, object]
) -> None:
    path = tmp_path / "a.jsonl"
    first = load(store, path, SET | more)
    (claim,) = store.claim(["core"], worker="w", lease_seconds=60)
    facts = {} if more else {"candidate": place(preamble)}
    assert finished(store, claim, **facts)
    exported(store, queries, first)
    once = lines(path)
    second = submitted(store, path, new_run=True).run_id
    assert identities(store, second) == identities(store, first)
    assert queries.tally(second).shared == 1
    assert queries.brought(first) == queries.brought(second) == len(more) // 2
    exported(store, queries, second)
    (again,) = lines(path)
    assert again["farm"]["assembled"] is not bool(more)
    assert {key: value for key, value in again["farm"].items() if key != "run_id"} == {
        key: value for key, value in once[0]["farm"].items() if key != "run_id"
    }


@pytest.mark.parametrize("preamble", ["model", "farm"])
def test_an_answer_that_was_edited_after_an_export_is_what_is_judged(
    store: Store, queries: Queries, tmp_path: Path, preamble: str
) -> None:
    path = tmp_path / "a.jsonl"
    run_id = load(store, path, SET)
    (claim,) = store.claim(["core"], worker="w", lease_seconds=60)
    assert finished(store, claim, candidate=place(preamble))
    exported(store, queries, run_id)
    (line,) = lines(path)
    second = load(store, path, line | {"generation": "I could not solve it."})
    assert "I could not solve it." in queries.line(second, 0, 1).program
    assert queries.brought(second) == 0


def test_a_program_that_was_edited_after_an_export_is_what_is_judged_and_counted(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    run_id = load(store, path, SET)
    judge_all(store)
    exported(store, queries, run_id)
    (line,) = lines(path)
    second = load(store, path, line | {"predicted_proof": "theorem t : 1 = 1 := by omega"}, SET)
    assert queries.line(second, 0, 1).program == "theorem t : 1 = 1 := by omega"
    assert queries.brought(second) == 1


def test_an_export_to_another_file_leaves_what_is_known_of_the_manifest(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    run_id = load(store, path, entry(PROVED, 1))
    judge_all(store)
    run = queries.run(run_id)
    (manifest,) = queries.manifests(run_id)
    written = export_to(queries, run, manifest, other)
    assert (written.path, written.lines) == (other, 1)
    assert queries.manifests(run_id) == [manifest]
    assert json.loads(other.read_text())["proof_status"] == "completed"


def test_lone_surrogates_and_nul_survive_the_way_there_and_back(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    odd = "a \0 b \ud800 c"
    run_id = load(store, path, {"name": odd, "predicted_proof": odd})
    exported(store, queries, run_id)
    (line,) = lines(path)
    assert (line["name"], line["predicted_proof"]) == (odd, odd)
    assert line["farm"]["reason"] == "invalid_text"


def test_a_line_that_lost_its_answer_is_a_manifest_that_was_changed(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    asked = {"header": "", "formal_statement": "theorem t : True := by\n", "generation": "  trivial"}
    run_id = load(store, path, asked)
    judge_all(store, an_error(2, 2))
    path.write_text("{}\n")
    with pytest.raises(NotExported):
        exported(store, queries, run_id)
    assert path.read_text() == "{}\n"


# --- long manifests, which children write


@pytest.fixture
def long(store: Store, tmp_path: Path) -> tuple[Path, StoredRun]:
    """A manifest of many pieces, and its run: with blank lines, and with lines that have no verdict."""
    path = tmp_path / "long.jsonl"
    blank = b"\n \t\r\n"
    every = [json.dumps(entry(PROVED, n), ensure_ascii=n % 2 == 0).encode() + b"\n" for n in range(LINES)]
    path.write_bytes(b"".join(line + blank if n % 700 == 0 else line for n, line in enumerate(every)))
    run_id = submitted(store, path, share=False).run_id
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE jobs SET cancelled = 'user' WHERE line % 11 = 0"))
    prove_all(store, unless="line % 7 = 0 OR line BETWEEN 4000 AND 5100")
    return path, Queries(store.engine).run(run_id)


def judged_lines(path: Path) -> set[int]:
    """Return the numbers of a manifest's lines that have a verdict, each its own."""
    found = set()
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        fields = json.loads(line) if line.strip() else {}
        if "farm" in fields:
            assert fields["farm"]["detail"] == fields["name"]
            found.add(number)
    return found


def test_every_line_of_many_pieces_gets_its_own_verdict_and_the_others_stay(
    store: Store, queries: Queries, long: tuple[Path, StoredRun]
) -> None:
    path, run = long
    before = path.read_bytes().split(b"\n")
    (written,) = export(store, queries, run, processes=2)
    after = path.read_bytes().split(b"\n")
    judged = judged_lines(path)
    assert judged == {
        number
        for number, line in enumerate(before, 1)
        if line.strip() and number % 7 and number % 11 and not 4000 <= number <= 5100
    }
    assert written.lines == len(judged)
    unjudged = [number for number in range(len(before)) if number + 1 not in judged]
    assert [after[number] for number in unjudged] == [before[number] for number in unjudged]
    assert children() == []


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_the_same_is_written_whoever_writes_it(
    queries: Queries, long: tuple[Path, StoredRun], suffix: str
) -> None:
    path, run = long
    written = []
    for count in (0, 1, 3):
        other = path.with_name(f"other{count}.jsonl{suffix}")
        with writing(queries.engine, marking(run), processes=count) as verdicts:
            rewrite(path, other, verdicts.manifest(0))
        written.append(other.read_bytes())
    assert written[0] == written[1] == written[2]


def test_one_export_writes_several_manifests_with_the_same_children(
    queries: Queries, long: tuple[Path, StoredRun]
) -> None:
    path, run = long
    with writing(queries.engine, marking(run), processes=2) as verdicts:
        rewrite(path, path.with_name("first.jsonl"), verdicts.manifest(0))
        begun = children()
        assert len(begun) == 2
        rewrite(path, path.with_name("second.jsonl"), verdicts.manifest(0))
        assert children() == begun
        assert verdicts.lines == len(judged_lines(path.with_name("second.jsonl")))
    assert children() == []


def test_a_short_manifest_starts_no_child(store: Store, queries: Queries, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    run = queries.run(load(store, path, *(entry(PROVED, number) for number in range(1900))))
    with writing(queries.engine, marking(run), processes=2) as verdicts:
        rewrite(path, tmp_path / "b.jsonl", verdicts.manifest(0))
        assert children() == []


Harm = Callable[[Queries], None]


def killing(_: Queries) -> None:
    for child in children():
        os.kill(child.pid, signal.SIGKILL)


def disconnecting(queries: Queries) -> None:
    eventually(lambda: connections(queries))
    with queries.engine.begin() as connection:
        connection.execute(text(f"SELECT pg_terminate_backend(pid) {_CONNECTIONS}"))


_CONNECTIONS = "FROM pg_stat_activity WHERE application_name LIKE 'farm-export %'"


def connections(queries: Queries) -> int:
    with queries.engine.connect() as connection:
        return int(connection.scalar(text(f"SELECT count(*) {_CONNECTIONS}")) or 0)


@pytest.mark.parametrize(
    "harm,error,words",
    [(killing, FarmError, "was killed.*export again"), (disconnecting, ServerDown, "PostgreSQL")],
)
def test_what_becomes_of_a_child_leaves_the_manifest_as_it_was(
    queries: Queries, long: tuple[Path, StoredRun], harm: Harm, error: type[FarmError], words: str
) -> None:
    path, run = long
    before = path.read_bytes()

    def harmed(lines: Lines) -> Iterator[bytes]:
        texts = verdicts.manifest(0)(lines)
        yield next(texts)
        harm(queries)
        yield from texts

    with (
        pytest.raises(error, match=words),
        writing(queries.engine, marking(run), processes=2) as verdicts,
    ):
        rewrite(path, path, harmed)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert children() == []


EXPORTER = """
import sys
from pathlib import Path
from farm.store import postgres
from farm.runs.export import marking
from farm.manifest.rewrite import rewrite
from farm.store.queries import Queries
from farm.runs.writeback.writing import writing

queries = Queries(postgres.connect(sys.stdin.readline().strip(), application="test"))

def slowly(lines):
    for text in verdicts.manifest(0)(lines):
        yield text
        print("begun", flush=True)
        sys.stdin.readline()

with writing(queries.engine, marking(queries.run(None)), processes=2) as verdicts:
    rewrite(Path(sys.argv[1]), Path(sys.argv[1]), slowly)
"""


def test_an_exporter_that_is_killed_leaves_no_child_and_no_word_of_the_database_on_a_command_line(
    queries: Queries, long: tuple[Path, StoredRun]
) -> None:
    path, _ = long
    before = path.read_bytes()
    url = queries.engine.url.render_as_string(hide_password=False)
    exporter = subprocess.Popen(
        [sys.executable, "-c", EXPORTER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert exporter.stdin
    assert exporter.stdout
    exporter.stdin.write(f"{url}\n")
    exporter.stdin.flush()
    assert exporter.stdout.readline() == "begun\n"
    begun = children(exporter.pid)
    assert len(begun) == 2
    assert not [child for child in begun if str(queries.engine.url.database) in child.command]
    exporter.kill()
    exporter.communicate()
    eventually(lambda: not any(child.alive for child in begun))
    assert path.read_bytes() == before


def test_children_import_no_more_than_they_need() -> None:
    program = "import sys, farm.runs.children.answering, farm.runs.writeback.editing; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert not {"sqlalchemy", "celery", "typer", "rich"} & set(loaded)


@pytest.mark.parametrize("count", [0, 2])
def test_long_messages_are_written_in_parts(
    store: Store, queries: Queries, tmp_path: Path, count: int
) -> None:
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    run = queries.run(load(store, path, *(entry(PROVED, number) for number in range(2500))))
    prove_all(store)
    with store.engine.begin() as connection:
        said = [asdict(replace(an_error(1, 0), text="x" * 8192))] * 100
        connection.execute(
            text(
                "UPDATE verdicts SET messages = CAST(:said AS jsonb) WHERE check_id IN "
                "(SELECT check_id FROM jobs WHERE line BETWEEN 10 AND 20 OR line >= 2490)"
            ),
            {"said": json.dumps(said)},
        )
    with writing(queries.engine, marking(run), processes=count) as verdicts, opened(path) as read:
        texts = list(verdicts.manifest(0)(read))
    other.write_bytes(b"".join(texts))
    assert max(map(len, texts)) < 6 << 20
    assert verdicts.lines == len(judged_lines(other)) == 2500


class _DiesAfterTheRename(Store):
    """A store whose process ends when the manifest is in its place and nothing has been said of it."""

    def exported(self, run_id: str, number: int, *, began: datetime) -> None:
        raise ServerDown("gone")


class _DiesBeforeTheRename(Store):
    """A store whose process ends when it has been said what the manifest will be."""

    def exporting(self, run_id: str, number: int, *, sha256: str, size: int) -> None:
        super().exporting(run_id, number, sha256=sha256, size=size)
        raise ServerDown("gone")


@pytest.mark.parametrize("dying", [_DiesAfterTheRename, _DiesBeforeTheRename])
def test_an_export_that_ended_at_any_point_can_be_repeated(
    store: Store, queries: Queries, tmp_path: Path, dying: type[Store]
) -> None:
    path = tmp_path / "a.jsonl"
    run_id = load(store, path, entry(PROVED, 1))
    judge_all(store)
    with pytest.raises(ServerDown):
        list(export(dying(store.engine), queries, queries.run(run_id)))
    exported(store, queries, run_id)
    exported(store, queries, run_id)
    assert [line["proof_status"] for line in lines(path)] == ["completed"]


def test_a_manifest_changed_by_somebody_else_is_still_refused_after_an_export_that_died(
    store: Store, queries: Queries, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    run_id = load(store, path, entry(PROVED, 1))
    judge_all(store)
    with pytest.raises(ServerDown):
        list(export(_DiesBeforeTheRename(store.engine), queries, queries.run(run_id)))
    path.write_text(path.read_text() + "\n")
    with pytest.raises(NotExported):
        exported(store, queries, run_id)
