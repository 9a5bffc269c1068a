"""Sentences of theorems: which modules state the same, which the contrary, and which negations are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from farm_workers.audit import sentences
from farm_workers.audit.declarations import Module, opened_module
from farm_workers.audit.names import parsed
from farm_workers.audit.negation import negation_fault
from farm_workers.audit.sentences import Sentence, Sentences

from tests.oleans import Writer

#: Puts the type of a theorem into a file.
Type = Callable[[Writer], int]
IMPORTS, LEAN = ("Core",), (("propext",),)


def named(name: str) -> Type:
    return lambda writer: writer.const(name)


def not_(inner: Type) -> Type:
    return lambda writer: writer.app(writer.const("Not"), inner(writer))


def implies(inner: Type, then: str = "False", binder: str = "h") -> Type:
    return lambda writer: writer.bound(7, binder, inner(writer), writer.const(then))


def at(*levels: str) -> Type:
    """The constant P in these universes."""

    def put(writer: Writer) -> int:
        names = [writer.make(4, writer.name(each), scalars=bytes(8)) for each in levels]
        return writer.const("P", names)

    return put


def file(
    type_: Type,
    *,
    parameters: Sequence[str] = (),
    above: Callable[[Writer], None] | None = None,
    **more: object,
) -> bytes:
    """Return a module that proves a theorem t of this type."""
    writer = Writer()
    if above is not None:
        above(writer)
    writer.theorem("t", type_(writer), writer.const("proof"), parameters)
    imports = [writer.imported(each) for each in more.get("imports", IMPORTS)]  # type: ignore[attr-defined]
    return writer.module(imports)


def of(
    content: bytes, axioms: Sequence[str] = ("propext",), allowed: Sequence[str] = ("propext",)
) -> Sentence:
    with opened_module(content) as module:
        found = sentence(module, axioms, allowed)
        assert found
        return found


def sentence(module: Module, axioms: Sequence[str], allowed: Sequence[str]) -> Sentence | None:
    target = module.constant(("t",))
    assert target
    names = [parsed(each) for each in axioms], [parsed(each) for each in allowed]
    return Sentences(module).of(target, axioms=names[0], allowed=names[1], native=False)


P = named("P")


@pytest.mark.parametrize(
    ("type_", "negated"),
    [
        (P, False),
        (not_(P), True),
        (implies(P), True),
        (not_(not_(P)), False),
        (implies(not_(P)), False),
        (not_(implies(not_(P))), True),
    ],
)
def test_a_sentence_has_the_digest_below_all_negations(type_: Type, *, negated: bool) -> None:
    found = of(file(type_))
    assert (found.key, found.negated) == (of(file(P)).key, negated)


def defined(name: str, type_: str, value: str) -> Callable[[Writer], None]:
    return lambda writer: writer.definition(name, writer.const(type_), writer.const(value))


def declared_axiom(name: str, type_: str) -> Callable[[Writer], None]:
    return lambda writer: writer.axiom(name, writer.const(type_))


#: Modules that state something else than that P holds.
OTHERS = {
    "another constant": file(named("Q")),
    "a name in a namespace": file(named("A.P")),
    "an implication": file(implies(P, "True")),
    "a negation of something else": file(not_(named("Q"))),
    "another constant applied": file(lambda writer: writer.app(writer.const("Nope"), writer.const("P"))),
    "a universe": file(at("u"), parameters=("u",)),
    "a definition of its own": file(P, above=defined("P", "Prop", "True")),
    "a negation of its own": file(not_(P), above=defined("Not", "Prop", "True")),
    "falsity of its own": file(implies(P), above=defined("False", "Prop", "True")),
    "other imports": file(P, imports=("Core", "Other")),
    "no imports": file(P, imports=()),
}


@pytest.mark.parametrize("content", OTHERS.values(), ids=OTHERS)
def test_other_statements_have_other_digests(content: bytes) -> None:
    assert of(content).key != of(file(P)).key


def test_names_of_a_file_do_not_matter_and_their_contents_do() -> None:
    one = of(file(named("D"), above=defined("D", "Prop", "True")))
    assert one.key == of(file(named("E.f"), above=defined("E.f", "Prop", "True"))).key
    assert one.key != of(file(named("D"), above=defined("D", "Prop", "False"))).key
    assert one.key != of(file(named("D"), above=defined("D", "Type", "True"))).key


def test_universes_count_by_their_places() -> None:
    two = of(file(at("u", "v"), parameters=("u", "v"))).key
    assert two == of(file(at("a", "b"), parameters=("b", "a"))).key
    assert two != of(file(at("u", "u"), parameters=("u",))).key


def test_an_axiom_of_the_module_has_its_statement_with_it() -> None:
    uses = [
        of(file(P, above=declared_axiom("bad", type_)), ["bad", "propext"], ["bad"]).uses
        for type_ in ("A", "B")
    ]
    assert all(each[0].startswith("bad#") and each[1] == "propext" for each in uses)
    assert uses[0] != uses[1]
    assert of(file(P), ["bad"], ["bad"]).uses == ("bad",)  # an import has it


def test_a_statement_that_is_too_large_or_rests_on_a_sorry_has_no_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sentences, "_MOST_PARTS", 3)
    with opened_module(file(not_(not_(not_(P))))) as module:
        assert module.constant(("t",))
        left = module.olean.left
        assert sentence(module, ["propext"], ["propext"]) is None
        assert module.olean.left == left  # the audit goes on
    with opened_module(file(P)) as module:
        assert sentence(module, ["sorryAx"], ["propext"]) is None


def challenge(negation: Type, parameters: Sequence[str] = (), *, own: str = "") -> bytes:
    """Return a module with a theorem t, that P holds in the universes u and v, and one that denies it."""
    writer = Writer()
    if own:
        writer.definition(own, writer.const("Prop"), writer.const("True"))
    writer.theorem("t", at("u", "v")(writer), writer.const("sorryAx"), ("u", "v"))
    writer.theorem("negation", negation(writer), writer.const("sorryAx"), parameters)
    return writer.module()


#: Theorems that are not the negation, and whether the challenge declares a Not.
FAULTS: dict[str, tuple[Type, str]] = {
    "the statement itself": (at("u", "v"), ""),
    "its implication": (implies(at("u", "v")), ""),
    "a hypothesis": (lambda writer: writer.bound(7, "h", writer.const("H"), not_(at("u", "v"))(writer)), ""),
    "two negations": (not_(not_(at("u", "v"))), ""),
    "another constant": (not_(named("Q")), ""),
    "one universe": (not_(at("u", "u")), ""),
    "fewer universes": (not_(at("u")), ""),
    "no universes": (not_(P), ""),
    "a negation of its own": (not_(at("u", "v")), "Not"),
    "a negation of a namespace": (
        lambda writer: writer.app(writer.const("A.Not"), at("u", "v")(writer)),
        "",
    ),
}


@pytest.mark.parametrize(("negation", "own"), FAULTS.values(), ids=FAULTS)
def test_what_is_not_the_negation_of_the_statement_is_a_fault(negation: Type, own: str) -> None:
    with opened_module(challenge(negation, ("u", "v"), own=own)) as module:
        fault = negation_fault(module, ("negation",), ("t",))
        assert fault
        assert fault.word == "bad_challenge"


def test_the_negation_may_call_its_universes_as_it_likes() -> None:
    for levels in (("u", "v"), ("u_1", "u_2"), ("v", "u")):
        with opened_module(challenge(not_(at(*levels)), levels)) as module:
            assert negation_fault(module, ("negation",), ("t",)) is None
            assert negation_fault(module, ("negation",), ("t",), foreign={("Not",)}) is not None
            assert negation_fault(module, ("negation",), None) is not None
            assert negation_fault(module, ("negation",), ("negation",)) is not None
