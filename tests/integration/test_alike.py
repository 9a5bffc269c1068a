"""Checks that need one image are claimed together, wherever they stand in the queue."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from farms import CORE, load
from sqlalchemy import Engine

from farm.judging.states import Priority
from farm.store.attempt import Alike, Claim
from farm.store.transitions import Store


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE])
    return store


def claims(store: Store, *, most: int = 1, **asked: Any) -> list[Claim]:
    return store.claim(("core",), worker="w1", lease_seconds=60, most=most, **asked)


def of_images(*numbers: int) -> list[dict[str, object]]:
    """Return lines whose programs need these images."""
    programs = [
        f"prelude\nimport /- {each} -/ Core\ntheorem t{at} : True := .intro"
        for at, each in enumerate(numbers)
    ]
    return [{"name": str(at), "predicted_proof": program} for at, program in enumerate(programs)]


def named(claims: Sequence[Claim]) -> list[str]:
    """Return the names of the theorems that were claimed, in order."""
    return [re.findall(r"theorem t(\d+)", claim.check.program)[0] for claim in claims]


def test_what_is_claimed_together_needs_one_image(store: Store, tmp_path: Path) -> None:
    load(store, tmp_path / "a.jsonl", *of_images(1, 2, 1, 3, 1))
    assert named(claims(store, most=5)) == ["0", "2", "4"]
    assert named(claims(store, most=5)) == ["1"]
    assert named(claims(store, most=5)) == ["3"]


def test_what_needs_the_same_image_is_claimed_wherever_it_stands(store: Store, tmp_path: Path) -> None:
    load(store, tmp_path / "a.jsonl", *of_images(1, 2, 2, 1, 2, 1))
    (first,) = claims(store)
    alike = Alike(environment="core", priority=first.priority, image=first.image, turn=first.turn)
    assert named(claims(store, most=1, alike=alike)) == ["3"]
    assert named(claims(store, most=9, alike=alike)) == ["5"]
    assert claims(store, alike=alike) == []
    some = replace(alike, image=1, turn=0, exact=False)
    assert named(claims(store, most=9, alike=some)) == ["1", "2", "4"]
    assert claims(store, alike=some) == []


def test_what_is_alike_waits_for_the_classes_before_it(store: Store, tmp_path: Path) -> None:
    load(store, tmp_path / "a.jsonl", *of_images(1, 1))
    (first,) = claims(store)
    alike = Alike(environment="core", priority=first.priority, image=first.image)
    load(store, tmp_path / "b.jsonl", *of_images(2), priority=Priority.INTERACTIVE)
    assert claims(store, alike=alike) == []
    assert [claim.priority for claim in claims(store)] == [Priority.INTERACTIVE]
    assert named(claims(store, alike=alike)) == ["1"]


def test_what_is_alike_is_of_the_tiers_that_can_be_had(store: Store, tmp_path: Path) -> None:
    load(store, tmp_path / "a.jsonl", *of_images(1, 1))
    (first,) = claims(store)
    alike = Alike(environment="core", priority=first.priority, image=first.image)
    assert claims(store, alike=alike, tiers={"core": ["lean"]}) == []
    assert named(claims(store, alike=alike, tiers={"core": ["kernel"]})) == ["1"]
