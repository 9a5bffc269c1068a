"""The reader of compiled modules against files that Lean would never write: it refuses, and nothing else."""

from __future__ import annotations

import random
import resource
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from farm_workers.audit.audit import Rules, audit, left_open
from farm_workers.audit.declarations import ConstantKind, opened_module
from farm_workers.audit.extensions import influence
from farm_workers.audit.findings import Findings, Word
from farm_workers.audit.kernel import PRIMITIVES
from farm_workers.audit.names import dotted, parsed
from farm_workers.audit.olean import DEEPEST_NAME, LONGEST_PART, MalformedOlean, opened
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.oleans import BASE, CONSTRUCTOR, HEADER, INDUCTIVE, NOTHING, QUOTIENT, RECURSOR, Writer, box

#: Written by Lean 4.35.0 from the text beside it; its one theorem rests on an axiom.
REAL = (Path(__file__).with_name("olean") / "Real.olean").read_bytes()
GOAL = ("goal",)


def audited(
    data: bytes, challenge: bytes | None = None, budget: int = 1_000_000, **tests: object
) -> Findings:
    rules = Rules(**tests)  # type: ignore[arg-type]
    with opened_module(data, budget) as submission:
        if challenge is None:
            return audit(submission, None, GOAL, rules)
        with opened_module(challenge, budget) as other:
            return audit(submission, other, GOAL, rules)


def words(findings: Findings) -> list[str]:
    return [each.word.value for each in findings.findings]


def proof(type_: Callable[[Writer], int], value: Callable[[Writer], int] = Writer.prop) -> bytes:
    """Return a module with one theorem."""
    writer = Writer()
    writer.theorem("goal", type_(writer), value(writer))
    return writer.module()


def refused(data: bytes, what: str | None = None, budget: int = 1_000_000) -> None:
    with pytest.raises(MalformedOlean, match=what):
        audited(data, budget=budget)


def root_at(pointer: int, base: int = BASE) -> bytes:
    return Writer().file(pointer, base=base) + bytes(64)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "no header"),
        (HEADER, "no header"),
        (b"olean" + bytes(10), "no header"),
        (proof(Writer.prop).replace(b"olean", b"oleam", 1), "no header"),
        (b"olean\x01" + proof(Writer.prop)[6:], "version 1 is not supported"),
        (b"olean\x03" + proof(Writer.prop)[6:], "version 3 is not supported"),
        (b"olean\x02\x05" + proof(Writer.prop)[7:], "flags 5"),
        (proof(Writer.prop).replace(b"4.35.0\0\0", b"4.35.0\0x", 1), "padded ASCII"),
        (proof(Writer.prop).replace(b"4.35.0", b"4.35.\xff", 1), "padded ASCII"),
        (root_at(BASE + 96, base=BASE + 1), "base address"),
        (root_at(box(0)), "root is not an object"),
        (root_at(BASE + 100), "does not point backwards"),
        (root_at(BASE), "does not point backwards"),
        (root_at(BASE - 8), "does not point backwards"),
        (root_at(BASE + 160), "does not point backwards"),
        (root_at((1 << 64) - 8), "does not point backwards"),
        (root_at(BASE + 96), "no module data"),
    ],
)
def test_a_header_that_is_not_leans_is_refused(data: bytes, what: str) -> None:
    refused(data, what)


def test_an_empty_file_a_folder_and_a_file_that_is_not_there_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(MalformedOlean, match="cannot be mapped"), opened(tmp_path / "empty"):
        pass
    with pytest.raises(MalformedOlean, match="not a plain file"), opened(tmp_path):
        pass
    with pytest.raises(FileNotFoundError), opened(tmp_path / "none"):
        pass


def test_every_truncation_of_a_real_file_is_refused() -> None:
    for size in range(0, len(REAL), 97):
        refused(REAL[:size])
    refused(REAL[:-8])


def pointing(writer: Writer, distance: int) -> int:
    """Make an application whose function is so many bytes behind its own start: a cycle, or a forgery."""
    argument = writer.prop()
    return writer.app((writer.next + distance) % (1 << 64), argument)


