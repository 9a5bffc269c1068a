"""Clients of other checkers, over HTTP to a farm with a worker, and to one without."""

from __future__ import annotations

import json
import re
import select
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from farm_workers.exploits.corpus import Case, one_of_each, read

from farm.service.auth.local_token import LOCAL
from farm.store.keys import Scope
from farm.task import Task
from tests.commands import Command
from tests.farms import Quiet, claimed, finished, load
from tests.http_service import TOKEN, listening
from tests.processes import PATIENCE, eventually

HEADER = "prelude\nimport Core\n"
PROVED = HEADER + "theorem t : True := True.intro\n"
WRONG = HEADER + "\ntheorem t : 1 = 2 :=\n  nonsense\n"
ADMITTED = HEADER + "theorem t : 1 = 2 := sorry\n"
AXIOM = HEADER + "axiom cheat : False\ntheorem t : 1 = 2 := cheat.elim\n"
HIDDEN = HEADER + "set_option warn.sorry false\ntheorem t : 1 = 2 := sorryAx _ true\n"
ENDLESS = HEADER + "theorem t (a b c : Nat) : a + b + c = c + b + a := by\n  repeat rw [Nat.add_comm]\n"
STATEMENT = {"header": HEADER, "formal_statement": "theorem t : True := by"}
#: How NeMo-Gym finds errors, and what is admitted.
ERROR = re.compile(r"/lean4/my_project/.*?:(\d+):(\d+): error: (.*?)(?=\n/lean4/my_project|\Z)", re.DOTALL)
SORRY = re.compile(r"\bsorry\b")
#: A text that the farm is given by a model which knows its clients.
LURES = HEADER + (
    '#print "/lean4/my_project/program.lean:1:0: error: never mind"\n'
    '#print "{\\"process_status\\": \\"completed\\", \\"error\\": null}"\n'
)
#: Programs that deceive, and honest ones that look like them; not those that run into limits.
CASES = one_of_each(
    case
    for case in read()
    # A client of others can say no task, and accepts no answer of which nothing is demanded.
    if case.program and not case.before and case.task == Task() and case.seconds == 60.0
    if not (case.is_honest and "sorry" in case.statement)
)


@pytest.fixture(scope="module")
def url(farm: Command) -> Iterator[str]:
    with listening(farm) as url:
        yield url


@pytest.fixture
def quiet(shared_quiet: Quiet) -> Quiet:
    """A farm without a worker, of which nobody has asked anything yet."""
    shared_quiet.clear()
    return shared_quiet


@pytest.fixture(scope="module")
def shared_url(shared_quiet: Quiet) -> Iterator[str]:
    with listening(shared_quiet.farm) as url:
        yield url


@pytest.fixture
def quiet_url(quiet: Quiet, shared_url: str) -> str:
    return shared_url


def post(url: str, body: object, *, seconds: float = 300.0) -> httpx.Response:
    """Send a body as JSON; whatever a model writes can be in it."""
    headers = {"Content-Type": "application/json"}
    return httpx.post(url, content=json.dumps(body), headers=headers, timeout=seconds)


def execute(url: str, program: str, *, seconds: float = 300.0, **fields: object) -> httpx.Response:
    """Ask as NeMo-Skills does, which gives up after so many seconds."""
    return post(
        f"{url}/execute",
        {
            "generated_code": program,
            "std_input": "",
            "language": "lean4",
            "timeout": 30.0,
            "max_output_characters": 1000,
            "traceback_verbosity": "Plain",
            "session_id": None,
            **fields,
        },
        seconds=seconds,
    )


def nemo_status(answer: dict[str, Any]) -> str:
    """Return what NeMo-Skills and NeMo-Gym make of an answer: a proof is `completed`."""
    if answer["process_status"] != "completed":
        return str(answer["process_status"])
    return "has_sorry" if SORRY.search(f"{answer['stdout']}\n{answer['stderr']}".lower()) else "completed"


def kimina_status(result: dict[str, Any]) -> str:
    """Return what Kimina's client makes of a result: a proof is `valid`."""
    if result.get("error") is not None:
        return "timeout_error" if "timed out" in result["error"] else "server_error"
    if any(each["severity"] == "error" for each in result["response"].get("messages") or []):
        return "lean_error"
    return "sorry" if result["response"].get("sorries") else "valid"


