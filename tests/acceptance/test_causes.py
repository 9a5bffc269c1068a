"""Each way to ask names the error that causes the others, its place, and what to type; it counts the rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from farm_workers.box import once as box
from farm_workers.checking.asked import check_of
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.extracted import NoExtract
from farm_workers.lean.outlined import NoOutline
from farm_workers.sessions.outcome import NoSession

from farm.datasets.theorems import SourceFile
from farm.judging.assurance import Assurance
from farm.judging.verdict import judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from tests.processes import PATIENCE

HEADER = "prelude\nimport Core\n"
STATEMENT = "theorem t (p : Prop) (h : p) : p"
LIMITS = Limits(wall_seconds=60 * PATIENCE, cpu_seconds=120 * PATIENCE)
BROKEN = "def Shelf.empty : Nosuch.Kind := 0\n"
FOLLOWERS = "".join(f"theorem f{number} : True := Shelf.full\n" for number in range(30))
#: Texts above a theorem, by what is wrong with them: the words that every way to ask must say.
FAULTS = {
    "missing module": (
        f"{HEADER}import Shop.Price\n",
        ["no module Shop.Price", "'shop' has", "--environment shop"],
    ),
    "misspelt module": (f"{HEADER}import Coer\n", ["no module Coer", "it has Core: correct the import"]),
    "module of a package": (f"{HEADER}import Own.Pages\n", ["no module Own.Pages", "it has Own.Page:"]),
    "module above others": (f"{HEADER}import Own\n", ["no module Own", "it has Own.Page:"]),
    "module of nobody": (f"{HEADER}import Zzz\n", ["no module Zzz", "farm environments add"]),
    "two modules": (f"{HEADER}import Shop.Cart\nimport Zzz\n", ["no modules Shop.Cart, Zzz"]),
    "no prelude": ("import Core\n", ["no module Init", "begin it with `prelude` and `import Core`"]),
    "broken module": (f"{HEADER}import Broken\n", ["Broken.olean", "farm environments verify crowded"]),
    "first declaration": (f"{HEADER}{BROKEN}{FOLLOWERS}", ["line 3", "Nosuch.Kind", "30 more"]),
    "helper": (f"{HEADER}theorem helper (p : Prop) : p := by\n  exact nope\n", ["line 4", "nope"]),
    "namespace": (
        f"{HEADER}open Nowhere\nopen Nowhere\n",
        ["line 3", "unknown namespace `Nowhere`", "1 more"],
    ),
    "notation": (f"{HEADER}theorem early : 1 ⊕⊕ 2 = 3 := rfl\n", ["line 3", "expected token", "1 more"]),
    "unread proof": (
        f"{HEADER}theorem early (p : Prop) (h : p) : p ∧ p := by\n  constructor\n  ⊕⊕ h\n",
        ["line 5", "expected token", "1 more"],
    ),
}
#: The faults that are about a header, and not about a declaration below it.
OF_HEADERS = [name for name in FAULTS if "module" in name or name == "no prelude"]

Ask = Callable[[Checker, LeanEnvironment, str], str]


def _judged(checker: Checker, environment: LeanEnvironment, **fields: str) -> str:
    usual = {"header": "", "context": "", "formal_statement": "", "generation": "", "predicted_proof": ""}
    entry = Entry(path="lines.jsonl", line=1, name="t", **{**usual, **fields})
    return judge(checker.check(check_of(entry, LIMITS, Assurance()), environment)).detail


def _as_header(checker: Checker, environment: LeanEnvironment, text: str) -> str:
    proof = f"{STATEMENT} := h"
    return _judged(checker, environment, header=text, formal_statement=f"{STATEMENT} := by", generation=proof)


def _as_context(checker: Checker, environment: LeanEnvironment, text: str) -> str:
    return _judged(checker, environment, context=text, formal_statement=STATEMENT, generation=":= h")


def _as_program(checker: Checker, environment: LeanEnvironment, text: str) -> str:
    return _judged(checker, environment, predicted_proof=f"{text}{STATEMENT} := h\n")


def _in_session(checker: Checker, environment: LeanEnvironment, text: str) -> str:
    program = f"{text}{STATEMENT} := sorry\n"
    with (
        pytest.raises(NoSession) as refused,
        checker.sessions.using("causes", environment, lambda: program, box.never),
    ):
        pass
    return str(refused.value)


def _extracted(checker: Checker, environment: LeanEnvironment, text: str) -> str:
    source = SourceFile(path="A.lean", module="A", text=f"{text}{STATEMENT} := h\n")
    try:
        found = checker.extract(source, environment, limits=LIMITS, most=100)
    except NoExtract as error:
        return str(error)
    assert found.theorems == ()
    return {each.name: each.words for each in found.left_out}["t"]


def _outlined(checker: Checker, environment: LeanEnvironment, text: str) -> str:
    with pytest.raises(NoOutline) as refused:
        checker.outline(f"{text}{STATEMENT} := h\n", environment, limits=LIMITS)
    return str(refused.value)


WAYS: dict[str, Ask] = {
    "header": _as_header,
    "context": _as_context,
    "program": _as_program,
    "session": _in_session,
    "extract": _extracted,
    "outline": _outlined,
}


@pytest.fixture(scope="module")
def crowded(
    checker: Checker, core: LeanEnvironment, tmp_path_factory: pytest.TempPathFactory
) -> LeanEnvironment:
    """An environment with a module that Lean cannot load; the checker knows one with the shop's modules."""
    folder = tmp_path_factory.mktemp("modules")
    own, shop = folder / "own", folder / "shop"
    compiled = (Path(core.lean_path[0]) / "Core.olean").read_bytes()
    for place in (own / "Own" / "Page.olean", shop / "Shop" / "Price.olean", shop / "Shop" / "Cart.olean"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(compiled)
    (own / "Broken.olean").write_bytes(b"no module at all")
    paths = {"crowded": own, "shop": shop}
    found = {
        name: dataclasses.replace(core, name=name, digest=name, lean_path=(*core.lean_path, str(path)))
        for name, path in paths.items()
    }
    checker.know([core, *found.values()])
    return found["crowded"]


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_ask_names_the_cause_its_place_and_the_remedy(
    checker: Checker, crowded: LeanEnvironment, way: str
) -> None:
    found = dict[str, str]()
    for name, (text, words) in FAULTS.items():
        if way == "outline" and name not in OF_HEADERS:
            continue  # an outline has the faulty commands, not their errors
        if way == "extract" and name == "unread proof":
            continue  # an extraction names the first error of a command as Lean reports it
        said = WAYS[way](checker, crowded, text)
        # An extraction counts theorems below an error, not errors.
        told = all(each in said or (way == "extract" and "more" in each) for each in words)
        if not told or "an image" in said:
            found[name] = said
    assert found == {}


def test_what_lies_below_an_error_is_left_out_for_that_error_and_not_its_own(
    checker: Checker, core: LeanEnvironment
) -> None:
    text = f"{HEADER}{BROKEN}{FOLLOWERS}"
    source = SourceFile(path="A.lean", module="A", text=text)
    found = checker.extract(source, core, limits=LIMITS, most=100)
    assert {each.why for each in found.left_out} == {"error above"}
    assert len(found.left_out) == 30
    assert len({each.words for each in found.left_out}) == 1
    assert "line 3, in Shelf.empty: " in found.left_out[0].words