@pytest.mark.parametrize(
    "type_",
    [
        lambda writer: pointing(writer, 0),
        lambda writer: pointing(writer, 8),
        lambda writer: pointing(writer, 32),
        lambda writer: pointing(writer, 1 << 20),
        lambda writer: pointing(writer, 1 << 63),
        lambda writer: pointing(writer, -4),
        lambda writer: pointing(writer, -16),
        lambda writer: writer.app(BASE + 8, writer.prop()),
        lambda writer: writer.app(8, writer.prop()),
        lambda writer: writer.app(NOTHING, writer.prop()),
        lambda writer: writer.app(writer.array([]), writer.prop()),
        lambda writer: writer.app(writer.string("x"), writer.prop()),
        lambda writer: writer.make(5, writer.prop()),
        lambda writer: writer.make(200, writer.prop(), scalars=bytes(8)),
        lambda writer: writer.make(3, box(1), scalars=bytes(8)),
        lambda writer: writer.make(3, writer.prop(), scalars=bytes(8)),
        lambda writer: writer.make(4, box(3), box(0), scalars=bytes(8)),
        lambda writer: writer.make(4, writer.name("a"), box(3), scalars=bytes(8)),
        lambda writer: writer.make(4, writer.name("a"), writer.list([box(7)]), scalars=bytes(8)),
        lambda writer: writer.make(4, writer.name("a"), writer.list([writer.next]), scalars=bytes(8)),
        lambda writer: writer.make(0, writer.string("x"), scalars=bytes(8)),
        lambda writer: writer.literal(writer.string("x")),
        lambda writer: writer.literal(box(1), tag=1),
        lambda writer: writer.literal(box(1), tag=2),
        lambda writer: writer.put(struct.pack("<iHBB", 1, 32, 2, 5) + bytes(24)),
        box,
    ],
)
def test_an_expression_that_is_none_is_refused(type_: Callable[..., int]) -> None:
    writer = Writer()
    pointer = box(0) if type_ is box else type_(writer)
    writer.theorem("goal", pointer, writer.prop())
    refused(writer.module())


@pytest.mark.parametrize(
    "text",
    [
        lambda writer: writer.string(b"\xff\xfe", length=2),
        lambda writer: writer.string(b"\xed\xa0\x80", length=1),
        lambda writer: writer.string("abc", length=4),
        lambda writer: writer.string("abc", size=0),
        lambda writer: writer.string("abc", size=3),
        lambda writer: writer.string("abc", size=1 << 40),
        lambda writer: writer.string("abc", size=(1 << 64) - 1),
    ],
)
def test_a_corrupt_string_is_refused(text: Callable[[Writer], int]) -> None:
    refused(proof(lambda writer: writer.literal(text(writer), tag=1)), "string")
    refused(
        proof(lambda w: w.make(4, w.make(1, box(0), text(w), scalars=bytes(8)), box(0), scalars=bytes(8)))
    )


@pytest.mark.parametrize(
    ("number", "limbs", "digits"),
    [
        (1 << 70, 0, None),
        (1 << 70, 1, None),
        (1 << 70, -2, None),
        (1 << 70, 1 << 30, None),
        (1 << 70, None, BASE + 96),
        (1 << 70, None, NOTHING),
        (1 << 62, None, None),
    ],
)
def test_a_corrupt_number_is_refused(number: int, limbs: int | None, digits: int | None) -> None:
    refused(proof(lambda writer: writer.literal(writer.big(number, limbs, digits))), "number")


def test_numbers_are_compared_by_their_digits() -> None:
    first, same, other = (
        proof(lambda writer, number=number: writer.literal(writer.big(number)))  # type: ignore[misc]
        for number in (1 << 70, 1 << 70, 1 << 70 | 1)
    )
    assert words(audited(first, same)) == []
    assert words(audited(first, other)) == ["statement_mismatch"]


@pytest.mark.parametrize(
    "sizes", [(1 << 61, 1 << 61), (1, 2), (0, 1), (3, 3), ((1 << 64) - 1, (1 << 64) - 1)]
)
def test_an_array_of_a_wrong_size_is_refused(sizes: tuple[int, int]) -> None:
    writer = Writer()
    writer.theorem("goal", writer.prop(), writer.prop())
    refused(writer.module(names=writer.array([writer.name("goal")], *sizes)))


def test_a_constant_under_another_name_is_refused() -> None:
    writer = Writer()
    writer.theorem("goal", writer.prop(), writer.prop())
    refused(writer.module(names=writer.array([writer.name("other")])), "another name")


def test_more_names_than_constants_are_refused() -> None:
    writer = Writer()
    writer.theorem("goal", writer.prop(), writer.prop())
    refused(writer.module(infos=writer.array([])), "differ")


@pytest.mark.parametrize("kind", range(9))
def test_a_constant_whose_fields_are_another_kinds_is_refused(kind: int) -> None:
    writer = Writer()
    writer.declare(kind, "goal", writer.make(0, writer.header("goal", writer.prop()), box(0)))
    refused(writer.module())


