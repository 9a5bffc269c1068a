"""What a worker keeps of the headers that submissions come with: a bounded number, whatever they are."""

from __future__ import annotations

import gc
import logging
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from farm_workers.box.isolation import Isolation
from farm_workers.checking import challenges
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.images import images
from farm_workers.lean import cold
from farm_workers.lean import compile as compiling

from farm.assembly.challenge import Challenge
from farm.assembly.declaration import kept_target
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from tests.processes import family

#: So many headers are asked about, by so many threads at once, and so many are remembered of each sort.
HEADERS, THREADS, MOST = 36, 4, 4
MARK = "Unheard_of_"


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remember few of each, and no log, which would hold every header as well."""
    monkeypatch.setattr(images, "_MOST_REFUSED", MOST)
    monkeypatch.setattr(cold, "_MOST_HEADERS", MOST)
    monkeypatch.setattr(challenges, "_MOST", MOST)
    monkeypatch.setattr(compiling, "_MOST_REFUSED", MOST)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def checker(isolation: Isolation, tmp_path: Path) -> Iterator[Checker]:
    with Checker(isolation, home=tmp_path, concurrency=THREADS, most_images=MOST) as made:
        yield made


def headers_in_memory() -> set[bytes]:
    """Return the headers of which anything in this process still has the text, short statements apart."""
    kept_target.cache_clear()  # of these it keeps more, which has a test of its own
    held = (each for one in gc.get_objects() for each in gc.get_referents(one))
    texts = (each.encode(errors="replace") if isinstance(each, str) else each for each in held)
    return {found for text in texts if isinstance(text, bytes) for found in _NUMBERED.findall(text)}


_NUMBERED = re.compile(MARK.encode() + rb"\d+")


def images_alive() -> int:
    return sum(1 for each in family(os.getpid()) if each.program == "bwrap" or "images.serve" in each.command)


def ask(checker: Checker, core: LeanEnvironment, number: int, *, sound: bool) -> str:
    """Ask about a program with a header of its own, and return how Lean was run."""
    header = f"prelude -- {MARK}{number}\nimport Core\n" if sound else f"prelude\nimport {MARK}{number}\n"
    statement = f"{header}theorem t : True := sorry -- {MARK}{number}\n"
    check = Check.of(
        program=f"{header}theorem t : {'True' if sound else 'False'} := True.intro\n",
        challenge=Challenge(program=statement, name="t"),
        assurance=Assurance(),
    )
    return checker.check(check, core).way


def ask_all(checker: Checker, core: LeanEnvironment, headers: int, *, sound: bool) -> set[str]:
    with ThreadPoolExecutor(THREADS) as pool:
        return set(pool.map(lambda number: ask(checker, core, number, sound=sound), range(headers)))


@pytest.mark.timeout(1200)
def test_of_headers_that_cannot_be_imported_few_are_remembered(
    checker: Checker, core: LeanEnvironment
) -> None:
    assert ask_all(checker, core, HEADERS, sound=False) == {"cold"}
    # Several sorts of memory have their own few, such as reasons without an image and errors of statements.
    assert len(headers_in_memory()) <= 4 * MOST + 2 * THREADS


@pytest.mark.timeout(600)
def test_of_headers_that_can_be_imported_few_images_are_kept(checker: Checker, core: LeanEnvironment) -> None:
    assert ask_all(checker, core, 1, sound=True) == {"forked"}
    of_one = images_alive()
    assert ask_all(checker, core, 4 * MOST, sound=True) == {"forked"}
    assert images_alive() <= MOST * of_one
    assert len(headers_in_memory()) <= 4 * MOST + 2 * THREADS