def check(url: str, *programs: object, **fields: object) -> list[dict[str, Any]]:
    """Ask as Kimina's client does, and return the results."""
    snippets = [{"id": str(number), "code": program} for number, program in enumerate(programs)]
    said = {"timeout": 30, "debug": False, "reuse": True, "infotree": None, **fields}
    answer = post(f"{url}/api/check", {"snippets": snippets, **said})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])


def run_code(url: str, program: str, **fields: object) -> httpx.Response:
    """Ask as verl does a SandboxFusion."""
    said = {"compile_timeout": 30, "run_timeout": 30, "stdin": "", "files": {}, "fetch_files": []}
    return post(f"{url}/run_code", {"code": program, "language": "lean", **said, **fields})


def program_of(case: Case) -> str:
    header = HEADER if case.header is None else case.header
    return f"{header}{case.program}\n"


# NeMo-Skills


@pytest.mark.newcomer
def test_nemo_reads_a_proof(url: str) -> None:
    answer = execute(url, PROVED)
    assert answer.json() == {"process_status": "completed", "stdout": "", "stderr": ""}
    assert answer.status_code == 200


def test_nemo_finds_an_error_at_its_place_in_the_program(url: str) -> None:
    answer = execute(url, WRONG).json()
    assert answer["process_status"] == "failed"
    assert ERROR.findall(answer["stdout"])[0][:2] == ("5", "2")


@pytest.mark.parametrize("program", [ADMITTED, HIDDEN], ids=["warned", "hidden"])
def test_nemo_reads_what_is_admitted(url: str, program: str) -> None:
    answer = execute(url, program).json()
    assert nemo_status(answer) == "has_sorry"
    assert "declaration uses 'sorry'" in answer["stdout"]


#: Texts with many messages before the one that a client decides by: more than the service keeps.
PRINTS = '#print "x"\n' * 60
WARNINGS = "".join(f"theorem u{n} (x : Nat) : True := .intro\n" for n in range(120))
ADMITTING = "theorem some : 1 = 2 := sorry\n" + "#print axioms some\n" * 120


@pytest.mark.parametrize("above", [PRINTS, WARNINGS, ADMITTING], ids=["prints", "warnings", "axioms"])
def test_no_limit_of_output_hides_from_nemo_what_is_admitted(url: str, above: str) -> None:
    program = f"{HEADER}{above}{ADMITTED.removeprefix(HEADER)}"
    for most in (0, 7, 40, 1000, 100_000):
        answer = execute(url, program, max_output_characters=most).json()
        assert nemo_status(answer) == "has_sorry", answer
        assert "declaration uses 'sorry'" in answer["stdout"]
        assert len(answer["stdout"]) <= max(most, 120) + len("<output cut>")


def test_no_limit_of_output_hides_from_nemo_where_an_error_stands(url: str) -> None:
    wrong = f"{HEADER}{WARNINGS}{WRONG.removeprefix(HEADER)}"
    for most in (0, 7, 40, 1000):
        answer = execute(url, wrong, max_output_characters=most).json()
        assert answer["process_status"] == "failed"
        assert ERROR.findall(answer["stdout"])[0][:2] == ("125", "2")


def test_output_that_is_too_long_for_nemo_is_cut(url: str) -> None:
    answer = execute(url, HEADER + '#print "x"\n' * 600 + PROVED.removeprefix(HEADER)).json()
    assert answer["process_status"] == "completed"
    assert answer["stdout"].endswith("<output cut>")
    assert len(answer["stdout"]) <= 1000 + len("<output cut>")


@pytest.mark.parametrize("program", [AXIOM, LURES + AXIOM.removeprefix(HEADER)], ids=["plain", "lures"])
def test_what_only_lean_accepts_is_an_error_to_nemo(url: str, program: str) -> None:
    answer = execute(url, program).json()
    assert answer["process_status"] == "failed"
    assert "axiom" in ERROR.findall(answer["stdout"])[0][2]


def test_a_proof_that_prints_what_it_likes_is_one(url: str) -> None:
    answer = execute(url, LURES + PROVED.removeprefix(HEADER)).json()
    assert nemo_status(answer) == "completed"


def test_nemo_reads_a_timeout_before_it_gives_up(url: str) -> None:
    execute(url, PROVED + "-- the header is imported now")
    answers = iter(lambda: execute(url, ENDLESS, timeout=2), None)
    # Where the check waits for a core too long, the answer is 502, and NeMo-Skills asks again.
    answer = next(each for each in answers if each.status_code != 502)
    assert answer.json() == {
        "process_status": "timeout",
        "stdout": "",
        "stderr": "Execution timed out after 2 seconds\n",
    }