@pytest.mark.parametrize(("safety", "word"), [(0, ["unsafe"]), (1, []), (2, ["partial"])])
def test_a_definition_tells_its_safety(safety: int, word: list[str]) -> None:
    writer = Writer()
    writer.definition("d", writer.prop(), writer.prop(), safety)
    writer.theorem("goal", writer.prop(), writer.const("d"))
    assert words(audited(writer.module())) == word


def test_a_safety_that_there_is_not_is_refused() -> None:
    writer = Writer()
    writer.definition("goal", writer.prop(), writer.prop(), 3)
    refused(writer.module(), "safety")


def test_a_truth_value_that_is_neither_is_refused() -> None:
    writer = Writer()
    writer.axiom("goal", writer.prop(), unsafe=2)
    refused(writer.module(), "truth value")


def test_a_name_has_a_bounded_number_of_parts_and_of_letters() -> None:
    writer = Writer()
    writer.theorem("goal", writer.prop(), writer.const(".".join("x" * DEEPEST_NAME)))
    assert words(audited(writer.module())) == []
    refused(proof(lambda w: w.const(".".join("x" * (DEEPEST_NAME + 1)))), "parts")
    writer, found = Writer(), box(0)
    for _ in range(50_000):
        found = writer.make(2, found, box(1), scalars=bytes(8))
    writer.theorem("goal", writer.make(4, found, box(0), scalars=bytes(8)), writer.prop())
    refused(writer.module(), "parts")
    refused(proof(lambda w: w.const("x" * (LONGEST_PART + 1))), "too long")


def test_deep_nesting_is_followed_to_its_end() -> None:
    def deep(writer: Writer) -> int:
        found = writer.prop()
        for _ in range(100_000):
            found = writer.app(found, found)
        return found

    data = proof(deep)
    assert words(audited(data, data)) == []


def test_deep_levels_are_followed_to_their_end() -> None:
    def deep(writer: Writer) -> int:
        found = box(0)
        for _ in range(50_000):
            found = writer.make(2, found, found, scalars=bytes(8))
        return writer.make(3, found, scalars=bytes(8))

    data = proof(deep)
    assert words(audited(data, data)) == []


def test_what_is_visited_is_bounded_by_the_budget() -> None:
    def long(writer: Writer) -> int:
        return writer.const("a", [box(0)] * 10_000)

    assert words(audited(proof(long), budget=11_000)) == []
    refused(proof(long), "more objects", budget=9_000)
    writer = Writer()
    found = writer.prop()
    for _ in range(10_000):
        found = writer.app(found, found)
    writer.theorem("goal", found, found)
    refused(writer.module(), "more objects", budget=9_000)


def test_binder_names_binder_kinds_and_metadata_make_no_difference() -> None:
    def pi(name: str, info: int, *, marked: bool) -> bytes:
        def type_(writer: Writer) -> int:
            body = writer.bound(7, name, writer.prop(), writer.prop(), info)
            return writer.marked(body) if marked else body

        return proof(type_)

    assert words(audited(pi("a", 0, marked=False), pi("b", 1, marked=True))) == []
    assert words(audited(pi("a", 0, marked=False), proof(Writer.prop))) == ["statement_mismatch"]


def test_a_free_variable_is_found() -> None:
    data = proof(lambda writer: writer.make(1, writer.name("x"), scalars=bytes(8)))
    assert words(audited(data)) == ["open_term"]


def test_braces_in_names_are_only_letters() -> None:
    writer = Writer()
    writer.axiom("{x}", writer.prop())
    writer.theorem("goal", writer.prop(), writer.const("{x}"))
    data = writer.module([writer.imported("{}{0}{y!r}")])
    found = audited(data, proof(Writer.prop))
    assert words(found) == ["imports_differ", "axiom"]
    assert "«{x}»" in found.findings[1].sentence


def test_a_name_declared_twice_is_found() -> None:
    writer = Writer()
    writer.theorem("goal", writer.prop(), writer.prop())
    writer.axiom("goal", writer.prop())
    assert "redeclared" in words(audited(writer.module()))


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_a_name_of_the_kernel_is_found(name: tuple[str, ...]) -> None:
    writer = Writer()
    writer.axiom(".".join(name), writer.prop())
    writer.theorem("goal", writer.prop(), writer.prop())
    assert words(audited(writer.module())) == ["kernel_primitive"]


