"""Standings of declarations in modules that Lean would never write, and in very large ones."""

from __future__ import annotations

import json
from functools import partial

import pytest
from farm_workers.audit.audit import Rules, audit_all
from farm_workers.audit.declarations import opened_module
from farm_workers.audit.kernel import SORRY
from farm_workers.audit.names import parsed
from farm_workers.audit.parts import with_standings
from farm_workers.audit.standing import permits

from tests.bench.audit import library
from tests.counted import assert_linear, calls
from tests.oleans import Writer, box


def told(file: bytes, **rules: object) -> dict[str, object]:
    """Return the facts of an audit with a list of declarations."""
    with opened_module(file) as module:
        given = Rules(
            is_imported=lambda name: name not in module.names,
            is_imported_axiom=lambda name: name == SORRY,
            **rules,  # type: ignore[arg-type]
        )
        found = with_standings(audit_all(module, given), module, None, given, ends=None, lists=True)
        return found.facts()


def verdicts(facts: dict[str, object]) -> dict[str, tuple[str, list[str]]]:
    listed = facts["declarations"]
    assert isinstance(listed, list)
    return {each["name"]: (each["verdict"], each["rests_on"]) for each in listed}


def placed(writer: Writer, *names: str) -> list[int]:
    """Return the extension entries with a place for each of these declarations, in this order."""
    entries = []
    for line, name in enumerate(names, 1):
        at = writer.make(0, box(line), box(0))
        whole = writer.make(0, writer.make(0, at, box(0), at, box(0)), writer.make(0, at, box(0), at, box(0)))
        entries.append(writer.make(0, writer.name(name), whole))
    return [writer.make(0, writer.name("Lean.declRangeExt"), writer.array(entries))]


def test_theorems_that_rest_on_each_other_rest_on_the_same_sorries() -> None:
    writer = Writer()
    prop = writer.prop()
    writer.theorem("open", prop, writer.const("sorryAx"))
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        writer.theorem(
            name, prop, writer.app(writer.const(other), writer.const("open" if name == "b" else "d"))
        )
    writer.theorem("d", prop, writer.const("d"))
    writer.theorem("above", prop, writer.const("c"))
    facts = told(
        writer.module(entries=placed(writer, "open", "a", "b", "c", "d", "above")), permitted=["open"]
    )
    assert verdicts(facts) == {
        "open": ("open", []),
        **{name: ("rests_on_open", ["open"]) for name in ("a", "b", "c", "above")},
        "d": ("proved", []),  # the kernel refuses it, after which it is unchecked
    }


def test_a_list_is_bounded_and_what_it_leaves_off_is_counted() -> None:
    writer = Writer()
    prop, sorry = writer.prop(), writer.const("sorryAx")
    names = [f"{'é»' * (150 if number < 600 else 1)}{number}" for number in range(2000)]
    before = writer.const("True")
    for number, name in enumerate(names):
        writer.theorem(name, prop, writer.app(before, sorry if number % 50 == 0 else prop))
        before = writer.const(name)
    facts = told(writer.module(entries=placed(writer, *names)), permitted=["*"])
    listed = facts["declarations"]
    assert isinstance(listed, list)
    assert facts["declarations_left_off"] == len(names) - len(listed)
    assert 0 < len(listed) <= 500
    assert len(json.dumps(facts)) < 2 << 20


def test_more_sorries_than_have_a_name_of_their_own_are_still_sorries() -> None:
    writer = Writer()
    prop, sorry = writer.prop(), writer.const("sorryAx")
    for number in range(1500):
        writer.theorem(f"open{number}", prop, sorry)
    writer.theorem("first", prop, writer.const("open0"))
    writer.theorem("last", prop, writer.const("open1499"))
    found = verdicts(told(writer.module(entries=placed(writer, "first", "last")), permitted=["*"]))
    assert (found["first"], found["last"]) == (("rests_on_open", ["open0"]), ("rests_on_open", []))


def test_terms_that_declarations_share_are_read_once() -> None:
    def sharing(size: int, theorems: int) -> bytes:
        writer = Writer()
        prop = writer.prop()
        big = writer.const("True")
        for _ in range(size):
            big = writer.app(big, prop)
        names = [f"t{number}" for number in range(theorems)]
        for name in names:
            writer.theorem(name, prop, big)
        return writer.module(entries=placed(writer, *names))

    large, small = (sharing(size, 200) for size in (3000, 10))
    found = verdicts(told(large))
    assert len(found) == 200
    # Each theorem that read the term for itself would need its 3 000 parts.
    assert calls(lambda: told(large)).total() - calls(lambda: told(small)).total() < 200 * 3000
    assert all(each == ("proved", []) for each in found.values())


@pytest.mark.parametrize("wrong", ["entry", "place", "number"])
def test_places_that_lean_does_not_write_are_left_out(wrong: str) -> None:
    writer = Writer()
    writer.theorem("t", writer.prop(), writer.const("sorryAx"))
    at = writer.make(0, writer.big(1 << 70) if wrong == "number" else box(1), box(0))
    inner = writer.make(0, at, box(0), at, box(0)) if wrong != "place" else at
    entry = writer.make(0, writer.name("t"), writer.make(0, inner, inner)) if wrong != "entry" else at
    entries = [writer.make(0, writer.name("Lean.declRangeExt"), writer.array([entry]))]
    (found,) = told(writer.module(entries=entries), permitted=["*"])["declarations"]  # type: ignore[misc, attr-defined]
    assert (found["verdict"], found["line"], found["column"]) == ("open", None, None)


def test_a_library_is_listed_with_work_that_grows_with_it() -> None:
    assert_linear(lambda size: partial(told, library(size)), 100, timed=2000)
    facts = told(library(50))
    assert (facts["declarations"], facts["declarations_left_off"]) == ([], 0)  # nothing has a place


@pytest.mark.parametrize(
    ("permitted", "name", "expected"),
    [
        ([], "a", False),
        (["*"], "a", True),
        (["a"], "a", True),
        (["a"], "b", False),
        (["a"], "a.b", False),
        (["a"], "a._proof_1", True),
        (["a"], "a.match_1", True),
        (["a"], "a._unary.1", True),
        (["a"], "a.lemma._proof_1", False),
        (["a.lemma"], "a.lemma._proof_1", True),
        (["a"], "_private.Program.0.a", True),
        (["a"], "_private.Program.0.b.a", False),
        (["«a b».c"], "«a b».c", True),
        (["a.1"], "a.«1»", False),
        (["«»"], "«»", True),
        ([""], "[anonymous]", False),
    ],
)
def test_a_permitted_name_is_that_of_a_declaration_and_of_what_lean_makes_of_it(
    permitted: list[str], name: str, expected: bool
) -> None:
    assert permits(permitted, parsed(name)) is expected