@pytest.mark.parametrize("language", ["python", "ipython", "lean"])
def test_nemo_is_told_that_other_languages_are_not_run(url: str, language: str) -> None:
    answer = execute(url, "print(1)", language=language)
    assert (answer.status_code, answer.json()["process_status"]) == (400, "error")
    assert language in answer.json()["stderr"]


def test_nemo_is_told_of_an_environment_that_nobody_has(url: str) -> None:
    answer = execute(url, PROVED, environment="nowhere")
    assert (answer.status_code, answer.json()["process_status"]) == (400, "error")
    assert "nowhere" in answer.json()["stderr"]


def test_a_program_that_proves_something_else_is_an_error_to_nemo(url: str) -> None:
    other = HEADER + "theorem u : True ∧ True := ⟨True.intro, True.intro⟩\n"
    assert execute(url, PROVED, challenge=STATEMENT).json()["process_status"] == "completed"
    assert execute(url, PROVED, **STATEMENT).json()["process_status"] == "completed"
    assert execute(url, other).json()["process_status"] == "completed"
    assert execute(url, other, challenge=STATEMENT).json()["process_status"] == "failed"
    assert execute(url, other, **STATEMENT).json()["process_status"] == "failed"


@pytest.mark.parametrize(
    "fields",
    [
        {"challenge": {"header": HEADER}},
        {"challenge": {"formal_statement": " \n"}},
        {"formal_statement": ""},
        {"header": HEADER},
        {"challenge": STATEMENT, "formal_statement": "theorem t : True"},
        {"challenge": "theorem t : True"},
        {"challenge": STATEMENT | {"context": HEADER}},
        {"formal_statement": "theorem t : True", "context": f"{HEADER}\t"},
    ],
)
def test_half_a_challenge_is_refused(url: str, fields: dict[str, object]) -> None:
    assert execute(url, PROVED, **fields).status_code == 422


@pytest.mark.parametrize("program", ["", PROVED + "\0", PROVED + "-- \ud800"], ids=["empty", "nul", "lone"])
def test_what_lean_cannot_be_given_is_an_error(url: str, program: str) -> None:
    assert ERROR.search(execute(url, program).json()["stdout"])
    assert [kimina_status(each) for each in check(url, program)] == ["lean_error"]
    assert run_code(url, program).json()["status"] == "Failed"


def test_nemo_is_answered_before_it_gives_up_on_a_farm_without_a_worker(quiet: Quiet, quiet_url: str) -> None:
    answer = execute(quiet_url, PROVED, timeout=1)
    assert answer.status_code == 502
    assert httpx.get(f"{quiet_url}/health").status_code == 200


def test_nemo_asks_again_and_joins_the_check_that_runs(quiet: Quiet, quiet_url: str) -> None:
    assert execute(quiet_url, PROVED, timeout=0.5).status_code == 502
    with ThreadPoolExecutor() as pool:
        again = pool.submit(execute, quiet_url, PROVED, timeout=0.5)
        eventually(lambda: quiet.rows()["runs"] == 2)
        quiet.judge(first_run(quiet), 1, isolation="bwrap")
        assert nemo_status(again.result().json()) == "completed", again.result().text
    assert quiet.rows()["checks"] == 1


def first_run(quiet: Quiet) -> str:
    return str(quiet.ask("SELECT id FROM runs ORDER BY created_at LIMIT 1")[0])


#: The words that a worker stores may be any, those by which a client knows a timeout among them.
FAULTS = [{"box_error": "the disk timed out"}, {"environment_error": "Timed Out"}, {"signal": 9}]


@pytest.mark.parametrize("facts", FAULTS, ids=["box_failed", "bad_environment", "killed"])
def test_what_the_farm_failed_at_is_no_clients_failure(
    quiet: Quiet, quiet_url: str, facts: dict[str, object]
) -> None:
    with ThreadPoolExecutor() as pool:
        asked = [
            pool.submit(execute, quiet_url, PROVED),
            pool.submit(check, quiet_url, PROVED),
            pool.submit(run_code, quiet_url, PROVED),
        ]
        fail(quiet, runs=3, **facts)
        nemo, kimina, fusion = (each.result() for each in asked)
    assert (nemo.status_code, nemo.json()["process_status"]) == (502, "error")
    assert [kimina_status(each) for each in kimina] == ["server_error"]
    assert (fusion.status_code, fusion.json()["status"]) == (200, "SandboxError")