def test_known_axioms_are_axioms_though_nothing_says_so() -> None:
    data = proof(Writer.prop, lambda writer: writer.const("lcProof"))
    assert words(audited(data)) == ["axiom"]
    assert audited(data).not_checked != ()


def test_an_axiom_of_the_modules_own_is_not_allowed_for_its_name() -> None:
    def resting_on(statement: Callable[[Writer], int]) -> bytes:
        writer = Writer()
        writer.axiom("propext", statement(writer))
        writer.theorem("goal", writer.prop(), writer.const("propext"))
        return writer.module()

    true, false = resting_on(lambda w: w.const("True")), resting_on(lambda w: w.const("False"))
    assert words(audited(false)) == ["axiom"]
    assert words(audited(false, true)) == ["axiom"]
    assert words(audited(true, true)) == []


def test_what_nobody_declares_dangles() -> None:
    data = proof(Writer.prop, lambda writer: writer.const("nobody"))
    assert words(audited(data, is_imported=lambda name: False)) == ["dangling"]


def test_targets_are_the_theorems_left_open() -> None:
    writer = Writer()
    for name in ("a.goal", "a.b.c"):
        writer.theorem(name, writer.prop(), writer.const("sorryAx"))
    writer.theorem("b.c", writer.prop(), writer.prop())
    with opened_module(writer.module()) as module:
        assert left_open(module) == [("a", "goal"), ("a", "b", "c")]


def test_a_real_file_is_read() -> None:
    with opened_module(REAL) as module:
        assert module.lean_version == "4.35.0"
        assert len(module.git_hash) == 40
        assert module.imports == ()
        assert {module.kind(name) for name in module.names} >= {
            *(
                ConstantKind.AXIOM,
                ConstantKind.THEOREM,
                ConstantKind.INDUCTIVE,
                ConstantKind.CONSTRUCTOR,
                ConstantKind.RECURSOR,
            )
        }
        both = module.constant(("And",))
        assert both is not None
        assert (both.numbers, both.constructors) == ((2, 0, 0, False, False), (("And", "intro"),))
        cheat = module.constant(("cheat",))
        assert cheat is not None
        assert cheat.parameters == (("u",),)
        found = audit(module, module, ("Goal", "it"))
    assert words(found) == ["axiom"]
    assert found.compared[0] == ("Goal", "it")
    assert set(found.compared[1:]) == {
        ("And",),
        ("And", "intro"),
        ("And", "rec"),
        ("False",),
        ("False", "rec"),
    }


def _mutated(data: bytes, seed: int) -> bytes:
    """Return a real file changed in a few places; a bit, a byte, a word, a pointer, or its length."""
    chosen = random.Random(seed)
    changed = bytearray(data)
    for _ in range(chosen.choice((1, 1, 2, 5))):
        at = chosen.randrange(len(changed))
        word, other = (chosen.randrange(len(changed) // 8) * 8 for _ in range(2))
        match chosen.randrange(6):
            case 0:
                changed[at] ^= 1 << chosen.randrange(8)
            case 1:
                changed[at] = chosen.choice((0, 1, 2, 0x7F, 0xFF, chosen.randrange(256)))
            case 2:
                changed[word : word + 8] = changed[other : other + 8]
            case 3:
                value = chosen.choice((0, 1, 1 << 63, (1 << 64) - 1, chosen.randrange(len(data))))
                changed[word : word + 8] = struct.pack("<Q", value)
            case 4:
                base = struct.unpack_from("<Q", data, 80)[0]
                changed[word : word + 8] = struct.pack("<Q", base + other)
            case _:
                del changed[max(96, at) :]
        if len(changed) < 16:
            break
    return bytes(changed)


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 1 << 32))
@example(0)
def test_a_changed_file_is_refused_or_judged(seed: int) -> None:
    data = _mutated(REAL, seed)
    try:
        with opened_module(data, 100_000) as module, opened_module(REAL) as real:
            found = audit(module, real, ("Goal", "it"), Rules(is_imported=lambda name: False))
            found.facts()
            for name in module.names:
                module.constant(name)
    except MalformedOlean:
        return
    assert isinstance(found, Findings)


PARTS = st.lists(st.one_of(st.text(max_size=5), st.integers(0, 1 << 40)), max_size=4)


@given(PARTS, PARTS)
def test_names_are_written_so_that_they_can_be_read_again(
    one: list[str | int], other: list[str | int]
) -> None:
    name = tuple(one)
    assert parsed(dotted(name)) == name
    assert "\n" not in dotted(name)
    assert (dotted(name) == dotted(tuple(other))) == (name == tuple(other))


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "«a", "a»", "a«b»", "«a»b"])
def test_text_that_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        parsed(text)


