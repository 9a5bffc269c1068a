"""The verifier of Metamath proofs on a small database: it accepts what the language allows."""

from __future__ import annotations

import pytest
from farm_workers.systems.metamath.block import examine
from farm_workers.systems.metamath.database import Database, MalformedText
from farm_workers.systems.metamath.proof import Size

BASE = """
$c ( ) -> wff |- set A. $.
$v ph ps ch x y z $.
wph $f wff ph $.  wps $f wff ps $.  wch $f wff ch $.
vx $f set x $.  vy $f set y $.  vz $f set z $.
wi $a wff ( ph -> ps ) $.
wal $a wff A. x ph $.
${ mp.1 $e |- ph $.  mp.2 $e |- ( ph -> ps ) $.  ax-mp $a |- ps $. $}
ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
ax-2 $a |- ( ( ph -> ( ps -> ch ) ) -> ( ( ph -> ps ) -> ( ph -> ch ) ) ) $.
${ $d x ph $.  ax-5 $a |- ( ph -> A. x ph ) $. $}
${ $d x y $.  two $a |- ( A. x ph -> A. y ph ) $. $}
${ open.1 $e |- ph $.  open $p |- ( ps -> ph ) $= ? $. $}
leans $p |- ( ps -> ( ph -> ph ) ) $= wph wph wi wps wph open $.
"""
PP = "wph wph wi"
ID = (
    f"wph {PP} wi {PP} wph wph ax-1 wph {PP} wph wi wi wph {PP} wi {PP} wi wph {PP} ax-1 wph {PP} wph ax-2 "
    "ax-mp ax-mp"
)
STATED = "id1 $p |- ( ph -> ph ) $= {} $."
COMPRESSED = "( wi ax-1 ax-2 ax-mp ) AAABZBZFAACAFABBGFBAFCAFADEE"


def found(text: str, challenge: str | None = None, size: Size | None = None) -> str:
    return str(examine(Database(BASE), text, challenge, size)["found"])


def said(text: str, challenge: str | None = None) -> str:
    return str(examine(Database(BASE), text, challenge).get("message"))


def block(proof: str, *, within: str = "") -> str:
    return f"${{ {within} t1.1 $e |- ph $. t1 $p |- ( ps -> ph ) $= {proof} $. $}}"


GOOD = "wph wps wph wi t1.1 wph wps ax-1 ax-mp"


@pytest.mark.parametrize("proof", [ID, COMPRESSED, COMPRESSED.replace("AAAB", "A A\nAB"), f"$( why $) {ID}"])
def test_a_right_proof_is_accepted(proof: str) -> None:
    assert found(STATED.format(proof)) == "accepted"


@pytest.mark.parametrize("proof", [GOOD, "( wi ax-1 ax-mp ) ABADCABEF"])
def test_a_right_proof_from_a_hypothesis_is_accepted(proof: str) -> None:
    assert found(block(proof)) == "accepted"


@pytest.mark.parametrize(
    ("proof", "why"),
    [
        ("wph wps wi mp.1", "neither an active hypothesis"),
        ("( mp.1 ) A", "neither an active hypothesis"),
        ("( mp.2 mp.1 wi ) ABADC", "neither an active hypothesis"),
        ("t1", "neither an active hypothesis"),
        ("( t1 ) C", "neither an active hypothesis"),
        ("nosuch", "neither an active hypothesis"),
        ("*", "neither an active hypothesis"),
        ("( ax-1 * ) D", "neither an active hypothesis"),
        ("( wps ax-1 ) D", "mandatory hypothesis"),
        ("( wi ax-1 ax-mp", "not closed"),
        ("( wi ax-1 ax-mp )", "not a list of numbers"),
        ("( wi ax-1 ax-mp ) ABADCABEFU", "not a list of numbers"),
        ("( wi ax-1 ax-mp ) ABADCABEF0", "not a list of numbers"),
        ("( wi ax-1 ax-mp ) ABADCABEf", "not a list of numbers"),
        ("( wi ax-1 ax-mp ) ZABADCABEF", "not a list of numbers"),
        ("( wi ax-1 ax-mp ) ABADZZCABEF", "not a list of numbers"),
        ("( wi ax-1 ax-mp ) AZBADCABEF", "marks a step"),
        ("( wi ax-1 ax-mp ) ABADCABET", "stands for no step"),
        (f"( wi ax-1 ax-mp ) {'Y' * 50_000}A", "stands for no step"),
        ("( wi ax-1 ax-mp ) ABADCABE", "in place of one"),
        ("( wi ax-1 ax-mp ) ABADCABEFA", "in place of one"),
        ("( wi ax-1 ax-mp ) F", "more hypotheses than"),
        ("( wi ax-1 ax-mp ) ABADCBAEF", "does not match"),
        ("vx wps wi", "another type"),
        ("t1.1", "another statement"),
        ("wps", "another statement"),
        ("", "empty"),
    ],
)  # fmt: skip
def test_a_wrong_proof_is_rejected(proof: str, why: str) -> None:
    told = examine(Database(BASE), block(proof), None)

    assert told["found"] == "wrong"
    assert why in told["message"]