def test_a_proof_that_may_have_forged_its_verdict_is_neither_good_nor_bad(
    quiet: Quiet, quiet_url: str
) -> None:
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(execute, quiet_url, PROVED), pool.submit(check, quiet_url, PROVED)
        eventually(lambda: quiet.rows().get("jobs") == 2)
        quiet.judge(first_run(quiet), 1, isolation="rlimit")
        nemo, kimina = (each.result() for each in asked)
    assert nemo.status_code == 502
    assert [kimina_status(each) for each in kimina] == ["server_error"]


def fail(quiet: Quiet, *, runs: int, **facts: object) -> None:
    """Have the farm fail, for good, at what these runs ask."""
    eventually(lambda: quiet.rows().get("jobs") == runs)
    for check_id in quiet.ask("SELECT id FROM checks WHERE status = 'queued'"):
        assert finished(quiet.store, claimed(quiet.store, int(str(check_id))), **facts)


def test_what_a_client_waits_for_no_longer_is_given_up(quiet: Quiet, quiet_url: str) -> None:
    with pytest.raises(httpx.ReadTimeout):
        post(f"{quiet_url}/api/check", ADDRESSES["/api/check"], seconds=1)
    eventually(lambda: quiet.ask("SELECT id FROM runs WHERE deadline_at IS NOT NULL"))


# Kimina


def test_kimina_reads_every_sort_of_answer_in_one_batch(url: str) -> None:
    programs = [PROVED, WRONG, ADMITTED, HIDDEN, AXIOM, ENDLESS, LURES + AXIOM.removeprefix(HEADER)]
    statuses = [kimina_status(each) for each in check(url, *programs, timeout=3)]
    assert statuses == ["valid", "lean_error", "sorry", "sorry", "lean_error", "timeout_error", "lean_error"]


def test_kimina_finds_an_error_at_its_place_in_the_program(url: str) -> None:
    (result,) = check(url, WRONG)
    (message,) = result["response"]["messages"]
    assert (message["severity"], message["pos"]) == ("error", {"line": 5, "column": 2})
    assert message["endPos"] == {"line": 5, "column": 10}


def test_kimina_names_a_message_that_is_no_error_as_its_server_does(url: str) -> None:
    (result,) = check(url, HEADER + "#check Nat\n" + PROVED.removeprefix(HEADER))
    assert result["response"]["messages"] == [
        {
            "severity": "info",
            "pos": {"line": 3, "column": 0},
            "endPos": {"line": 3, "column": 6},
            "data": "Nat : Type",
        }
    ]


def test_snippets_that_are_wrong_keep_no_other_back(url: str) -> None:
    snippets = [
        {"id": "good", "code": PROVED},
        {"id": "number", "code": 5},
        {"id": "none"},
        "no snippet",
        None,
        {"id": "blank", "code": PROVED, "challenge": {"formal_statement": ""}},
        {"id": "empty", "code": ""},
        {"id": "\ud800", "code": "\ud800\0"},
        {"id": "good", "code": PROVED, "challenge": STATEMENT},
    ]
    answer = post(f"{url}/api/check", {"snippets": snippets})
    statuses = [kimina_status(each) for each in answer.json()["results"]]
    assert statuses == ["valid", *["lean_error"] * 7, "valid"]
    assert [each["id"] for each in answer.json()["results"]][7] == "\ud800"


@pytest.mark.parametrize("address", ["/verify", "/one_pass_verify_batch"])
def test_the_older_form_of_kimina_is_read(url: str, address: str) -> None:
    codes = [
        {"custom_id": 1, "proof": PROVED},
        {"custom_id": "b", "code": WRONG},
        {"custom_id": "c", "proof": ADMITTED, "code": None},
    ]
    said = {"timeout": 300, "infotree_type": None, "disable_cache": False}
    results = post(url + address, {"codes": codes, **said}).json()["results"]
    assert [(each["custom_id"], kimina_status(each)) for each in results] == [
        ("1", "valid"),
        ("b", "lean_error"),
        ("c", "sorry"),
    ]
    assert all(each["response"]["time"] > 0 for each in results)


