"""Bad input: one message that names file, line, field and remedy, exit status 2, nothing stored or queued."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from farm.store.transitions import Store
from tests.commands import PROVED, Command, entry, lines, write
from tests.farms import CORE, Quiet

GOOD = json.dumps(entry(PROVED, 1)).encode() + b"\n"


@dataclass(frozen=True)
class Bad:
    """What stands after a good line in a manifest, and what the message must say of it."""

    content: bytes
    says: tuple[str, ...]


def line(**changes: object) -> bytes:
    made: dict[str, object] = {"header": "h", "formal_statement": "s", "generation": "g"} | changes
    return json.dumps({field: value for field, value in made.items() if value is not ...}).encode()


BAD_LINES = {
    "malformed JSON": Bad(b'{"name": "t"', ("malformed JSON", "one complete JSON object per line")),
    "two objects on a line": Bad(b"{} {}", ("malformed JSON", "one complete JSON object per line")),
    "an array": Bad(b"[1, 2]", ("not an object but an array", "write each line as one object")),
    "a number": Bad(b"17", ("not an object but a number", "write each line as one object")),
    "no statement": Bad(line(formal_statement=...), ('"formal_statement"', "missing", "give it as a string")),
    "no generation": Bad(line(generation=...), ('"generation"', "missing", "give it as a string")),
    "a generation of null": Bad(line(generation=None), ('"generation"', "null", "give it as a string")),
    "a number for a string": Bad(line(generation=7), ('"generation"', "a number", "write it as a string")),
    "a list for a proof": Bad(line(predicted_proof=["x"]), ('"predicted_proof"', "an array", "as a string")),
    "a name that is no string": Bad(line(name=7), ('"name"', "a number", "write it as a string")),
    "a group with a NUL": Bad(line(group="a\0"), ('"group"', "contains NUL", "give the line another group")),
    "half a surrogate pair in a group": Bad(line(group="\ud800"), ('"group"', "half a surrogate pair")),
    "a field given twice": Bad(b'{"name": "a", "name": "b"}', ('"name"', "given twice", "keep one")),
    "invalid UTF-8": Bad(b'{"name": "\xff"}', ("invalid UTF-8", "save the file as UTF-8")),
    "an unknown environment": Bad(line(environment="moon"), ('"environment"', "'moon'", "core")),
    "a negative timeout": Bad(line(timeout=-1), ('"timeout"', "-1", "give seconds, above 0")),
    "a timeout of zero": Bad(line(timeout=0), ('"timeout"', "0", "give seconds, above 0")),
    "a timeout in words": Bad(line(timeout="5 s"), ('"timeout"', "a string", "give seconds, above 0")),
    "a line of 50 MB": Bad(line(generation="x" * 50_000_000), ("longer than", "MiB", "shorten")),
}


def refused(quiet: Quiet, *arguments: object, says: tuple[str, ...]) -> None:
    """Check that a submit was refused in one message that says all this, and that it left nothing."""
    said = quiet.farm("submit", *arguments)
    assert said.returncode == 2, said.stderr
    assert said.stdout == ""
    (message,) = said.stderr.strip().split("\n")
    for words in says:
        assert words in message
    assert quiet.rows() == {}
    assert quiet.redis.dbsize() == 0


@pytest.mark.parametrize("what", BAD_LINES)
def test_a_bad_line_after_good_lines_and_files_is_named_and_nothing_is_stored(
    shared_quiet: Quiet, tmp_path: Path, what: str
) -> None:
    bad = BAD_LINES[what]
    good, mixed = tmp_path / "good.jsonl", tmp_path / "mixed.jsonl"
    good.write_bytes(GOOD)
    mixed.write_bytes(GOOD + b"\n" + bad.content + b"\n" + GOOD)
    refused(shared_quiet, good, mixed, says=(f"{mixed}:3: ", *bad.says))


def test_a_name_that_is_a_group_in_a_race_can_be_told_from_others(quiet: Quiet, tmp_path: Path) -> None:
    path = tmp_path / "race.jsonl"
    path.write_bytes(GOOD + line(name="a\0") + b"\n" + line(name="a\ufffd") + b"\n")
    says = (f"{path}:2: ", '"name"', "contains NUL", "give the line another group")
    refused(quiet, path, "--stop-on-first-proof", says=says)
    path.write_bytes(GOOD + line(name="a\0", group="a") + b"\n")
    assert quiet.farm("submit", path, "--stop-on-first-proof", "--no-wait").returncode == 0


@pytest.mark.newcomer
def test_the_wrong_lines_of_a_manifest_are_told_together(shared_quiet: Quiet, tmp_path: Path) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_bytes(b"\n".join([GOOD.strip(), line(generation=...), line(name=7), b"{", GOOD]))
    said = shared_quiet.farm("submit", path)
    assert (said.returncode, said.stdout) == (2, "")
    told = said.stderr.strip().split("\n")
    assert told[0].startswith(f'farm: {path}:2: field "generation": missing; give it')
    assert told[1].startswith(f'{path}:3: field "name": ')
    assert told[2].startswith(f"{path}:4: malformed JSON")
    assert len(told) == 3
    assert shared_quiet.rows() == {}


def test_lines_without_an_answer_are_rejected_when_asked_for_and_again_after_an_export(
    quiet: Quiet, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", MADE | {"generation": None}, {"formal_statement": "s"})
    refused(quiet, path, "--no-answer", "ignore", says=("--no-answer ignore", "error, reject"))
    for timeout in (30, 31):
        said = quiet.farm("submit", path, "--no-answer", "reject", "--timeout", timeout)
        assert said.returncode == 0, said.stderr
        assert [(each["farm"]["reason"], each["proof_status"]) for each in lines(path)] == [
            ("no_answer", "error")
        ] * 2


def test_the_last_of_a_thousand_lines_can_refuse_them_all(shared_quiet: Quiet, tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(GOOD * 999 + b"{")
    refused(shared_quiet, path, says=(f"{path}:1000: ", "malformed JSON"))


def test_encodings_that_are_not_read_are_named(shared_quiet: Quiet, tmp_path: Path) -> None:
    path = tmp_path / "marked.jsonl"
    path.write_bytes(GOOD.decode().encode("utf-16"))
    refused(shared_quiet, path, says=(f"{path}:1: ", "byte order mark", "save the file as UTF-8 without one"))
    path.write_bytes(GOOD.decode().encode("utf-16-le"))
    refused(shared_quiet, path, says=(f"{path}:1: ", "UTF-16LE", "iconv"))
    path.write_bytes(GOOD.replace(b"\n", b"\r") * 2)
    refused(shared_quiet, path, says=(f"{path}:1: ", "carriage return (CR) alone"))


def test_a_byte_order_mark_of_utf_8_is_taken_and_stays(quiet: Quiet, tmp_path: Path) -> None:
    path = tmp_path / "marked.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + line(generation=None))
    assert quiet.farm("submit", path, "--no-answer", "reject").returncode == 0
    content = path.read_bytes()
    assert content.startswith(b"\xef\xbb\xbf{")
    assert "proof_status" in json.loads(content.decode("utf-8-sig"))


@pytest.mark.parametrize("content", [b"", b"\n \n"], ids=["no byte", "blank lines"])
def test_a_file_without_a_line_is_named(shared_quiet: Quiet, tmp_path: Path, content: bytes) -> None:
    good, empty = tmp_path / "good.jsonl", tmp_path / "empty.jsonl"
    good.write_bytes(GOOD)
    empty.write_bytes(content)
    refused(shared_quiet, good, empty, says=(str(empty), "no line with content", "leave the file out"))


def test_a_folder_is_named_with_the_pattern_for_its_files(shared_quiet: Quiet, tmp_path: Path) -> None:
    refused(shared_quiet, tmp_path, says=(str(tmp_path), "is a folder", f"{tmp_path}/*.jsonl"))


def test_a_file_that_is_not_there_is_named(shared_quiet: Quiet, tmp_path: Path) -> None:
    good = tmp_path / "good.jsonl"
    good.write_bytes(GOOD)
    refused(
        shared_quiet, good, tmp_path / "none.jsonl", says=("none.jsonl", "no such file", "check the spelling")
    )


def test_a_pattern_that_matches_nothing_is_named(shared_quiet: Quiet, tmp_path: Path) -> None:
    refused(shared_quiet, tmp_path / "*.jsonl", says=("*.jsonl", "no file matches", "check the pattern"))


def test_a_compressed_file_that_is_cut_short_is_named(shared_quiet: Quiet, tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00")
    refused(shared_quiet, path, says=(str(path), "not a complete .gz file", "compress it again"))


def test_a_file_one_may_not_read_is_named(quiet: Quiet, tmp_path: Path) -> None:
    path = tmp_path / "secret.jsonl"
    path.write_bytes(GOOD)
    path.chmod(0)
    # Without the capability that lets root read everything, root is a user like others.
    as_others = ("setpriv", "--inh-caps=-all", "--bounding-set=-all") if os.geteuid() == 0 else ()
    with quiet.farm.started(tmp_path / "submit", "submit", path, prefix=as_others) as submit:
        assert submit.ended() == 2
        for words in (str(path), "cannot be read", "read permission"):
            assert words in submit.said
    assert quiet.rows() == {}


BAD_FLAGS = {
    "an unknown environment": (("--environment", "moon"), ("'moon'", "core")),
    "an unknown profile": (("--profile", "best"), ("best", "farm", "nemo-2025-11", "nemo-2025-08")),
    "an unknown mode": (("--extract-code-mode", "middle"), ("middle", "last", "first")),
    "a negative timeout": (("--timeout", "-1"), ("timeout", "-1", "above 0")),
    "a timeout of zero": (("--timeout", "0"), ("timeout", "0", "above 0")),
    "a timeout that is no number": (("--timeout", "nan"), ("timeout", "nan", "above 0")),
    "a timeout longer than any": (("--timeout", "1e9"), ("timeout", "1e+09", "at most")),
    "no memory": (("--memory-mib", "0"), ("memory", "0", "above 0")),
    "more memory than any": (("--memory-mib", "99999999"), ("memory", "99999999", "at most")),
    "an unknown tier": (("--tier", "best"), ("best", "kernel, audit, lean")),
    "a tier that there was once": (("--tier", "gold"), ("gold", "kernel, audit, lean")),
    "a rule that is to reject where the module decides": (
        ("--policy", "axiom=reject"),
        ("axiom=reject", "tier kernel", "only report", "--tier lean"),
    ),
    "an axiom without a name": (("--axiom", ""), ("axiom", "propext")),
    "an unknown rule": (("--policy", "axioms=off"), ("'axioms'", "axiom")),
    "an unknown action": (("--policy", "axiom=never"), ("axiom=never", "RULE=ACTION", "report")),
    "no statement where one is required": (
        ("--require-statement",),
        ("good.jsonl:1: ", '"formal_statement"', "has no statement", "without --require-statement"),
    ),
    "negative memory": (("--memory-mib", "-5"), ("memory", "-5", "above 0")),
}


@pytest.mark.parametrize("what", BAD_FLAGS)
def test_a_bad_option_is_named_and_nothing_is_stored(shared_quiet: Quiet, tmp_path: Path, what: str) -> None:
    flags, says = BAD_FLAGS[what]
    path = tmp_path / "good.jsonl"
    path.write_bytes(GOOD)
    refused(shared_quiet, path, *flags, says=says)


MADE = {"header": "h\n", "formal_statement": "theorem t : True := by sorry", "generation": "trivial"}


@pytest.mark.parametrize(
    ("tiers", "asked", "says"),
    [
        (("lean",), (), ("'old'", "the tier kernel", "checker", "--tier lean")),
        (("lean",), ("--tier", "audit"), ("'old'", "cannot be audited", "--tier lean")),
        (("audit", "lean"), (), ("'old'", "the tier kernel", "checker", "--tier audit")),
    ],
)
def test_a_tier_that_an_environment_cannot_give_is_refused_with_the_strongest_that_it_can(
    quiet: Quiet, tmp_path: Path, tiers: tuple[str, ...], asked: tuple[str, ...], says: tuple[str, ...]
) -> None:
    Store(quiet.engine).register([replace(CORE, name="old", tiers=tiers)])
    path = write(tmp_path / "good.jsonl", MADE)
    refused(quiet, path, "--environment", "old", *asked, says=says)
    told = ("submit", path, "--environment", "old", "--tier", tiers[0], "--no-wait")
    assert quiet.farm(*told).returncode == 0


def test_a_kernel_with_known_holes_is_named_unless_told_otherwise(quiet: Quiet, tmp_path: Path) -> None:
    Store(quiet.engine).register([replace(CORE, name="old", toolchain="Lean 4.32.0")])
    path = write(tmp_path / "good.jsonl", MADE)
    asked = (path, "--environment", "old", "--no-wait")
    refused(quiet, *asked, says=("4.32.0", "nested-parameters-unchecked", "--accept-advisories", "newer"))
    assert quiet.farm("submit", *asked, "--accept-advisories").returncode == 0


@pytest.mark.parametrize("arguments", [("submit",), ("submit", "x.jsonl", "--colour"), ("submitt",)])
def test_bad_usage_has_exit_status_2(farm: Command, arguments: tuple[str, ...]) -> None:
    said = farm(*arguments)
    assert said.returncode == 2
    assert said.stdout == ""
    assert "Usage" in said.stderr


@pytest.mark.parametrize("arguments", [("submit", "x.jsonl"), ("status",), ("down",), ("doctor",)])
def test_an_unknown_variable_is_named_with_the_nearest_there_is(
    farm: Command, arguments: tuple[str, ...]
) -> None:
    said = farm.having(FARM_HOMES="/x")(*arguments)
    assert said.returncode == 2
    assert "FARM_HOMES" in said.stderr
    assert "FARM_HOME?" in said.stderr


@pytest.mark.parametrize("words", ["nul \0 inside", "lone \ud800 surrogate"])
def test_text_that_lean_cannot_be_given_is_judged_and_not_refused(
    quiet: Quiet, tmp_path: Path, words: str
) -> None:
    made = {"name": "t", "header": "h\n", "formal_statement": "theorem t : True := by", "generation": words}
    path = write(tmp_path / "odd.jsonl", made)
    said = quiet.farm("submit", path)
    assert said.returncode == 0, said.stderr
    (judged,) = lines(path)
    assert (judged["farm"]["verdict"], judged["farm"]["reason"]) == ("rejected", "invalid_text")
    assert judged["proof_status"] == "error"
    assert judged["generation"] == words


@pytest.mark.parametrize(
    "url", ["postgresql://farm:hush@127.0.0.1:1/farm", "postgresql://farm:hush@/farm?host=/nowhere"]
)
def test_a_database_that_is_down_is_named_without_its_password(
    quiet: Quiet, tmp_path: Path, url: str
) -> None:
    path = write(tmp_path / "good.jsonl", entry(PROVED, 1))
    said = quiet.farm.having(FARM_DATABASE_URL=url)("submit", path)
    assert said.returncode == 1
    assert said.stdout == ""
    for words in ("PostgreSQL", "start it", "FARM_DATABASE_URL"):
        assert words in said.stderr
    assert "hush" not in said.stderr
    assert "Traceback" not in said.stderr
    assert quiet.redis.dbsize() == 0


@pytest.mark.parametrize("url", ["redis://:hush@127.0.0.1:1/0", "redis+socket:///nowhere/redis.sock"])
def test_a_redis_that_is_down_is_named_and_the_run_is_stored_all_the_same(
    quiet: Quiet, tmp_path: Path, url: str
) -> None:
    path = write(tmp_path / "good.jsonl", entry(PROVED, 1))
    said = quiet.farm.having(FARM_BROKER_URL=url)("submit", path, "--no-wait")
    assert said.returncode == 0, said.stderr
    for words in ("Redis", "start it", "FARM_BROKER_URL", "the run is stored"):
        assert words in said.stderr
    assert "hush" not in said.stderr
    assert "Traceback" not in said.stderr
    assert quiet.queries.tally(quiet.queries.run(None).id).statuses == {"queued": 1}


def test_a_database_without_tables_is_answered_with_what_makes_them(
    quiet: Quiet, empty_database_url: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "good.jsonl", entry(PROVED, 1))
    said = quiet.farm.having(FARM_DATABASE_URL=empty_database_url)("submit", path)
    assert said.returncode == 1
    assert "farm db upgrade" in said.stderr


def test_a_bad_manifest_is_refused_before_any_server_is_asked(tmp_path: Path) -> None:
    farm = Command({"FARM_HOME": str(tmp_path / "home")})
    said = farm("submit", tmp_path / "none.jsonl")
    assert said.returncode == 2
    assert not (tmp_path / "home").exists()