@pytest.mark.parametrize(
    "proof", ["?", "wph ? ax-1", "( wi ? ) A", "( wi ) AB?", "t1.1 wph wps open", "leans"]
)
def test_a_gap_is_no_proof_wherever_it_is(proof: str) -> None:
    assert found(block(proof)) == "incomplete"


def test_a_theorem_that_rests_on_a_gap_is_not_proved() -> None:
    database = Database(BASE)

    assert not database.frames["open"].is_proved
    assert not database.frames["leans"].is_proved
    assert database.frames["ax-mp"].is_proved


def test_variables_must_be_set_apart() -> None:
    proof = "wph vx ax-5"
    assert found(f"t1 $p |- ( ph -> A. x ph ) $= {proof} $.") == "wrong"
    assert found(f"${{ $d x ph $. t1 $p |- ( ph -> A. x ph ) $= {proof} $. $}}") == "accepted"
    assert found("t1 $p |- ( A. x ph -> A. x ph ) $= wph vx vx two $.") == "wrong"


def test_dummy_variables_must_be_set_apart_too() -> None:
    # z does not occur in what is stated, and is put for y where x and y must be distinct.
    within = "w $e |- ( A. z ph -> ps ) $."
    text = "t1 $p |- ( A. x ph -> A. z ph ) $= wph vx vz two $."
    assert found(text) == "wrong"
    assert found(f"${{ $d x z $. {text} $}}") == "accepted"
    assert (
        found(f"${{ {within} $d x z $. u1 $p |- ( A. x ph -> A. z ph ) $= wph vx vz two $. $}}") == "accepted"
    )


def test_what_stands_behind_the_theorem_is_not_active_in_it() -> None:
    text = "${ t1.1 $e |- ph $. t1 $p |- ( ps -> ph ) $= late $. late $e |- ( ps -> ph ) $. $}"
    assert found(text) == "wrong"
    outside = "t1 $p |- ph $= late $. late $e |- ph $."
    assert found(outside) == "wrong"


@pytest.mark.parametrize(
    "text",
    [
        "cheat $a |- ph $. t1 $p |- ph $= wph cheat $.",
        "lemma $p |- ph $= ? $. t1 $p |- ph $= wph lemma $.",
        "$c new $. t1 $p |- ph $= ? $.",
        "$v new $. t1 $p |- ph $= ? $.",
        "new $f wff ph $. t1 $p |- ph $= ? $.",
        "$[ /etc/passwd $] t1 $p |- ph $= ? $.",
        "ax-1 $p |- ph $= wph $.",
        "wph $p |- ph $= wph $.",
        "ph $p |- ph $= wph $.",
        "${ t1.1 $e |- ph $. t1.1 $p |- ph $= t1.1 $. $}",
        "${ t1 $p |- ph $= ? $.",
        "t1 $p |- ph $= ? $. $}",
        "$} t1 $p |- ph $= ? $. ${",
        "t1 $p |- ph $= wph",
        "t1 $p |- ph $.",
        "t1 $p |- new $= ? $.",
        "t1 $p ph $= wph $.",
        "$p |- ph $= wph $.",
        "t1 $p |- ph $= wph $. $( open",
        "$( a $( b $) c $) t1 $p |- ph $= wph $.",
        "t1 $p |- ph $= wph$.",
        "t1$p |- ph $= wph $.",
        "t1 $p |- ph $=wph $.",
        "t1 $p |- ph $= wph $= wph $.",
        "t1 $p |- ph $= wph\x00 $.",
        "t1 $p |- ph $= wph\u00a0 $.",
        "t1 $p |- ph $= wph\x0b $.",
        "",
        "t*1 $p |- ph $= wph $.",
    ],
)
def test_what_is_no_block_with_one_theorem_is_refused(text: str) -> None:
    assert found(text) == "wrong"