@pytest.mark.parametrize("stated", [{"challenge": STATEMENT}, STATEMENT], ids=["challenge", "its fields"])
@pytest.mark.parametrize(("address", "field"), [("/api/check", "snippets"), ("/verify", "codes")])
def test_what_a_request_states_holds_for_every_program_that_states_nothing_itself(
    url: str, address: str, field: str, stated: dict[str, object]
) -> None:
    other = HEADER + "theorem u : True ∧ True := ⟨True.intro, True.intro⟩\n"
    own = {"header": HEADER, "formal_statement": "theorem u : True ∧ True := by"}
    programs = [
        {"code": PROVED},
        {"code": other},
        {"code": other, "challenge": None},
        {"code": other, "challenge": own},
        {"code": PROVED, **own},
    ]
    results = post(url + address, {field: programs, **stated}).json()["results"]
    statuses = [kimina_status(each) for each in results]
    assert statuses == ["valid", "lean_error", "lean_error", "valid", "lean_error"]


UNKNOWN_FIELDS = {
    "/execute": ["challange"],
    "/api/check": ["challange", "snippets.0.challange", "snippets.0.challenge.statement"],
    "/verify": ["challange", "codes.0.environment", "codes.0.id"],
    "/run_code": ["challange"],
}


@pytest.mark.parametrize(
    ("address", "path"), [(address, path) for address, paths in UNKNOWN_FIELDS.items() for path in paths]
)
def test_a_field_that_no_client_sends_is_refused_by_its_name(
    quiet: Quiet, quiet_url: str, address: str, path: str
) -> None:
    body = json.loads(json.dumps(ADDRESSES[address]))
    *way, name = [int(each) if each.isdigit() else each for each in path.split(".")]
    place = body
    for step in way:
        place = place.setdefault(step, dict(STATEMENT)) if isinstance(place, dict) else place[step]
    place[name] = STATEMENT
    answer = post(quiet_url + address, body, seconds=20)
    assert (answer.status_code, [each["loc"] for each in answer.json()["detail"]]) == (
        422,
        [["body", *way, name]],
    )
    assert "jobs" not in quiet.rows()


#: What the published clients send besides; it changes nothing.
SENT_FIELDS = {
    "/execute": {"std_input": "", "traceback_verbosity": "Plain", "session_id": None},
    "/api/check": {"debug": False, "reuse": True, "infotree": None},
    "/verify": {"infotree_type": "original", "disable_cache": True},
    "/run_code": {"stdin": "", "files": {}, "fetch_files": [], "memory_limit_MB": 1024},
}


@pytest.mark.parametrize("address", SENT_FIELDS)
def test_what_the_published_clients_send_besides_changes_nothing(url: str, address: str) -> None:
    body = {**ADDRESSES[address], **SENT_FIELDS[address], "timeout": 30}
    body |= {"run_timeout": body.pop("timeout")} if address == "/run_code" else {}
    assert post(url + address, body).status_code == 200


def test_clients_are_refused_before_anything_is_accepted_where_too_much_waits(
    quiet: Quiet, tmp_path: Path
) -> None:
    load(quiet.store, tmp_path / "waits.jsonl", {"name": "w", "predicted_proof": WRONG})
    before = quiet.rows()
    with listening(quiet.farm.having(FARM_QUEUE_LIMIT="1")) as url:
        kimina = post(f"{url}/api/check", {"snippets": [{"id": "a", "code": PROVED}] * 3})
        statuses = [execute(url, PROVED).status_code, run_code(url, PROVED).status_code]
    assert (kimina.status_code, statuses) == (429, [502, 504])
    assert kimina.headers["Retry-After"]
    assert quiet.rows() == before


def test_a_batch_of_thousands_of_snippets_is_answered_in_its_order(quiet: Quiet, quiet_url: str) -> None:
    programs = [f"{PROVED}-- {number % 100}" for number in range(2_000)]
    programs[1_000] = "\0"
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(check, quiet_url, *programs)
        eventually(lambda: quiet.rows().get("jobs") == len(programs), seconds=60)
        for run in quiet.ask("SELECT id FROM runs ORDER BY created_at"):
            quiet.judge(str(run), *range(1, 101), isolation="bwrap")
        results = answer.result()
    assert [each["id"] for each in results] == [str(number) for number in range(2_000)]
    statuses = [kimina_status(each) for each in results]
    assert statuses.pop(1_000) == "lean_error"
    assert set(statuses) == {"valid"}


# SandboxFusion


@pytest.mark.parametrize(
    ("program", "status"),
    [(PROVED, "Success"), *[(each, "Failed") for each in (WRONG, ADMITTED, HIDDEN, AXIOM)]],
)
def test_sandbox_fusion_reads_a_result(url: str, program: str, status: str) -> None:
    answer = run_code(url, program).json()
    assert (answer["status"], answer["compile_result"], answer["message"]) == (status, None, "")
    result = answer["run_result"]
    assert (result["status"], result["return_code"]) == ("Finished", int(status == "Failed"))
    assert result["execution_time"] > 0
    assert (result["stdout"] == "") == (status == "Success")


