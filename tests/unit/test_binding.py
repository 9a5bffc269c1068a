"""The table of what the farm uses of Lean, bound to descriptions that differ as releases do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.binding import table
from farm_workers.binding.bind import Binding, FieldPlace, Invocation, Layout, bind
from farm_workers.binding.description import NotDescribed, decoded, encoded, has_run, shipped
from farm_workers.binding.mangling import symbol_of
from farm_workers.binding.signatures import Description, Member, Parameter, Shape
from farm_workers.binding.table import ABILITIES, Ability, Function, Structure, StructureField, Taken
from hypothesis import given
from hypothesis import strategies as st

RUN = shipped(4, 35)
#: Read by `farm_workers.binding.modules` from the modules of a real toolchain, of 32 bits.
READ = decoded((Path(__file__).parents[1] / "vectors" / "lean-4.28.0-pre.json").read_text())
#: Those without an alternative, which Lean exports under its own name.
FUNCTIONS = [
    entry
    for needed in ABILITIES.values()
    for entry in needed
    if isinstance(entry, Function) and not entry.symbol
]
FIELDS = [
    entry
    for needed in ABILITIES.values()
    for entry in needed
    if isinstance(entry, StructureField) and entry.structure in RUN.structures
]
functions, fields = st.sampled_from(FUNCTIONS), st.sampled_from(FIELDS)


def everything(_: str) -> bool:
    return True


def bound(description: Description, exported: Callable[[str], bool] = everything) -> Binding:
    return bind(description, exported)


def changed(entry: Function, parameters: Iterator[Parameter] | list[Parameter]) -> Description:
    return replace(RUN, functions={**RUN.functions, entry.name: tuple(parameters)})


def moved(entry: StructureField | Structure, parts: list[Member]) -> Description:
    name = entry.name if isinstance(entry, Structure) else entry.structure
    return replace(RUN, structures={**RUN.structures, name: tuple(parts)})


def refused(entry: table.Entry, description: Description) -> str:
    """Return the sentence with which an ability is refused for want of an entry, which is then not bound."""
    found = bound(description)
    assert entry not in found.entries
    name = entry.structure if isinstance(entry, StructureField) else getattr(entry, "name", "")
    (sentence, *_) = [each for each in found.lacking.values() if name in each]
    return sentence


def call(description: Description, entry: Function) -> Invocation:
    found = bound(description).entries[entry]
    assert isinstance(found, Invocation)
    return found


# Descriptions


def test_the_release_that_the_tests_run_has_every_ability() -> None:
    assert bound(RUN).lacking == {}
    assert has_run(4, 35)
    assert not has_run(4, 36)


def test_a_real_toolchains_modules_describe_all_but_what_it_does_not_have_yet() -> None:
    found = bound(READ)
    assert found.lean == "4.28.0-pre"
    # The description was made before these were in the table.
    later = Ability.SESSIONS, Ability.READING, Ability.EXTRACTION
    newer = {each: why for each, why in found.lacking.items() if each in later}
    assert len(newer) == 3
    assert all(why.endswith("is not described") for why in newer.values())
    assert found.lacking == {
        Ability.COMPILED: "Lean.Meta.nativeEqTrue is not described",
        **newer,
    }


def test_a_real_toolchain_has_the_fields_where_the_release_that_was_run_has_them() -> None:
    ours, theirs = bound(RUN).entries, bound(READ).entries
    both = [entry for entry in ours if isinstance(entry, StructureField | Structure) and entry in theirs]
    assert len(both) > 40
    assert [entry for entry in both if ours[entry] != theirs[entry]] == []


def test_a_description_is_the_same_after_it_was_written() -> None:
    assert decoded(encoded(READ)) == READ
    assert decoded(encoded(RUN)) == RUN


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"lean": "4.1.0", "source": "rumour", "plain_actions": true, "functions": {}, "structures": {}, '
        '"types": {}}',
        encoded(RUN).replace('"uint8"', '"uint7"'),
        encoded(RUN).replace('["env"]', "[1]"),
        encoded(RUN).replace('"uint8", 3', '"uint8", "3"'),
    ],
)
def test_another_file_is_no_description(text: str) -> None:
    with pytest.raises(NotDescribed):
        decoded(text)


def test_a_release_without_a_description_is_named() -> None:
    with pytest.raises(NotDescribed, match=r"no description of Lean 4\.36"):
        shipped(4, 36)


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("Lean.Syntax.getPos?", "l_Lean_Syntax_getPos_x3f"),
        ("_private.Lean.Shell.0.Lean.setConfigOption", "l___private_Lean_Shell_0__Lean_setConfigOption"),
        ("Lean.a_b", "l_Lean_a__b"),
        ("Lean.«ω»".replace("«", "").replace("»", ""), "l_Lean__u03c9"),
    ],
)
def test_a_symbol_is_lean_s(name: str, symbol: str) -> None:
    assert symbol_of(name) == symbol


# Functions


@given(functions)
def test_an_unknown_parameter_gets_its_literal_default(entry: Function) -> None:
    more = Parameter("new", Shape.OBJECT, 3)
    words = call(changed(entry, [more, *RUN.functions[entry.name]]), entry).words
    assert words == (~3, *call(RUN, entry).words)


@given(functions, st.sampled_from([Shape.OBJECT, Shape.BYTE, Shape.UINT64]))
def test_an_unknown_parameter_without_a_default_is_refused_by_name(entry: Function, shape: Shape) -> None:
    sentence = refused(entry, changed(entry, [Parameter("new", shape), *RUN.functions[entry.name]]))
    assert f"{entry.name}: the farm does not know the parameter new" in sentence


@given(functions, st.data())
def test_a_parameter_that_is_gone_is_refused_by_name(entry: Function, data: st.DataObject) -> None:
    needed = [each.name for each in entry.takes if not each.optional]
    if len(set(needed)) < len(needed) or not needed:
        return
    gone = data.draw(st.sampled_from(needed))
    left = [each for each in RUN.functions[entry.name] if each.name != gone]
    assert f"{entry.name} has no parameter {gone}" in refused(entry, changed(entry, left))


@given(functions, st.data())
def test_parameters_in_another_order_get_the_same_words(entry: Function, data: st.DataObject) -> None:
    own = RUN.functions[entry.name]
    named = [each for each in own if each.name]
    order = data.draw(st.permutations(range(len(named))))
    rest = [each for each in own if not each.name]
    words, before = (
        call(changed(entry, [*(named[n] for n in order), *rest]), entry).words,
        call(RUN, entry).words,
    )
    names = [each.name for each in named]
    if len(set(names)) == len(names):
        assert list(words[: len(named)]) == [before[n] for n in order]
    assert sorted(words) == sorted(before)


@given(functions, st.data())
def test_a_parameter_of_another_shape_is_refused_by_name(entry: Function, data: st.DataObject) -> None:
    own = list(RUN.functions[entry.name])
    names = {each.name for each in entry.takes}
    places = [number for number, each in enumerate(own) if each.name in names]
    if not places:
        return
    place = data.draw(st.sampled_from(places))
    other = data.draw(st.sampled_from([shape for shape in Shape if shape is not own[place].shape]))
    own[place] = replace(own[place], shape=other)
    if other is Shape.WORLD:
        assert entry not in bound(changed(entry, own)).entries
    else:
        assert f"{own[place].name} is {other} instead of" in refused(entry, changed(entry, own))


@given(functions)
def test_a_function_that_turned_into_an_action_is_refused(entry: Function) -> None:
    own = list(RUN.functions[entry.name])
    world = Parameter("", Shape.WORLD)
    other = own[:-1] if own and own[-1] == world else [*own, world]
    assert "action, contrary to the farm's table" in refused(entry, changed(entry, other))


@given(functions)
def test_a_parameter_more_of_a_monad_is_refused(entry: Function) -> None:
    own = list(RUN.functions[entry.name])
    assert "parameters of its monad" in refused(entry, changed(entry, [*own, Parameter("")]))


@given(functions)
def test_a_function_that_the_library_does_not_have_is_refused_by_symbol(entry: Function) -> None:
    symbol = entry.symbol or symbol_of(entry.name)
    found = bound(RUN, lambda name: not name.startswith(symbol))
    assert entry not in found.entries
    assert any(symbol in each for each in found.lacking.values())


def test_a_function_with_scalars_is_called_by_its_boxed_form_alone() -> None:
    boxed = f"{symbol_of(table.REPORT.name)}___boxed"
    assert call(RUN, table.REPORT).symbol == boxed
    found = bound(RUN, lambda name: name != boxed)
    assert f"the library has no symbol {boxed}" in found.lacking[Ability.SNAPSHOTS]


def test_a_function_with_a_symbol_of_its_own_takes_no_scalars() -> None:
    own = [*RUN.functions[table.FIND.name], Parameter("deep", Shape.BYTE, 1)]
    assert "___boxed" in refused(table.FIND, changed(table.FIND, own))


def test_an_optional_parameter_is_left_out_where_the_function_lacks_it() -> None:
    own = [each for each in RUN.functions[table.INPUT.name] if each.name != "endPos"]
    assert call(changed(table.INPUT, own), table.INPUT).words == (0, 1, ~3, ~1)


def test_actions_of_older_releases_hold_their_value() -> None:
    assert call(replace(RUN, plain_actions=False), table.PROCESS).holds_value
    assert not call(RUN, table.PROCESS).holds_value


def test_one_of_two_functions_is_enough() -> None:
    other = {name: each for name, each in RUN.functions.items() if name != table.SAME_CONSTANT.name}
    found = bound(replace(RUN, functions=other))
    assert found.lacking == {}
    assert table.SAME_TERM in found.entries
    without = bound(replace(RUN, functions=other), lambda name: name != table.SAME_TERM.symbol)
    assert "lean_expr_eqv" in without.lacking[Ability.SEAL]
    assert table.SAME_CONSTANT.name in without.lacking[Ability.SEAL]


def test_a_toolchain_without_a_start_has_no_ability() -> None:
    found = bound(RUN, lambda name: name != "lean_initialize")
    assert set(found.lacking) == set(Ability)


# Structures


@given(fields, st.data())
def test_a_field_is_found_wherever_it_moved(entry: StructureField, data: st.DataObject) -> None:
    parts = data.draw(st.permutations(RUN.structures[entry.structure]))
    place = bound(moved(entry, list(parts))).entries[entry]
    assert isinstance(place, FieldPlace)
    if not place.size:
        return
    if entry.shape is Shape.OBJECT:
        pointers = [each.name for each in parts if each.shape is Shape.OBJECT]
        assert place == FieldPlace(8 + 8 * pointers.index(entry.name), 8)
    else:
        assert place.offset >= 8 + 8 * sum(each.shape is Shape.OBJECT for each in parts)


@given(fields)
def test_a_field_that_is_gone_is_refused_by_name(entry: StructureField) -> None:
    left = [each for each in RUN.structures[entry.structure] if each.name != entry.name]
    assert f"{entry.structure} has no field {entry.name}" in refused(entry, moved(entry, left))


@given(fields, st.sampled_from(Shape))
def test_a_field_of_another_shape_is_refused_by_name(entry: StructureField, shape: Shape) -> None:
    parts = [
        replace(each, shape=shape) if each.name == entry.name else each
        for each in RUN.structures[entry.structure]
    ]
    if shape is not entry.shape:
        assert f"{entry.name} is {shape} instead of {entry.shape}" in refused(entry, moved(entry, parts))


def test_scalars_stand_behind_pointers_the_larger_first() -> None:
    layout = bound(RUN).entries[table.SETUP]
    assert isinstance(layout, Layout)
    names = [each.name for each in table.SETUP.parts]
    assert [names[each] for each in layout.pointers] == [
        "mainModuleName",
        "package?",
        "imports",
        "opts",
        "importArts",
        "plugins",
    ]
    assert [(names[number], offset, size) for number, offset, size in layout.scalars] == [
        ("trustLevel", 56, 4),
        ("isModule", 60, 1),
    ]
    assert layout.size == 64


@pytest.mark.parametrize("structure", [table.SETUP, table.MODULE], ids=lambda each: each.name)
def test_a_structure_with_an_unknown_field_is_not_made(structure: Structure) -> None:
    parts = [*RUN.structures[structure.name], Member("new")]
    assert "the farm does not know the field new" in refused(structure, moved(structure, parts))


def test_a_structure_of_one_field_is_that_field() -> None:
    parts = [Member("pos"), Member("proof", Shape.ERASED)]
    assert bound(moved(table.PARSER_POSITION, parts)).entries[table.PARSER_POSITION] == FieldPlace(0, 0)


# Types


@given(st.permutations(RUN.types["Lean.MessageSeverity"]))
def test_a_constructor_has_the_number_of_its_place(names: list[str]) -> None:
    types = {**RUN.types, "Lean.MessageSeverity": tuple(names)}
    assert bound(replace(RUN, types=types)).entries[table.ERROR] == names.index("error")


def test_a_constructor_that_is_gone_is_refused_by_name() -> None:
    types = {**RUN.types, "Lean.MessageSeverity": ("information", "warning")}
    assert "Lean.MessageSeverity has no constructor error" in refused(table.ERROR, replace(RUN, types=types))


def test_a_parameter_is_optional_or_not_and_nothing_else() -> None:
    assert Taken("x") == Taken("x", Shape.OBJECT, optional=False)
