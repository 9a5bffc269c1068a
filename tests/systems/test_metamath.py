"""Metamath through the judge, in boxes, with Debian's set.mm and metamath: only what is right is proved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.box.isolation import Isolation
from farm_workers.systems.metamath.environment import environment

from farm.errors import FarmError, SettingsError
from farm.judging.verdict import Reason, judge
from tests.metamath import DATABASES, LIMITS, Judging, check, judging

EXAMPLES = Path(__file__).parents[2] / "examples" / "metamath"
#: What nothing proves in set.mm, unless set theory is inconsistent.
FALSE = "no1 $p |- ( 2 + 2 ) = 5 $= ? $."
#: The proof of th1 in demo0.mm.
TH1 = (
    "tt tze tpl tt weq tt tt weq tt a2 tt tze tpl tt weq tt tze tpl tt weq tt tt weq wim tt a2 "
    "tt tze tpl tt tt a1 mp mp"
)
LETTERS = "CDEFGHIJKLMNOPQRST"


@pytest.fixture(scope="module")
def set_mm(isolation: Isolation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judging]:
    with judging(isolation, tmp_path_factory.mktemp("set"), "set.mm") as found:
        yield found


@pytest.fixture(scope="module")
def small(isolation: Isolation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judging]:
    with judging(isolation, tmp_path_factory.mktemp("small"), "demo0.mm") as found:
        yield found


@pytest.mark.newcomer
@pytest.mark.parametrize(
    ("statement", "proof"),
    [
        ("ok1 $p |- ( ph -> ph ) $= ? $.", "( id ) AB"),
        ("ok1 $p |- ( ph -> ph ) $= ? $.", "wph id"),
        ("${ ok1.1 $e |- ph $. ok1 $p |- ( ps -> ph ) $= ? $. $}", "wph wps ok1.1 a1i"),
        ("${ ok1.1 $e |- ph $. ok1 $p |- ( ps -> ph ) $= ? $. $}", "( a1i ) ABCD"),
        ("ok1 $p |- ( 2 + 2 ) = 4 $= ? $.", "( 2p2e4 ) A"),
        ("${ $d x ph $. ok1 $p |- ( ph -> A. x ph ) $= ? $. $}", "wph vx ax-5"),
        ("ok1 $p |- ( ph -> ph ) $= ? $.", "${ $d x y $. ok1 $p |- ( ph -> ph ) $= ( id ) AB $. $}"),
    ],
)
def test_what_is_right_is_proved_by_both(set_mm: Judging, statement: str, proof: str) -> None:
    report = set_mm.report(check(statement, proof))

    verdict = judge(report)
    assert verdict.reason is Reason.OK, verdict
    assert verdict.detail == "The farm's verifier and metamath accepted the proof."
    assert report.statement == "compared"


EXPLOITS = {
    "inactive hypothesis": "( mp2.1 ) A",
    "inactive hypothesis, normal": "mp2.1",
    "inactive hypothesis behind others": "( wph mp2.1 ) B",
    "itself": "no1",
    "itself, compressed": "( no1 ) A",
    "a theorem that is not there": "( nosuch ) A",
    "a wildcard": "*",
    "a wildcard for one letter": "( 2p2e? ) A",
    "another theorem": "( 2p2e4 ) A",
    "missing $d": "wph vx ax-5",
    "trailing partial number": "( 2p2e4 ) AU",
    "only a partial number": "( 2p2e4 ) Y",
    "a mark at the beginning": "( 2p2e4 ) ZA",
    "two marks": "( 2p2e4 ) AZZ",
    "a number out of range": "( 2p2e4 ) YYYYYYYYYYYYA",
    "a very long number": f"( 2p2e4 ) {'Y' * 100_000}A",
    "a gap": "?",
    "a gap among letters": "( 2p2e4 ) A?",
    "no proof": "",
    "an open list": "( 2p2e4",
    "letters in lower case": "( 2p2e4 ) a",
    "a comment": "( 2p2e4 ) $( A $) A $( ",
    "an inclusion": "$[ /etc/passwd $]",
    "an axiom": "cheat $. bad $a |- ( 2 + 2 ) = 5 $. last $p |- ( 2 + 2 ) = 5 $= bad",
    "an end of the block": "wph $. $} ${ bad $e |- ( 2 + 2 ) = 5 $.",
    "a hypothesis of its own": "${ no1.9 $e |- ( 2 + 2 ) = 5 $. no1 $p |- ( 2 + 2 ) = 5 $= no1.9 $. $}",
    "another statement": "no1 $p |- ( 2 + 2 ) = 4 $= ( 2p2e4 ) A $.",
    "a helper lemma": "help $p |- 1 = 2 $= ? $. no1 $p |- ( 2 + 2 ) = 5 $= help $.",
    "letters of another alphabet": "( 2p2e4 ) \u0391",
    "a space of another alphabet": "( 2p2e4\u00a0) A",
    "NUL": "( 2p2e4 ) A\x00",
    "half a pair": "( 2p2e4 ) A\ud800",
    "quotes": "\"id\" 'id' `id`",
    "a command": '\nverify proof *\n"touch /tmp/owned"\n',
    "an answer to a question": "I\nI\nexit",
    "huge": "2p2e4 " * 60_000,
    "a stack that stays": "2p2e4 " * 20_000,
    "a doubling bomb": "( wph wi ) AABZ" + "".join(2 * letter + "BZ" for letter in LETTERS),
}


@pytest.mark.parametrize("proof", EXPLOITS.values(), ids=EXPLOITS.keys())
def test_no_exploit_is_proved_or_told_as_a_failure_of_the_farm(set_mm: Judging, proof: str) -> None:
    verdict = set_mm.verdict(FALSE, proof)

    assert verdict.outcome in {"rejected", "timeout", "memory_limit"}, verdict
    assert "Lean" not in verdict.detail
    assert "module" not in verdict.detail


def test_the_judge_is_as_it_was_after_all_that(set_mm: Judging) -> None:
    set_mm.judge.require_sound(set_mm.environment)
    assert set_mm.judge.trial(set_mm.environment) == ()


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("no1 $p |- ( 2 + 2 ) = 5 $= ? $. last $p |- 1 = 1 $= ( no1 ) A $.", Reason.ERROR),
        ("cheat $a |- ( 2 + 2 ) = 5 $. no1 $p |- ( 2 + 2 ) = 5 $= cheat $.", Reason.ERROR),
        ("${ no1.9 $e |- ( 2 + 2 ) = 5 $. no1 $p |- ( 2 + 2 ) = 5 $= no1.9 $. $}", Reason.STATEMENT_MISMATCH),
        ("no1 $p |- ( 2 + 2 ) = 4 $= ( 2p2e4 ) A $.", Reason.STATEMENT_MISMATCH),
        ("no2 $p |- ( 2 + 2 ) = 5 $= ? $.", Reason.STATEMENT_MISMATCH),
    ],
)
def test_a_program_that_no_submit_makes_is_judged_all_the_same(
    set_mm: Judging, program: str, reason: Reason
) -> None:
    made = check(FALSE, "")
    (other,) = made.candidates
    asked = replace(made, candidates=(replace(other, program=program, submitted=()),))
    assert judge(set_mm.report(asked)).reason is reason


def test_a_statement_that_does_not_fit_the_database_is_no_failure_of_the_proof(set_mm: Judging) -> None:
    for statement in ("bad1 $p |- nosuch $= ? $.", "id $p |- ( ph -> ph ) $= ? $.", "t1 $p |- ph $= ? $."):
        verdict = set_mm.verdict(statement, "( id ) AB")
        assert verdict.reason is Reason.BAD_CHALLENGE, verdict
        assert "does not fit the database" in verdict.detail


def test_gaps_are_told_as_such(set_mm: Judging) -> None:
    assert set_mm.verdict(FALSE, "?").proof_status == "has_sorry"


def test_accepted_proofs_wait_for_metamath_together_and_hold_no_thread(set_mm: Judging) -> None:
    begun = [set_mm.begin(check("ok1 $p |- ( ph -> ph ) $= ? $.", "( id ) AB")) for _ in range(40)]

    futures = [each for each in begun if isinstance(each, Future)]
    assert len(futures) == 40
    assert {judge(each.result(300)).reason for each in futures} == {Reason.OK}


def test_one_that_metamath_rejects_does_not_take_the_others_along(set_mm: Judging) -> None:
    good = check("ok1 $p |- ( ph -> ph ) $= ? $.", "( id ) AB").program
    wrong = [good.replace("( id ) AB", "( 2p2e4 ) B"), good.replace("( id ) AB", "( nosuch ) A")]
    answers = [set_mm.judge.confirm(each, set_mm.environment) for each in (good, *wrong, good)]

    assert [each.result(300).accepted for each in answers] == [True, False, False, True]
    assert all(each.result().said for each in answers[1:3])


def test_a_block_that_metamath_cannot_read_is_found_by_halving_and_is_no_verdict(set_mm: Judging) -> None:
    good = check("ok1 $p |- ( ph -> ph ) $= ? $.", "( id ) AB").program
    bad = good.replace("|- ( ph -> ph )", "|- nosuch")
    answers = [set_mm.judge.confirm(each, set_mm.environment) for each in (good, bad, good)]

    assert [answers[0].result(300).accepted, answers[2].result(300).accepted] == [True, True]
    assert "could not read" in str(answers[1].exception(300))


def killer(folder: Path, how: str) -> str:
    """Write a `metamath` that does this when it is given a proof of `tt tze`; return its path."""
    script = folder / "metamath"
    script.write_text(
        "#!/bin/sh\n"
        f'if [ -e main.mm ] && grep -q "tt tze" main.mm; then {how}; fi\n'
        'exec /usr/bin/metamath "$@"\n'
    )
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("kill -SEGV $$", "box_failed"),
        ("exit 0", "box_failed"),
        ("echo Please answer I, S, or A:", "box_failed"),
    ],
)
def test_a_batch_with_one_that_kills_metamath_is_halved_until_that_is_alone(
    isolation: Isolation, tmp_path: Path, how: str, told: str
) -> None:
    with judging(isolation, tmp_path, "demo0.mm", metamath=killer(tmp_path, how)) as found:
        bad = check("ok1 $p |- t = t $= ? $.", TH1)
        good = check("ok2 $p wff t = t $= ? $.", "tt tt weq")
        reports = [found.begin(each) for each in (good, bad, good)]
        verdicts = [judge(each.result(300) if isinstance(each, Future) else each) for each in reports]

    assert [verdict.reason for verdict in verdicts] == ["ok", told, "ok"], verdicts


def test_a_metamath_that_accepts_everything_or_nothing_serves_no_environment(
    isolation: Isolation, tmp_path: Path
) -> None:
    script = tmp_path / "metamath"
    for said in ("?Error", ""):
        script.write_text(
            "#!/bin/sh\n"
            'for word in "$@"; do echo "MM> $word"; case "$word" in\n'
            "read*) echo 'No errors were found.  However, proofs were not checked.';;\n"
            f'verify*) echo "${{word#verify proof }} "; [ -z "{said}" ] || echo "{said}";;\n'
            "exit) [ $# -gt 1 ] || echo 'Metamath - Version 9 of a test';; esac; done\n"
        )
        script.chmod(0o755)
        with (
            pytest.raises((FarmError, SettingsError), match=r"right came out|was not rejected|version"),
            judging(isolation, tmp_path, "demo0.mm", metamath=str(script)) as found,
        ):
            found.judge.require_sound(found.environment)


@pytest.mark.parametrize(
    "database", ["demo0.mm", "hol.mm", "nf.mm", "ql.mm", "iset.mm", "miu.mm", "peano.mm"]
)
def test_databases_of_other_systems_are_sound_environments(
    isolation: Isolation, tmp_path: Path, database: str
) -> None:
    with judging(isolation, tmp_path, database) as found:
        found.judge.require_sound(found.environment)


def test_a_database_that_cannot_be_read_is_told_with_its_fault(isolation: Isolation, tmp_path: Path) -> None:
    file = tmp_path / "broken.mm"
    for text, told in (("$c a $. $c a $.", "declared twice"), ("$[ other.mm $]", "write one file")):
        file.write_text(text)
        with judging(isolation, tmp_path, file) as found, pytest.raises(FarmError, match=told):
            found.judge.require_sound(found.environment)


def test_the_digest_is_of_the_content_and_not_of_the_place(tmp_path: Path) -> None:
    digests = []
    for number, content in enumerate(("$c a $.", "$c a $.", "$c b $.")):
        file = tmp_path / str(number) / "base.mm"
        file.parent.mkdir()
        file.write_text(content)
        digests.append(environment("here", {"database": str(file)}, tmp_path).digest)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"database": "/nosuch.mm"}, "not the absolute path"),
        ({"database": "set.mm"}, "not the absolute path"),
        ({}, "database: must be a string"),
        ({"database": str(DATABASES / "demo0.mm"), "metamth": "/x"}, "did you mean metamath"),
        ({"database": str(DATABASES / "demo0.mm"), "metamath": "/bin/true"}, "does not say its version"),
        ({"database": str(DATABASES / "demo0.mm"), "metamath": "/etc/passwd"}, "is not a program"),
    ],
)
def test_a_table_that_is_wrong_is_told_with_the_key(tmp_path: Path, table: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        environment("here", table, tmp_path)


def test_the_examples_come_out_as_the_page_says(set_mm: Judging) -> None:
    lines = [json.loads(line) for line in (EXAMPLES / "mini.jsonl").read_text().splitlines()]
    found = {
        line["name"]: set_mm.verdict(line["formal_statement"], line["generation"], fenced=False).reason
        for line in lines
    }
    assert found == {
        "mini-id": "ok", "mini-two": "ok", "mini-sum": "ok", "mini-wrong": "error", "mini-gap": "has_sorry",
    }  # fmt: skip


def test_limits_hold_for_a_proof(small: Judging) -> None:
    asked = check("ok2 $p wff t = t $= ? $.", "tt tt weq", limits=replace(LIMITS, wall_seconds=1e-4))
    assert judge(small.report(asked)).outcome in {"timeout", "proved"}
