"""Stored verdicts back into manifests, on a real store: each line gets its own, whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import PROVED, entry, lines
from farms import CORE, finished, load
from sqlalchemy import Engine, text

from farm.errors import ManifestChanged, ServerDown
from farm.export import export, export_to
from farm.policy import Policy, Screen
from farm.queries import Queries, Run
from farm.store import Store
from farm.verdict import Message

FIELDS = {
    *("verdict", "reason", "detail", "messages", "warnings", "policy", "audit"),
    *("confirm", "accepted_first", "advisories"),
    *("wall_seconds", "cpu_seconds", "peak_memory_mib", "attempts"),
    *("environment", "environment_digest", "toolchain", "isolation"),
    *("program_sha256", "profile", "tier", "checker_version", "farm_version", "run_id"),
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


def exported(store: Store, queries: Queries, run_id: str) -> Run:
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
    screen = Screen(policy=Policy(), submitted=claim.check.submitted)
    hits, refused = screen.look(claim.check.program, header="")
    assert refused is not None
    assert finished(store, claim, exit_status=None, hits=hits, refused=refused)
    exported(store, queries, run_id)
    farm = lines(path)[0]["farm"]
    assert (farm["verdict"], farm["reason"]) == ("rejected", "native_decide")
    assert [(hit["rule"], hit["action"], hit["text"], hit["in"]) for hit in farm["policy"]] == [
        ("search", "report", "exact?", {"field": "generation", "line": 3, "column": 2}),
        ("native", "reject", "native_decide", {"field": "generation", "line": 4, "column": 2}),
    ]


def test_a_line_gets_all_that_is_known_of_its_check(store: Store, queries: Queries, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    run_id = load(store, path, entry(PROVED, 1))
    judge_all(store)
    exported(store, queries, run_id)
    (line,) = lines(path)
    farm = line["farm"]
    assert set(farm) == FIELDS
    assert line["proof_status"] == "completed"
    assert (farm["wall_seconds"], farm["cpu_seconds"], farm["peak_memory_mib"]) == (0.5, 0.4, 2.0)
    assert (farm["environment"], farm["environment_digest"]) == ("core", "d1")
    assert (farm["attempts"], farm["run_id"]) == (1, run_id)


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
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE checks SET status = 'done'"))
        connection.execute(
            text(
                "INSERT INTO verdicts (check_id, attempt, verdict, reason, detail, messages, hits, "
                "wall_seconds, cpu_seconds, peak_memory_kib, isolation, environment_digest, toolchain, "
                "checker_version) SELECT check_id, 1, 'proved', 'ok', name, '[]', '[]', "
                "1, 1, 1, '', '', '', '' FROM jobs"
            )
        )
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


class _DiesAfterTheRename(Store):
    """A store whose process ends when the manifest is in its place and nothing has been said of it."""

    def exported(self, run_id: str, number: int) -> None:
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
    with pytest.raises(ManifestChanged):
        exported(store, queries, run_id)
