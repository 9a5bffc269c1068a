"""Nothing passes on: no trick of one check changes the verdict of another, nor is its text found in one."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from farm.assurance import GOLD
from farm.verdict import Outcome, Reason, judge
from tests.processes import PATIENCE, eventually, family
from workers.box.isolation import Isolation
from workers.checker import Checker
from workers.environments import LeanEnvironment
from workers.exploits.corpus import Case, asked, judged, read

TIER = GOLD
#: How many honest and how many false lines come after the tricks, and one of each beside every trick.
AFTER = int(os.environ.get("FARM_TEST_AFTER", "10"))
TRICKS = [case for case in read() if case.kind.startswith("native code")]
#: Of a process, so much is read at a time, overlapping by the length of what is looked for.
_BLOCK = 1 << 24


@pytest.fixture
def alone(isolation: Isolation, tmp_path: Path) -> Iterator[Checker]:
    """A checker that has judged nothing."""
    with Checker(isolation, home=tmp_path, concurrency=2) as found:
        yield found


@dataclass(frozen=True)
class Line:
    """An honest or a false theorem about a number, and what must come of it."""

    number: int
    honest: bool

    @property
    def case(self) -> Case:
        right = self.number if self.honest else self.number + 1
        stated = f"theorem t : {self.number} + 0 = {right}"
        return Case(
            name=stated,
            kind="line",
            statement=f"{stated} := by sorry",
            program=f"{stated} := by exact rfl\n",
            seconds=30.0 * PATIENCE,
        )

    @property
    def expected(self) -> Reason:
        return Reason.OK if self.honest else Reason.ERROR

    def judged(self, checker: Checker, core: LeanEnvironment) -> tuple[int, bool, Reason]:
        return self.number, self.honest, judged(checker, core, self.case, TIER).verdict.reason

    @property
    def right(self) -> tuple[int, bool, Reason]:
        return self.number, self.honest, self.expected


def lines(first: int, count: int) -> list[Line]:
    return [Line(first + number, honest) for number in range(count) for honest in (True, False)]


@pytest.mark.timeout(3600)
def test_tricks_that_run_code_change_no_other_verdict(alone: Checker, core: LeanEnvironment) -> None:
    before, beside, after = lines(100, 2), lines(200, len(TRICKS)), lines(300, AFTER)
    assert [line.judged(alone, core) for line in before] == [line.right for line in before]
    with ThreadPoolExecutor(2) as threads:
        tricks = [threads.submit(judged, alone, core, case, TIER) for case in TRICKS[:2]]
        others = []
        for place, case in enumerate(TRICKS):
            tricks.append(threads.submit(judged, alone, core, case, TIER))
            others += [threads.submit(line.judged, alone, core) for line in beside[2 * place : 2 * place + 2]]
        assert [other.result() for other in others] == [line.right for line in beside]
        assert [
            each.result().case.name for each in tricks if each.result().verdict.outcome is Outcome.PROVED
        ] == []
    assert [line.judged(alone, core) for line in after] == [line.right for line in after]


#: A program that sleeps in native code, with what is to be found in its memory.
_SLEEPER = """\
@[extern "native"] opaque IO.sleep (ms : Nat) (now : Lean.Syntax) : Nat
macro "sleep!" : term => do
  match IO.sleep 100000 (← Lean.MonadRef.getRef) with
  | 0 => `(rfl)
  | _ => `(True.intro)
theorem t : 1 = 1 := sleep! -- MARK
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="reads the memory of processes that cannot be dumped")
def test_the_text_of_one_check_is_in_the_memory_of_no_other(alone: Checker, core: LeanEnvironment) -> None:
    first, second = (uuid.uuid4().hex for _ in range(2))
    told = f'theorem own_{first} : "{first}" = "{first}" := rfl -- {first}\ntheorem t : 1 = 1 := rfl\n'
    stated = Case(name="marked", kind="line", statement="theorem t : 1 = 1 := by sorry", program=told)
    assert judge(alone.check(asked(core, stated, TIER), core)).reason is Reason.OK
    sleeper = Case(
        name="sleeper",
        kind="line",
        statement="theorem t : 1 = 1 := by sorry",
        program=_SLEEPER.replace("MARK", second),
        seconds=10.0 * PATIENCE,
    )
    thread = threading.Thread(target=alone.check, args=(asked(core, sleeper, TIER), core))
    thread.start()
    try:
        eventually(lambda: holders(second), seconds=8.0)
        assert holders(first) == []
    finally:
        thread.join()


def holders(mark: str) -> list[str]:
    """Return what processes that this one started, or theirs, have a mark in their memory."""
    own = os.getpid()
    return [each.command for each in family(own) if each.pid != own and _holds(each.pid, mark.encode())]


def _holds(pid: int, mark: bytes) -> bool:
    try:
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            return any(
                mark in block for region in _regions(pid) for block in _blocks(memory.fileno(), *region, mark)
            )
    except OSError:  # it is gone
        return False


def _regions(pid: int) -> Iterator[tuple[int, int]]:
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        place, rights, *_ = line.split()
        if rights.startswith("rw") or (rights.startswith("r") and "memfd:" in line):
            start, end = (int(word, 16) for word in place.split("-"))
            yield start, end


def _blocks(memory: int, start: int, end: int, mark: bytes) -> Iterator[bytes]:
    for place in range(start, end, _BLOCK):
        try:
            yield os.pread(memory, min(_BLOCK, end - place) + len(mark), place)
        except OSError:  # what is mapped and not there
            continue