def test_numerals_and_digits_in_quotes_are_two_names() -> None:
    assert parsed("a.1") == ("a", 1)
    assert parsed("a.«1»") == ("a", "1")
    assert dotted(("a.b", "c")) == "«a.b».c"


def test_findings_are_words_for_machines() -> None:
    assert all(word.value == word.value.lower() for word in Word)


@pytest.mark.parametrize(
    ("extension", "what"),
    [
        ("Lean.Meta.instanceExtension", "instance"),
        ("Lean.Meta.defaultInstanceExtension", "instance"),
        ("Lean.Parser.parserExtension", "notation"),
        ("Lean.PrettyPrinter.Delaborator.appUnexpanderAttribute", "notation"),
        ("Lean.Elab.macroAttribute", "macro"),
        ("Lean.Elab.Tactic.tacticElabAttribute", "elaborator"),
        ("Lean.Elab.Term.termElabAttribute", "elaborator"),
        ("Lean.attributeExtension", "attribute"),
        ("Lean.Meta.simpExtension", "simplification"),
        ("Lean.Meta.Simp.simprocExtension", "simplification"),
        ("Lean.Meta.coeDeclAttr", "coercion"),
        ("Lean.Meta.unificationHintExtension", "unification_hint"),
        ("Lean.Compiler.implementedByAttr", "implemented_by"),
        ("Lean.externAttr", "extern"),
        ("Lean.exportAttr", "export"),
        ("Lean.regularInitAttr", "initialize"),
        ("Lean.builtinInitAttr", "initialize"),
        ("Lean.Compiler.CSimp.ext", "csimp"),
        ("reducibilityCore", "reducibility"),
        ("Lean.aliasExtension", "alias"),
        ("Lean.declRangeExt", None),
        ("Lean.protectedExt", None),
        ("Lean.noConfusionExt", None),
        ("Lean.IR.declMapExt", None),
        ("Lean.Compiler.LCNF.baseExt", None),
        ("Lean.Compiler.LCNF.UnreachableBranches.functionSummariesExt", None),
        ("_private.Lean.Util.CollectAxioms.0.Lean.exportedAxiomsExt", None),
        ("_private.Lean.Structure.0.Lean.structureExt", None),
        ("Lean.docStringExt", None),
    ],
)
def test_an_extension_is_known_by_its_name(extension: str, what: str | None) -> None:
    assert influence(parsed(extension)) == what


def test_of_a_huge_file_only_what_is_asked_for_is_looked_at(tmp_path: Path) -> None:
    writer = Writer()
    writer.theorem("goal", writer.prop(), writer.prop())
    writer.module()
    size = 1 << 30
    root = bytes(writer.data[-56:])
    writer.data[88:96] = struct.pack("<Q", BASE + size - 56)
    with (tmp_path / "huge").open("wb") as file:
        file.write(writer.data)
        file.seek(size - 56)
        file.write(root)
    before = touched_pages()
    with opened_module(tmp_path / "huge", 100) as module:
        assert words(audit(module, module, GOAL)) == []
    assert touched_pages() - before < 2000  # all of it: 16 384 at least, for they come sixteen at a time


def touched_pages() -> int:
    """Return how many times the kernel had to give this process a page of something."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt + usage.ru_majflt


@pytest.mark.parametrize("kind", ["quotient", "constructor", "recursor", "inductive"])
def test_a_constant_without_a_value_is_no_proof_whatever_its_kind(kind: str) -> None:
    """Only an axiom is found by its kind: what belongs to no type of the module is refused for that."""
    writer = Writer()
    header = writer.header("a", writer.const("False"))
    none, zero = writer.list([]), box(0)
    values = {
        "quotient": (QUOTIENT, (header,), 1),
        "constructor": (CONSTRUCTOR, (header, writer.name("False"), zero, zero, zero), 1),
        "recursor": (
            RECURSOR,
            (header, writer.list([writer.name("False")]), zero, zero, zero, zero, none),
            2,
        ),
        "inductive": (INDUCTIVE, (header, zero, zero, writer.list([writer.name("False")]), none, zero), 3),
    }
    tag, fields, marks = values[kind]
    writer.declare(tag, "a", writer.make(0, *fields, scalars=bytes(marks)))
    writer.theorem("goal", writer.const("False"), writer.const("a"))
    try:
        assert words(audited(writer.module())) == ["kernel_primitive"]
    except MalformedOlean:
        assert kind != "quotient"
