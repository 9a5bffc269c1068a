"""What fails in the farm is never a fault of a proof: descriptors, memory and files that are lacking."""

from __future__ import annotations

import os
import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.box.isolation import Isolation
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import KernelChecker, LeanEnvironment

from farm.assembly.challenge import Challenge
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, Verdict, judge
from farm.limits import Limits
from tests.descriptors import descriptors_left
from tests.isolation_levels import isolated
from tests.processes import PATIENCE, Process, family
from tests.toolchains import script, toolchain

STATEMENT = "theorem t : 1 = 1 := "
LIMITS = Limits(wall_seconds=20.0 * PATIENCE)
#: A message of Lean's about an import that could not be read.
UNREAD = (
    '{"severity": "error", "pos": {"line": 1, "column": 0}, "endPos": null, "fileName": "<stdin>", '
    '"caption": "", "kind": "", "data": "failed to open a module: Too many open files"}'
)


def verdict(checker: Checker, environment: LeanEnvironment, way: str | None = None) -> Verdict:
    """Return the verdict on an honest proof."""
    check = Check(
        program=f"{environment.header}{STATEMENT}rfl\n",
        challenge=Challenge(program=f"{environment.header}{STATEMENT}sorry\n", name="t"),
        limits=LIMITS,
        assurance=Assurance(tier=Tier.KERNEL),
    )
    return judge(checker.check(check, environment, way=way))


def only_the_farm_failed(verdicts: list[Verdict]) -> None:
    """Fail where an honest proof was rejected, or where nothing was tried."""
    found = Counter(each.outcome for each in verdicts)
    told = [each.detail for each in verdicts if each.outcome not in (Outcome.PROVED, Outcome.JUDGE_ERROR)]
    assert not told, told
    assert found[Outcome.JUDGE_ERROR] > 0
    assert all(each.is_tried_again for each in verdicts if each.outcome is Outcome.JUDGE_ERROR)


def test_a_worker_short_of_descriptors_rejects_no_proof(checker: Checker, core: LeanEnvironment) -> None:
    assert verdict(checker, core).outcome is Outcome.PROVED
    found = []
    for left in range(36):
        with descriptors_left(left):
            found.append(verdict(checker, core))
    only_the_farm_failed(found)
    assert any(each.outcome is Outcome.PROVED for each in found)
    assert verdict(checker, core).outcome is Outcome.PROVED


@contextmanager
def limited(processes: list[Process], which: int, most: int) -> Iterator[None]:
    """Lower a limit of processes inside the block."""
    before = {}
    try:
        for each in processes:
            with suppress(ProcessLookupError):
                before[each.pid] = resource.prlimit(each.pid, which)
                resource.prlimit(each.pid, which, (most, before[each.pid][1]))
        yield
    finally:
        for pid, was in before.items():
            with suppress(ProcessLookupError):
                resource.prlimit(pid, which, was)


@pytest.mark.parametrize(
    ("which", "amounts"),
    [(resource.RLIMIT_NOFILE, range(6, 34, 3)), (resource.RLIMIT_AS, (1 << 20, 1 << 30))],
    ids=["descriptors", "memory"],
)
def test_an_image_short_of_something_rejects_no_proof(
    isolation: Isolation, tmp_path: Path, core: LeanEnvironment, which: int, amounts: range | tuple[int, ...]
) -> None:
    others = set(family(os.getpid()))  # such as this session's servers
    found = []
    with Checker(isolation, home=tmp_path) as checker:
        for most in amounts:
            assert verdict(checker, core).outcome is Outcome.PROVED
            of_the_image = [each for each in family(os.getpid()) if each not in others]
            assert of_the_image
            with limited(of_the_image, which, most):
                found.append(verdict(checker, core))
        only_the_farm_failed(found)
        assert verdict(checker, core).outcome is Outcome.PROVED


@pytest.fixture
def unconfined(tmp_path: Path) -> Iterator[Checker]:
    """A checker whose processes may write wherever this one may."""
    with (
        isolated(tmp_path / "work", "rlimit") as isolation,
        Checker(replace(isolation, user=None), home=tmp_path) as checker,
    ):
        yield checker


def test_a_checker_that_rejects_once_and_not_again_failed_itself(
    unconfined: Checker, core: LeanEnvironment, tmp_path: Path
) -> None:
    script = f"mkdir {tmp_path / 'once'} 2>/dev/null && exit 1; exit 0"
    other = KernelChecker(name="other", command=("/bin/sh", "-c", script), visible=())
    environment = replace(core, digest="rejects once", checkers=(other,))
    assert verdict(unconfined, environment).reason is Reason.OK
    assert (tmp_path / "once").exists()


def failing_once(folder: Path, core: LeanEnvironment) -> LeanEnvironment:
    """Return the embedded environment with a Lean that cannot import a header in its second run."""
    made = toolchain(folder / "toolchain", core)
    real = made.lean.rename(made.lean.with_name("real"))
    is_second = f"[ -e {folder}/first ] && mkdir {folder}/second 2>/dev/null"
    script(
        made.lean,
        f"if {is_second}; then cat >/dev/null; echo '{UNREAD}'; exit 1; fi",
        f"mkdir {folder}/first 2>/dev/null",
        f"exec '{real}' \"$@\"",
    )
    visible = tuple(map(str, (*core.visible, made.folder, *made.visible)))
    return replace(core, digest="fails once", lean=(str(made.lean),), visible=visible)


def test_imports_that_fail_once_and_not_again_are_no_error_of_the_program(
    unconfined: Checker, core: LeanEnvironment, tmp_path: Path
) -> None:
    environment = failing_once(tmp_path, core)  # the header is read alone first
    assert verdict(unconfined, environment, "cold").reason is Reason.OK
    assert (tmp_path / "second").exists()