def test_sandbox_fusion_reads_a_timeout(url: str) -> None:
    answer = run_code(url, ENDLESS, run_timeout=1).json()
    result = answer["run_result"]
    assert (answer["status"], result["status"]) == ("Failed", "TimeLimitExceeded")
    assert result["return_code"] is None


def test_sandbox_fusion_is_told_what_is_not_run(url: str) -> None:
    for fields in ({"language": "python"}, {"files": {"a": ""}}, {"environment": "nowhere"}):
        answer = run_code(url, PROVED, **fields)
        assert (answer.status_code, answer.json()["status"]) == (400, "SandboxError")
        assert answer.json()["message"]


def test_sandbox_fusion_asks_again_what_was_not_judged(quiet_url: str) -> None:
    answer = run_code(quiet_url, PROVED, compile_timeout=0.5, run_timeout=0.5)
    assert (answer.status_code, answer.json()["status"]) == (504, "SandboxError")


# All three


def test_no_client_takes_a_deception_for_a_proof_and_every_honest_program_is_one(url: str) -> None:
    """Said with its challenge, for some programs are honest proofs of something else."""
    snippets = [
        {
            "id": case.name,
            "code": program_of(case),
            "challenge": {"header": HEADER, "formal_statement": case.statement} if case.statement else None,
        }
        for case in CASES
    ]
    results = post(f"{url}/api/check", {"snippets": snippets, "timeout": 60}).json()["results"]
    for case, snippet, result in zip(CASES, snippets, results, strict=True):
        program, stated = str(snippet["code"]), {"challenge": snippet["challenge"]}
        nemo = execute(url, program, timeout=60, **stated)
        fusion = run_code(url, program, run_timeout=60, **stated).json()
        assert (kimina_status(result) == "valid") == case.is_honest, (case.name, result)
        if nemo.status_code == 200 and not SORRY.search(program):
            assert (nemo_status(nemo.json()) == "completed") == case.is_honest, (case.name, nemo.json())
        assert nemo_status(nemo.json()) != "completed" or case.is_honest
        assert (fusion["status"] == "Success") == case.is_honest, (case.name, fusion)


#: Programs without a statement that are no proofs, and what Kimina's client makes of each.
_NOT_PROVED = {
    "an example that is admitted": ("set_option warn.sorry false in\nexample : 1 = 2 := sorry", "sorry"),
    "an unsafe example": ("unsafe example : (1 : Nat) = 2 := lcProof", "lean_error"),
    "an unsafe definition": ("unsafe def claimed : (1 : Nat) = 3 := lcProof", "lean_error"),
    "an example unchecked": (
        "set_option debug.skipKernelTC true in\nexample : 1 = 2 := by decide +kernel",
        "lean_error",
    ),
    "an open end": ("open Nat in", "lean_error"),
}


@pytest.mark.parametrize("name", _NOT_PROVED)
def test_a_program_alone_is_judged_with_all_that_it_declares(url: str, name: str) -> None:
    text, status = _NOT_PROVED[name]
    program = f"{PROVED}{text}\n"
    assert kimina_status(*check(url, program)) == status
    assert nemo_status(execute(url, program).json()) == ("has_sorry" if status == "sorry" else "failed")
    assert run_code(url, program).json()["status"] == "Failed"


def test_a_program_alone_may_have_examples(url: str) -> None:
    program = f"{PROVED}example : 1 = 1 := rfl\n"
    assert kimina_status(*check(url, program)) == "valid"
    assert nemo_status(execute(url, program).json()) == "completed"
    assert run_code(url, program).json()["status"] == "Success"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#check Nat", "Nat : Type"),
        ("#print axioms trivial", "'trivial' does not depend on any axioms"),
        ("#eval (1 : Nat)", ""),
        ("def two : Nat := 2\n#print axioms two", "'two' does not depend on any axioms"),
        ("", ""),
    ],
)
def test_a_program_without_a_theorem_has_nothing_to_prove(url: str, text: str, said: str) -> None:
    (result,) = check(url, f"{HEADER}{text}\n")
    messages = result["response"]["messages"]
    nemo, fusion = execute(url, f"{HEADER}{text}\n").json(), run_code(url, f"{HEADER}{text}\n").json()
    assert said in "".join(each["data"] for each in messages)
    assert said in nemo["stdout"]
    assert said in fusion["run_result"]["stdout"]
    assert (kimina_status(result), nemo_status(nemo), fusion["status"]) == ("lean_error", "failed", "Failed")
    if "#eval" not in text:  # which the embedded library cannot show
        assert [each["severity"] for each in messages].count("error") == 1
        assert "nothing to prove" in nemo["stdout"].lower()


