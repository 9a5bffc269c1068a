"""Checks that need one image are claimed together, wherever they stand in the queue."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from farm_workers.loop import claim
from farm_workers.loop.claim import Claims
from farm_workers.loop.image_affinity import ImageAffinity
from farm_workers.loop.leases import Leases
from sqlalchemy import Engine

from farm.judging.states import Priority
from farm.judging.tiers import Tier
from farm.store.attempt import Claim
from farm.store.transitions import Store
from farm.store.watermark import Front
from farm.store.wish import Alike
from tests.farms import CORE, load
from tests.processes import eventually


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE])
    return store


def claims(store: Store, *, most: int = 1, **asked: Any) -> list[Claim]:
    return store.claim(("core",), worker="w1", lease_seconds=60, most=most, **asked)


def of_images(*numbers: int, first: int = 0) -> list[dict[str, object]]:
    """Return lines whose programs need these images; their theorems are numbered from `first` on."""
    programs = {
        at: f"prelude\nimport /- {each} -/ Core\ntheorem t{at} : True := .intro"
        for at, each in enumerate(numbers, first)
    }
    return [{"name": str(at), "predicted_proof": program} for at, program in programs.items()]


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


@pytest.fixture
def worker(store: Store, monkeypatch: pytest.MonkeyPatch) -> Claims:
    """The claims of a worker that serves two environments, for whom no time passes."""
    for made in (Front, ImageAffinity):
        monkeypatch.setattr(claim, made.__name__, partial(made, clock=lambda: 0.0))
    store.register([replace(CORE, name="other")])
    served = {name: tuple(Tier) for name in ("core", "other")}
    return Claims(store, Leases(), worker="w1", environments=served, lease_seconds=60)


def taken(worker: Claims) -> Claim:
    found = worker.take(1)
    assert found is not None
    return found


CLASSES = [
    (Priority.INTERACTIVE, Priority.ONLINE),
    (Priority.INTERACTIVE, Priority.BATCH),
    (Priority.ONLINE, Priority.BATCH),
]


@pytest.mark.parametrize("image", [1, 2])
@pytest.mark.parametrize("environment", ["core", "other"])
@pytest.mark.parametrize(("before", "behind"), CLASSES)
def test_a_check_of_a_class_before_is_the_next_that_a_worker_claims(
    store: Store,
    worker: Claims,
    tmp_path: Path,
    before: Priority,
    behind: Priority,
    environment: str,
    image: int,
) -> None:
    load(store, tmp_path / "full.jsonl", *of_images(*[1] * 12), priority=behind)
    for number in range(3):  # one after the other, into a queue that the last one left empty
        assert taken(worker).priority == behind
        (line,) = of_images(image, first=100 + number)
        load(store, tmp_path / "a.jsonl", {**line, "environment": environment}, priority=before)
        came = taken(worker)
        assert (came.environment, named([came])) == (environment, [line["name"]])


def test_a_worker_goes_on_with_its_image_after_a_class_before_has_interrupted(
    store: Store, worker: Claims, tmp_path: Path
) -> None:
    load(store, tmp_path / "full.jsonl", *of_images(1, 2, 1, 2, 1))
    assert named([taken(worker)]) == ["0"]
    load(store, tmp_path / "a.jsonl", *of_images(3), priority=Priority.INTERACTIVE)
    assert taken(worker).priority == Priority.INTERACTIVE
    assert named([taken(worker), taken(worker)]) == ["2", "4"]


def test_a_class_that_interrupts_goes_on_with_an_image_of_its_own(
    store: Store, worker: Claims, tmp_path: Path
) -> None:
    load(store, tmp_path / "full.jsonl", *of_images(1, 2, 1))
    assert named([taken(worker)]) == ["0"]
    load(store, tmp_path / "a.jsonl", *of_images(3, 4, 3, 4, first=10), priority=Priority.ONLINE)
    in_turn = named([taken(worker) for _ in range(4)])
    assert in_turn[:2] == ["10", "12"]
    assert named([taken(worker)]) == ["2"]


def test_a_check_of_a_class_before_overtakes_those_that_were_claimed_ahead(
    store: Store, worker: Claims, tmp_path: Path
) -> None:
    load(store, tmp_path / "full.jsonl", *of_images(*[1] * 6))
    worker.note(0.02)
    assert named([taken(worker)]) == ["0"]
    assert worker.prefetched() == {"core"}
    for each in range(2):
        load(store, tmp_path / "a.jsonl", *of_images(2, first=100 + each), priority=Priority.INTERACTIVE)
    eventually(lambda: any(claim.priority == Priority.INTERACTIVE for claim in [taken(worker)]))
    assert taken(worker).priority == Priority.INTERACTIVE
    assert len(worker.unbegun(all_of_them=True)) >= 1
