"""Which modules a header names that an environment lacks, and what its author is told to type."""

from __future__ import annotations

from pathlib import Path

import pytest
from farm_workers.environments.lacking import lacking, remedy
from farm_workers.environments.lean_environment import LeanEnvironment

MODULES = ("Core.olean", "Shop/Price.olean", "Shop/Cart/Basic.olean", "Shop/Cart/Zoo.olean", "A-B/C.olean")


def an_environment(name: str, folder: Path) -> LeanEnvironment:
    return LeanEnvironment(
        name=name,
        digest=name,
        toolchain="Lean 4.35.0",
        lean=("/no/such/lean",),
        lean_path=(str(folder),),
        header="prelude\nimport Core\n",
    )


@pytest.fixture
def shop(tmp_path: Path) -> LeanEnvironment:
    for each in MODULES:
        place = tmp_path / "shop" / each
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    (tmp_path / "outside.olean").touch()
    return an_environment("shop", tmp_path / "shop")


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("prelude\nimport Core\nimport Shop.Price", []),
        ("prelude -- a comment\nimport /- another -/ Shop.Price", []),
        ("prelude\npublic import all Core", []),
        ("import Core", ["Init"]),
        ("theorem t : True := .intro", ["Init"]),
        ("prelude\nimport Shop", ["Shop"]),
        ("prelude\nimport Nope import Core import Nope.More", ["Nope", "Nope.More"]),
        ("prelude\nimport «A-B».C", []),
        ("prelude\nimport «..».outside", ["«..».outside"]),
        ("prelude\nimport «../outside»", ["«../outside»"]),
        (f"prelude\nimport {'x' * 5000}", ["x" * 5000]),
        ("prelude\ntheorem t : True := .intro -- import Nope", []),
    ],
)
def test_the_modules_that_an_environment_lacks(shop: LeanEnvironment, text: str, missing: list[str]) -> None:
    assert lacking(text, shop) == missing
    assert (remedy(text, shop, []) == "") == (not missing)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("Shop.Prise", "it has Shop.Price: correct the import."),
        ("Shpo.Price", "correct the import, or add an environment that has it: farm environments add --help"),
        ("Coer", "it has Core: correct the import."),
        ("Shop.Cart", "it has Shop.Cart.Basic: correct the import."),
        ("Shop.Cart.Zo", "it has Shop.Cart.Zoo: correct the import."),
        (
            "Quite.Another",
            "correct the import, or add an environment that has it: farm environments add --help",
        ),
    ],
)
def test_the_likeliest_correction_is_named(shop: LeanEnvironment, module: str, words: str) -> None:
    said = remedy(f"prelude\nimport {module}\n", shop, [shop])
    assert said == f"The environment 'shop' has no module {module}; {words}"


def test_only_an_environment_with_all_modules_of_the_header_is_named(
    shop: LeanEnvironment, tmp_path: Path
) -> None:
    bare = an_environment("bare", tmp_path / "none")
    both, one = "prelude\nimport Core import Shop.Price", "prelude\nimport Shop.Price import Nope"
    assert "'shop' has all that the header imports: use --environment shop" in remedy(
        both, bare, [bare, shop]
    )
    twins = [shop, an_environment("twin", tmp_path / "shop")]
    assert "'shop' and 'twin' have all" in remedy(both, bare, twins)
    assert "--environment" not in remedy(one, bare, twins)


def test_a_header_of_many_modules_names_the_first(shop: LeanEnvironment) -> None:
    said = remedy("prelude\n" + "".join(f"import No.M{each}\n" for each in range(5000)), shop, [])
    assert said.startswith("The environment 'shop' has no modules No.M0, No.M1, No.M2 and others; ")