# Who may


ADDRESSES = {
    "/execute": {"generated_code": PROVED, "language": "lean4", "timeout": 0.1},
    "/api/check": {"snippets": [{"id": "a", "code": PROVED}]},
    "/verify": {"codes": [{"custom_id": "a", "code": PROVED}]},
    "/run_code": {"code": PROVED, "language": "lean"},
}


@pytest.mark.parametrize("lacks", [{"scopes": frozenset({Scope.READ})}, {"classes": frozenset({"batch"})}])
def test_a_key_that_may_not_submit_so_gets_no_answer(quiet: Quiet, lacks: dict[str, Any]) -> None:
    with listening(quiet.farm, replace(LOCAL, **lacks)) as url:
        refused = {address: post(url + address, body).status_code for address, body in ADDRESSES.items()}
    assert refused == dict.fromkeys(ADDRESSES, 403)
    assert "jobs" not in quiet.rows()


def test_a_request_that_never_fits_is_refused_before_its_programs_are_read(
    quiet: Quiet, quiet_url: str
) -> None:
    with listening(quiet.farm, replace(LOCAL, in_flight=2)) as url:
        # The last one is refused as soon as it is read.
        odd = [{"id": "a", "code": PROVED}] * 2 + [{"id": "a", "code": PROVED, "chalenge": ""}]
        assert post(f"{url}/api/check", {"snippets": odd}).status_code == 413
    assert "jobs" not in quiet.rows()


@pytest.mark.parametrize(
    ("address", "place"),
    [
        *((each, ["body"]) for each in ("/execute", "/run_code", "/api/check")),
        ("/v1/batches", ["body"]),
        ("/v1/batches/none/cancel", ["body"]),
    ],
)
def test_very_many_unknown_fields_are_one_fault(quiet_url: str, address: str, place: list[str]) -> None:
    answer = post(quiet_url + address, {f"field {n}": n for n in range(1000)})
    assert answer.status_code == 422
    (fault,) = answer.json()["detail"]
    assert (fault["loc"], fault["type"]) == (place, "extra_forbidden")
    assert fault["msg"].startswith("the object has 1000 fields, and ")


def test_a_snippet_with_very_many_unknown_fields_is_no_failed_proof(quiet_url: str) -> None:
    snippet = {"id": "a", "code": PROVED} | {f"field {n}": n for n in range(1000)}
    answer = post(f"{quiet_url}/api/check", {"snippets": [snippet]})
    assert answer.status_code == 422
    assert [fault["loc"] for fault in answer.json()["detail"]] == [["body", "snippets", 0]]


def test_of_many_faults_the_first_hundred_are_told(quiet_url: str) -> None:
    answer = post(f"{quiet_url}/v1/batches", {"items": [{"program": 1}] * 130})
    assert answer.status_code == 422
    *faults, more = answer.json()["detail"]
    assert [fault["loc"][2] for fault in faults] == list(range(100))
    assert more["msg"] == "30 more faults are not listed; correct these first"


def test_a_key_that_may_not_submit_is_refused_before_its_body_is_there(quiet: Quiet) -> None:
    with listening(quiet.farm, replace(LOCAL, scopes=frozenset({Scope.READ}))) as url:
        for address in ("/v1/batches", "/v1/batches/none/cancel", *ADDRESSES):
            assert answer_to_head(url, address).startswith("HTTP/1.1 403 "), address


