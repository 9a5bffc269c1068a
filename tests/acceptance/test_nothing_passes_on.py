"""Nothing passes on: no trick of one check changes the verdict of another, nor is its text found in one."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from farm_workers.box.isolation import Isolation
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.exploits.corpus import Case, asked, judged, read
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import Question

from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, judge
from farm.limits import Limits
from tests.process_memory import files_with, holders, memory_files, shared_memory, started
from tests.processes import PATIENCE, eventually

TIER = Tier.KERNEL
#: How many honest and how many false lines come after the tricks, and one of each beside every trick.
AFTER = int(os.environ.get("FARM_TEST_AFTER", "5"))
#: Two limits are left out: only the kernel meets them, in a seal, where it takes seconds for each.
LEFT = ("limits: time", "limits: memory")
TRICKS = [case for case in read() if case.runs_code and not case.is_honest and case.kind not in LEFT]


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
    images = _images()
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
    assert _images() == images


def _images() -> set[int]:
    """Return the images, and what holds them, while no check is at work."""
    return {each.pid for each in started() if "farm_workers.images.serve" in each.command}


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="reads memory of processes that cannot be dumped")
_STATEMENT = "theorem t : 1 = 1 := by sorry"
#: A program that sleeps in native code, with what is to be found in its memory.
_SLEEPER = """\
@[extern "native"] opaque IO.sleep (ms : Nat) (now : Lean.Syntax) : Nat
macro "sleep!" : term => do
  match IO.sleep 3600000 (← Lean.MonadRef.getRef) with
  | 0 => `(rfl)
  | _ => `(True.intro)
theorem t : 1 = 1 := sleep! -- MARK
"""
#: The kernel would need hours for it: a seal is at work until it is cancelled.
(_ENDLESS,) = (case for case in read() if case.name == "a reduction too long for the kernel")


@dataclass(frozen=True)
class Marked:
    """A program that was judged, with marks in a name, a string and a comment that nothing else has."""

    name: str
    string: str
    comment: str

    @classmethod
    def judged(cls, checker: Checker, core: LeanEnvironment) -> Marked:
        """Have one judged to the end."""
        marks = cls(*(uuid.uuid4().hex for _ in range(3)))
        report = checker.check(asked(core, marks.case, TIER), core)
        assert judge(report).reason is Reason.OK
        return marks

    @property
    def case(self) -> Case:
        told = f'theorem own_{self.name} : "{self.string}" = "{self.string}" := rfl -- {self.comment}\n'
        program = f"{told}theorem t : 1 = 1 := rfl\n"
        return Case(name="marked", kind="line", statement=_STATEMENT, program=program)

    @property
    def holders(self) -> list[str]:
        return holders(self.name, self.string, self.comment)


@needs_root
def test_nothing_of_a_check_is_left_when_it_is_over(
    alone: Checker, core: LeanEnvironment, isolation: Isolation, tmp_path: Path
) -> None:
    marked = Marked.judged(alone, core)
    assert _images()
    assert (marked.holders, memory_files(), shared_memory()) == ([], [], [])
    assert files_with(marked.name.encode(), tmp_path, isolation.folder) == []


@needs_root
def test_what_lean_computes_of_a_name_is_not_in_an_image(isolation: Isolation, core: LeanEnvironment) -> None:
    mark = uuid.uuid4().hex
    case = Marked(mark, "string", "comment").case
    question = Question.of(asked(core, case, TIER).program, core, Limits(), lambda: False)
    leans = LeanRunner(isolation, way="forked", most_images=1)
    try:
        with leans.compiled(question) as reply:
            assert reply.module is not None
            found = name_hash(reply.module.read(), f"own_{mark}".encode())
        assert _images()
        assert holders(found) == []
    finally:
        leans.close()


def name_hash(module: bytes, part: bytes) -> bytes:
    """Return the hash that a module has for a name that ends with a part.

    A string is an object of four words before its text; a name is a header, its prefix, its last part and the
    hash. Addresses count from the one in the file's eleventh word.
    """
    (base,) = struct.unpack_from("<Q", module, 80)
    string = struct.pack("<Q", base + module.index(part + b"\0") - 32)
    place = module.index(string)
    return module[place + 8 : place + 16]


@pytest.mark.timeout(900)
@needs_root
def test_the_text_of_one_check_is_in_the_memory_of_no_other(alone: Checker, core: LeanEnvironment) -> None:
    marked, own = Marked.judged(alone, core), uuid.uuid4().hex
    program = _SLEEPER.replace("MARK", own)
    sleeper = Case(name="", statement=_STATEMENT, program=program, seconds=300.0 * PATIENCE)
    with at_work(alone, core, sleeper):
        eventually(lambda: holders(own), seconds=120.0)
        assert (marked.holders, memory_files(), shared_memory()) == ([], [], [])


@pytest.mark.timeout(900)
@needs_root
def test_a_seal_has_seen_neither_another_check_nor_the_text_of_its_own(
    alone: Checker, core: LeanEnvironment
) -> None:
    marked, name, comment = Marked.judged(alone, core), uuid.uuid4().hex, uuid.uuid4().hex
    program = f"theorem own_{name} : 1 = 1 := rfl -- {comment}\n{_ENDLESS.program}"
    endless = replace(_ENDLESS, program=program, seconds=300.0 * PATIENCE)

    def is_sealed_without_traces() -> bool:
        # The elaborating process knows both marks, the replaying one the name alone.
        found = holders(name) and not holders(comment)
        return bool(found) and (marked.holders, shared_memory()) == ([], []) and holders(name) != []

    with at_work(alone, core, endless):
        eventually(is_sealed_without_traces, seconds=120.0)


@contextlib.contextmanager
def at_work(checker: Checker, core: LeanEnvironment, case: Case) -> Iterator[None]:
    """Have a case judged in another thread while the block lasts."""
    cancelled = threading.Event()
    check = asked(core, case, TIER)
    thread = threading.Thread(
        target=checker.check, args=(check, core), kwargs={"cancelled": cancelled.is_set}
    )
    thread.start()
    try:
        yield
    finally:
        cancelled.set()
        thread.join()
