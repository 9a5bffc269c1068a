"""Tables of dependencies: modules made by hand, damaged tables, and modules that cannot be read."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from farm_workers.audit.dependencies import BadTable, Below, Contents, NotInTable, Table, key_of, mapped
from farm_workers.audit.library import main, modules_below, read
from farm_workers.audit.olean import Name

from tests.dependencies import packed, table, table_of
from tests.oleans import INDUCTIVE, Writer, box

OLEANS = Path(__file__).with_name("olean")
SORRY = "sorryAx"


def written(folder: Path, name: str, writer: Writer, *imports: str) -> None:
    """Write a module with the constants of a writer."""
    file = folder.joinpath(*name.split(".")).with_suffix(".olean")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(writer.module([writer.imported(each) for each in imports]))


def below(found: Table, name: str) -> tuple[set[str], set[str]]:
    """Return the axioms and sorries below a constant, as texts."""
    rests = found.below(tuple(name.split(".")))
    return {".".join(map(str, each)) for each in rests.axioms}, {
        ".".join(map(str, each)) for each in rests.sorries
    }


def base(*axioms: str) -> Writer:
    """Return a module that declares `sorryAx` and some axioms."""
    writer = Writer()
    for name in (SORRY, *axioms):
        writer.axiom(name, writer.prop())
    return writer


def test_axioms_and_sorries_pass_through_modules_terms_and_cycles(tmp_path: Path) -> None:
    writer = base("a", "b")
    writer.theorem("by_a", writer.prop(), writer.app(writer.const("a"), writer.prop()))
    writer.theorem("admitted", writer.const("b"), writer.const(SORRY))
    written(tmp_path, "Base", writer)
    writer = Writer()
    shared = writer.app(writer.const("admitted"), writer.const("by_a"))
    writer.theorem("behind", writer.prop(), writer.bound(6, "x", writer.prop(), shared))
    # No kernel accepts constants that rest on each other, but a module can hold them.
    writer.theorem("one", writer.prop(), writer.app(writer.const("other"), writer.const("by_a")))
    writer.definition("other", writer.const("one"), writer.const("last"))
    writer.theorem("last", writer.prop(), writer.const("other"))
    writer.theorem("aside", writer.prop(), writer.prop())
    writer.theorem("typed", writer.const("one"), writer.prop())
    written(tmp_path, "Top.Most", writer, "Base")
    found = table_of([tmp_path])
    assert below(found, "a") == ({"a"}, set())
    assert below(found, "by_a") == ({"a"}, set())
    assert below(found, "admitted") == ({"b", SORRY}, {"admitted"})
    assert below(found, "behind") == ({"a", "b", SORRY}, {"admitted"})
    assert [below(found, name)[0] for name in ("one", "other", "last", "typed")] == [{"a"}] * 4
    assert below(found, "aside") == (set(), set())
    with pytest.raises(NotInTable, match="nobody knows the axioms below nothing: no module declares it"):
        found.below(("nothing",))


def test_an_inductive_type_rests_on_its_constructors(tmp_path: Path) -> None:
    writer = base("a")
    family = writer.list([writer.name("T")])
    inductive = (writer.header("T", writer.prop()), box(0), box(0), family)
    held = writer.make(0, *inductive, writer.list([writer.name("T.mk")]), box(0), scalars=b"\0\0\0")
    writer.declare(INDUCTIVE, "T", held)
    made = (writer.header("T.mk", writer.app(writer.const("a"), writer.const("T"))), writer.name("T"))
    writer.declare(6, "T.mk", writer.make(0, *made, box(0), box(0), box(0), scalars=b"\0"))
    writer.theorem("of_type", writer.prop(), writer.const("T"))
    written(tmp_path, "M", writer)
    found = table_of([tmp_path])
    assert [below(found, name)[0] for name in ("T", "T.mk", "of_type")] == [{"a"}] * 3


def test_a_long_chain_of_constants_and_of_modules_takes_no_recursion(tmp_path: Path) -> None:
    writer = base("a")
    names = ["a", *(f"t{number}" for number in range(3000))]
    for name, last in zip(names[1:], names, strict=False):
        writer.theorem(name, writer.prop(), writer.const(last))
    written(tmp_path, "M0", writer)
    for number in range(1, 1100):
        written(tmp_path, f"M{number}", Writer(), f"M{number - 1}")
    writer = Writer()
    writer.theorem("top", writer.prop(), writer.const("t2999"))
    written(tmp_path, "Top", writer, "M1099")
    assert below(table_of([tmp_path]), "top") == ({"a"}, set())


def test_a_name_of_several_modules_rests_on_what_the_header_imports(tmp_path: Path) -> None:
    writer = base("a")
    written(tmp_path, "Base", writer)
    for module, value in (("Clean", Writer.prop), ("Marked", lambda writer: writer.const("a"))):
        writer = Writer()
        writer.theorem("same", writer.prop(), value(writer))
        writer.theorem(f"in_{module}", writer.prop(), writer.const("same"))
        written(tmp_path, module, writer, "Base")
    for module in ("Clean", "Marked"):
        writer = Writer()
        writer.theorem(f"by_{module}", writer.prop(), writer.const("same"))
        written(tmp_path, f"On{module}", writer, module)
    file = packed(read([tmp_path]))
    found = table_of([tmp_path])
    assert [below(found, f"{word}_Clean")[0] for word in ("in", "by")] == [set(), set()]
    assert [below(found, f"{word}_Marked")[0] for word in ("in", "by")] == [{"a"}, {"a"}]
    answers = {("OnClean",): set(), ("OnMarked",): {"a"}, ("OnClean", "OnMarked"): {"a"}}
    for imports, axioms in answers.items():
        header: list[Name] = [(each,) for each in imports]
        assert below(Table(memoryview(file), header), "same")[0] == axioms
    assert below(found, "same")[0] == {"a"}  # without a header


def test_a_module_in_parts_is_read_whole() -> None:
    found = table_of([OLEANS])
    for name in ("shown", "both", "used"):
        assert found.below((name,)) == Below()
    assert found.below(("_private", "Parts", 0, "hidden")) == Below()
    assert found.unread == ""
    assert below(found, "Goal.it")[0] == {"cheat"}


def damaged(folder: Path, what: str) -> None:
    """Damage one module of a library."""
    if what == "gone":
        (folder / "Parts.olean").unlink()
    elif what == "part":
        (folder / "Parts.olean.private").unlink()
    elif what == "torn":
        (folder / "Parts.olean.private").write_bytes((folder / "Parts.olean.private").read_bytes()[:600])
    elif what == "format":
        content = (folder / "Parts.olean").read_bytes()
        (folder / "Parts.olean").write_bytes(content[:5] + b"\3" + content[6:])
    else:
        (folder / "Parts.olean").write_bytes(b"")


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("gone", "no module declares it"),
        ("part", "Parts: .*Parts.olean.private"),
        ("torn", "Parts: "),
        ("format", "Parts: format version 3 is not supported"),
        ("empty", "Parts: the file cannot be mapped"),
    ],
)
def test_what_rests_on_an_unreadable_module_is_unknown(tmp_path: Path, what: str, told: str) -> None:
    folder = tmp_path / "library"
    shutil.copytree(OLEANS, folder)
    damaged(folder, what)
    found = table_of([folder])
    with pytest.raises(NotInTable, match=rf"the axioms below \S+: .*{told}.*Build the environment"):
        found.below(("used",))
    assert below(found, "Goal.it")[0] == {"cheat"}  # the others are known


def test_modules_that_import_each_other_are_left_out(tmp_path: Path) -> None:
    written(tmp_path, "A", Writer(), "B")
    written(tmp_path, "B", Writer(), "A")
    written(tmp_path, "C", Writer(), "C")
    written(tmp_path, "D", base("a"))
    contents = read([tmp_path])
    assert contents.unread == dict.fromkeys("ABC", "it imports itself by way of others")
    assert ("a",) in contents.constants


def test_no_damaged_module_ends_the_reading(tmp_path: Path) -> None:
    content, chance = (OLEANS / "Real.olean").read_bytes(), random.Random(4)
    whole = read([OLEANS])
    for _ in range(150):
        broken = bytearray(content)
        for _ in range(chance.choice((1, 3))):
            broken[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        (tmp_path / "Real.olean").write_bytes(broken[: chance.choice((len(broken), len(broken) - 8))])
        contents = read([tmp_path])
        known = contents.constants.get(("Goal", "it"))
        assert contents.unread or known is None or contents.sets[known].axioms or contents.sets[known].unknown
    assert whole.unread == {}


@pytest.fixture(scope="module")
def file() -> bytes:
    """A table of the environment `e`."""
    return packed(read([OLEANS]), "e")


def test_a_table_of_another_environment_is_refused(file: bytes) -> None:
    Table(memoryview(file)).require("e")
    with pytest.raises(BadTable, match="another environment"):
        Table(memoryview(file)).require("f")


def test_a_damaged_table_is_refused(file: bytes, tmp_path: Path) -> None:
    for place in range(0, len(file), 97):
        broken = bytearray(file)
        broken[place] ^= 1
        with pytest.raises(BadTable):
            Table(memoryview(bytes(broken))).require("e")
    for size in (0, 5, 19, 40, 300, len(file) - 8, len(file) - 1):
        (tmp_path / "table").write_bytes(file[:size])
        with pytest.raises(BadTable):
            mapped(tmp_path / "table")


def test_names_that_read_alike_have_different_hashes() -> None:
    alike: list[Name] = [("a.b",), ("a", "b"), ("a", "1"), ("a", 1), ("a.1",), ("a", ""), ("a",)]
    assert len({*map(key_of, alike)}) == len(alike)
    contents = Contents(sets=[Below()], constants=dict.fromkeys(alike, 0))
    assert len(table(contents)) == len(alike)


def test_the_process_says_what_it_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(tmp_path / "table"), "e", str(OLEANS)])
    assert '"modules": 3' in capsys.readouterr().out
    mapped(tmp_path / "table").require("e")


def test_a_folder_that_is_missing_has_no_modules_and_one_that_cannot_be_read_ends_the_reading(
    tmp_path: Path,
) -> None:
    assert list(modules_below(tmp_path / "missing")) == []
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        list(modules_below(tmp_path / "file"))