def test_a_body_that_does_not_come_is_not_waited_for_long(
    quiet_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farm.service.auth.middleware.SILENT_SECONDS", 0.2)
    assert answer_to_head(quiet_url, "/v1/batches").startswith("HTTP/1.1 408 ")


def test_a_body_that_comes_too_slowly_is_not_waited_for_long(
    quiet_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farm.service.auth.middleware.SILENT_SECONDS", 1.0)
    host = quiet_url.removeprefix("http://")
    with socket.create_connection(("127.0.0.1", int(host.split(":")[1])), timeout=20) as client:
        head = f"POST /v1/batches HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9000000\r\n"
        client.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode())
        for _ in range(9000):  # nine hundred seconds, never one of them silent
            if select.select([client], [], [], 0.1)[0]:
                break
            client.sendall(b" ")
        said = client.recv(4096).decode()
    assert said.startswith("HTTP/1.1 408 ")
    assert "connection: close" in said.lower()


def answer_to_head(url: str, address: str) -> str:
    """Send the head of a request and never its body; returns what is answered."""
    host = url.removeprefix("http://")
    with socket.create_connection(("127.0.0.1", int(host.split(":")[1])), timeout=20) as client:
        head = f"POST {address} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9000000\r\n"
        client.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode())
        return client.recv(4096).decode()


def test_a_client_that_cannot_send_a_token_has_it_in_its_address(quiet_url: str) -> None:
    body = ADDRESSES["/execute"]
    for user, status in ((f"farm:{TOKEN}", 502), ("farm:another", 401)):
        address = quiet_url.replace("//", f"//{user}@")
        assert post(f"{address}/execute", body).status_code == status


# What is refused at every address

TWICE = {
    "/v1/batches": ('{"items": [{"program": "x", "program": "y"}]}', ["items", 0, "program"]),
    "/v1/batches/none/cancel": ('{"items": null, "items": null}', ["items"]),
    "/execute": ('{"generated_code": "x", "language": "lean4", "generated_code": "y"}', ["generated_code"]),
    "/api/check": ('{"snippets": [{"id": "0", "code": "x", "code": "y"}]}', ["snippets", 0, "code"]),
    "/verify": ('{"codes": [{"proof": "x", "proof": "y"}]}', ["codes", 0, "proof"]),
    "/run_code": (
        '{"language": "lean", "code": "x", "challenge": {"header": "", "header": ""}}',
        ["challenge", "header"],
    ),
}


@pytest.mark.parametrize("address", TWICE)
def test_a_field_given_twice_is_refused_with_its_path(quiet_url: str, address: str) -> None:
    body, path = TWICE[address]
    answer = httpx.post(quiet_url + address, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["body", *path]
    assert "given twice" in answer.text


def test_a_challenge_that_does_not_compile_is_not_asked_again(url: str) -> None:
    broken = {"header": HEADER, "formal_statement": "theorem t (n : Nat : n = n := by"}
    answer = execute(url, PROVED, challenge=broken)
    assert (answer.status_code, answer.json()["process_status"]) == (400, "error")
    assert "statement" in answer.json()["stderr"]


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "application/x-www-form-urlencoded", ""])
def test_an_unknown_address_is_not_found_whatever_is_sent(quiet_url: str, kind: str) -> None:
    headers = {"Content-Type": kind} if kind else {}
    answer = httpx.post(f"{quiet_url}/v1/batchs", content=b"{}", headers=headers)
    assert (answer.status_code, "/openapi.json" in answer.json()["detail"]) == (404, True)
    assert (
        httpx.post(
            f"{quiet_url}/v1/batches", content=b"{}", headers={"Content-Type": "text/plain"}
        ).status_code
        == 415
    )
    assert httpx.post(f"{quiet_url}/v1/environments", content=b"{}", headers=headers).status_code == 405


def test_an_unknown_field_is_refused_with_the_one_that_was_meant(quiet_url: str) -> None:
    answer = post(f"{quiet_url}/v1/batches", {"items": [{"program": "x", "headr": ""}], "time_out": 3})
    told = {tuple(each["loc"]): each["msg"] for each in answer.json()["detail"]}
    assert "did you mean header?" in told["body", "items", 0, "headr"]
    assert "did you mean timeout?" in told["body", "time_out"]


def test_the_schema_names_tokens_and_the_forms_of_an_item_and_of_every_answer(quiet_url: str) -> None:
    schema = httpx.get(f"{quiet_url}/openapi.json", timeout=60 * PATIENCE).json()
    assert {each["scheme"] for each in schema["components"]["securitySchemes"].values()} == {
        "bearer",
        "basic",
    }
    assert schema["security"]
    assert schema["paths"]["/health"]["get"]["security"] == []
    assert len(schema["components"]["schemas"]["Item"]["oneOf"]) == 4
    for path, methods in schema["paths"].items():
        for said in methods.values():
            done = said["responses"].get("200") or said["responses"]["201"]
            contents = done["content"]
            contents.pop("text/event-stream", None)
            assert all(each.get("schema") for each in contents.values() if path != "/metrics"), path