def test_the_theorem_must_be_the_one_that_is_to_be_proved() -> None:
    challenge = block("?")
    assert found(block(GOOD), challenge) == "accepted"
    assert found(f"${{ $d ph ps $. {block(GOOD)} $}}", challenge) == "mismatch"
    assert "hypotheses" in said(block("t1.1").replace("e |- ph", "e |- ps"), challenge)
    assert "something else" in said(block(GOOD).replace("( ps -> ph )", "ph"), challenge)
    assert "is to be proved" in said(block(GOOD).replace("t1 $p", "t2 $p"), challenge)
    extra = "${ t1.0 $e |- ( ps -> ph ) $. t1.1 $e |- ph $. t1 $p |- ( ps -> ph ) $= t1.0 $. $}"
    assert found(extra) == "accepted"
    assert found(extra, challenge) == "mismatch"
    assert found(block(GOOD), "t1 $p |- nothing $= ? $.") == "bad_challenge"


def test_conditions_on_dummy_variables_alone_leave_the_statement_as_it_is() -> None:
    challenge = "t1 $p |- ( ph -> ph ) $= ? $."
    assert found(f"${{ $d x y z $. t1 $p |- ( ph -> ph ) $= {ID} $. $}}", challenge) == "accepted"
    assert found(f"${{ $d x ph $. t1 $p |- ( ph -> ph ) $= {ID} $. $}}", challenge) == "accepted"


def test_a_check_leaves_nothing_behind() -> None:
    database = Database(BASE)
    for _ in range(2):
        assert examine(database, block(GOOD), block("?"))["found"] == "accepted"
    assert "t1" not in database.frames
    assert not database.is_hypothesis("t1.1")
    assert examine(database, "u1 $p |- ( ps -> ph ) $= wph wps t1 $.", None)["found"] == "wrong"


def bomb(levels: int) -> str:
    """Return a short proof whose expressions double in length at every step."""
    saved = "".join(2 * letter + "BZ" for letter in "CDEFGHIJKLMNOPQRS"[:levels])
    return f"b1 $p |- ph $= ( wi ) AABZ{saved} $."


def test_a_proof_that_grows_ends_by_its_size_and_not_by_a_clock() -> None:
    assert examine(Database(BASE), bomb(17), None, Size(step_symbols=10_000)) == {
        "found": "limit",
        "limit": "memory",
    }
    assert examine(Database(BASE), bomb(17), None, Size(symbols=10_000)) == {
        "found": "limit",
        "limit": "memory",
    }
    assert examine(Database(BASE), bomb(17), None)["limit"] == "memory"
    assert examine(Database(BASE), bomb(3), None)["found"] == "wrong"
    assert examine(Database(BASE), block("t1.1 " * 50), None, Size(steps=49)) == {
        "found": "limit",
        "limit": "time",
    }


@pytest.mark.parametrize(
    "text",
    [
        "$c a $. $v a $.",
        "$v a a $.",
        "$c $.",
        "$c a",
        "$v x $. ${ $v x $. $}",
        "${ $c a $. $}",
        "$d x y $.",
        "$c a $. $v x $. $d x $.",
        "$c a $. $v x $. $d x a $.",
        "$c a $. $v x $. $d x x $.",
        "$c a $. $v x $. f1 $f a x $. f2 $f a x $.",
        "$c a $. $v x $. e1 $e a x $.",
        "$c a $. $v x $. f1 $f x a $.",
        "$c a $. ${ $v x $. $} b $a a x $.",
        "$c a $. a1 $a a $. a1 $a a $.",
        "$c a $. a $a a $.",
        "a1 $a b $.",
        "$c a $. a1 $a a $. $c a1 $.",
        "$c a $. a1 $a a $= ? $.",
        "$c a $. a1 $p a $.",
        "lone $c a $.",
        "$c a $. a1 $a $.",
        "é",
        "$c a $. $v x $. ${ f1 $f a x $. $} b $a a x $.",
    ],
)
def test_a_database_that_breaks_the_language_is_refused(text: str) -> None:
    with pytest.raises(MalformedText):
        Database(text)


def test_a_hypothesis_of_a_closed_block_may_not_be_used_but_its_label_stays_taken() -> None:
    text = "$c a |- $. ${ e1 $e |- a $. $} t1 $p |- a $= e1 $."
    proofs: list[str] = []
    database = Database(text, lambda theorem: proofs.extend(theorem.active))

    assert proofs == []
    assert database.is_hypothesis("e1")
    with pytest.raises(MalformedText, match="declared twice"):
        Database(text.replace("t1 $p", "e1 $p"))
