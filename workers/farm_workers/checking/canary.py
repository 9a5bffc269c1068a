"""Canary step: judges programs with known verdicts before a worker serves an environment."""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from farm.assembly.challenge import Challenge
from farm.errors import FarmError
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Reason, judge
from farm.limits import Limits
from farm.log import logger
from farm_workers.box.bubblewrap import python
from farm_workers.box.readable_paths import closed_folder, is_open
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import KernelChecker, LeanEnvironment
from farm_workers.lean.way import COLD, FIRST_LOAD
from farm_workers.metrics import events

_log = logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class LeanCanary:
    """A program with a known verdict: its text below the header, the expected reason, and its limits.

    With a `statement` the canary is judged on `tier`, as a proof of that statement. `also` holds the reasons
    that are accepted besides, for headers that do not declare the tactics and constants in its text. `alone`
    is the checker that is asked about it, and nobody else; None: it is judged as any program is.
    """

    name: str
    body: str
    expected: Reason
    limits: Limits
    statement: str = ""
    also: frozenset[Reason] = frozenset()
    tier: str = Tier.AUDIT
    alone: KernelChecker | None = None

    def accepts(self, reason: Reason) -> bool:
        """Return whether a verdict with this reason is right for the canary."""
        return reason is self.expected or reason in self.also

    def check(self, header: str) -> Check:
        """Return the check of the canary in an environment with this header."""
        challenge = Challenge(program=f"{header}{self.statement}", name="farm_canary")
        return Check.of(
            program=header + self.body,
            limits=self.limits,
            challenge=challenge if self.statement else None,
            assurance=Assurance(tier=self.tier) if self.statement else None,
        )


#: Canaries are the first programs to read their header, so a slow disk must not fail them.
_AMPLE = replace(FIRST_LOAD, memory_mib=Limits().memory_mib)
#: A second kernel that takes more seconds for a small proof fails its canary, so that examinations end soon.
_CHECKER_SECONDS = 60.0
#: An instance search without an end, which takes some 400 MiB a second. It declares its own types.
_ENDLESS = """\
namespace FarmCanary
inductive Number : Type where
  | zero : Number
  | next (n : Number) : Number
class Climbs (n : Number) : Type where
  witness : Number
instance climb (n : Number) [Climbs (Number.next n)] : Climbs n := Climbs.mk Number.zero
set_option maxRecDepth 100000000 in
set_option synthInstance.maxSize 100000000 in
set_option synthInstance.maxHeartbeats 0 in
set_option maxHeartbeats 0 in
theorem endless : Eq (Climbs.witness Number.zero) Number.zero := Eq.refl Number.zero
end FarmCanary
"""

_OTHER = "theorem farm_canary : True → True := fun h => h\n"

#: These canaries mean the same under `import Mathlib` and under the few declarations of the embedded library.
PROVED, ERROR, SORRY, TIMEOUT, MEMORY = (
    LeanCanary(name=name, body=body, expected=expected, limits=limits)
    for name, body, expected, limits in (
        ("proved", "theorem farm_canary : True := True.intro\n", Reason.OK, _AMPLE),
        ("error", "theorem farm_canary : False := True.intro\n", Reason.ERROR, _AMPLE),
        ("sorry", "theorem farm_canary : False := sorry\n", Reason.HAS_SORRY, _AMPLE),
        ("timeout", _ENDLESS, Reason.WALL_LIMIT, replace(_AMPLE, wall_seconds=0.3)),
        ("memory", _ENDLESS, Reason.MEMORY_LIMIT, replace(_AMPLE, memory_mib=128)),
    )
)

_TRUE = "theorem farm_canary : True := sorry\n"
#: Shows that the audit can read the modules of this Lean; otherwise sound proofs would be rejected.
AUDITED = LeanCanary(name="audited", body=PROVED.body, expected=Reason.OK, limits=_AMPLE, statement=_TRUE)
REPLAYED = replace(AUDITED, name="replayed", tier=Tier.KERNEL)
#: `decide +kernel` leaves the proof to the kernel, and `debug.skipKernelTC` makes Lean skip its kernel.
REFUSED = replace(
    REPLAYED,
    name="refused",
    body="set_option debug.skipKernelTC true\ntheorem farm_canary : False := by decide +kernel\n",
    expected=Reason.KERNEL,
    statement="theorem farm_canary : False := sorry\n",
    also=frozenset({Reason.ERROR}),
)
OTHER = replace(AUDITED, name="other", body=_OTHER, expected=Reason.STATEMENT_MISMATCH)

#: The canaries judged at once: a small machine has two cores, so more canaries at once would not end sooner.
_AT_ONCE = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Examination:
    """The results of an environment's canaries: their number, the ways Lean was run, and wrong verdicts."""

    canaries: int
    ways: frozenset[str]
    wrong: tuple[str, ...]


def examine(environment: LeanEnvironment, checker: Checker) -> Examination:
    """Judge the canaries in an environment in the checker's way, and the quick ones in a fresh Lean too.

    A way that does not work here falls back to a fresh Lean. If the environment has the tiers, two modules
    are audited and two are replayed, one of which the kernel must refuse. Each other kernel must accept and
    refuse the same two. A canary with a wrong verdict that accepts no proof is judged a second time.
    """
    questions = [(canary, checker.way) for canary in (TIMEOUT, MEMORY, PROVED, ERROR, SORRY)]
    if checker.way != COLD:
        questions += [(canary, COLD) for canary in (PROVED, ERROR, SORRY)]
    tiers = environment.tiers
    questions += [(each, checker.way) for each in (AUDITED, REPLAYED, REFUSED, OTHER) if each.tier in tiers]
    questions += [(refused_by(each, environment), checker.way) for each in environment.other_kernels]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        reports = list(pool.map(lambda asked: _told(environment, checker, *asked), questions))
    return Examination(
        canaries=len(questions),
        ways=frozenset(report.way for report in reports),
        wrong=_wrong(environment, zip(questions, reports, strict=True)),
    )


def refused_by(checker: KernelChecker, environment: LeanEnvironment) -> LeanCanary:
    """Return the canary that a checker alone must refuse: a seal whose own kernel refuses does not run it."""
    which = "" if len(environment.other_kernels) == 1 else f" {checker.name}"
    return replace(REFUSED, name=f"refused by the checker{which}", alone=checker)


def require_sound(environment: LeanEnvironment, checker: Checker) -> None:
    """Judge the canaries in an environment; raises FarmError if a verdict is wrong.

    If the checker's way does not work with this Lean, a warning is logged and Lean is run cold, which is
    slower and otherwise equal.
    """
    examined = examine(environment, checker)
    if examined.wrong:
        raise FarmError(refusal(environment, examined) + closed(environment, checker.isolation))
    if checker.way not in examined.ways:
        name = _named(environment)
        _log.warning("The way %s does not work with this Lean; running it cold: %s", checker.way, name)


def refusal(environment: LeanEnvironment, examined: Examination) -> str:
    """Return the message that an environment's canaries got wrong verdicts, with a remedy if one is known."""
    return f"{_named(environment)} is not fit to judge: {'; '.join(examined.wrong)}{_remedy(examined)}"


def closed(environment: LeanEnvironment, isolation: str) -> str:
    """Return a message that names an environment's folder which is closed to the user of checks, else ""."""
    above = "bwrap" not in isolation
    if os.geteuid() != 0 or (above and not is_open(Path(python()))):  # then checks may read all files
        return ""
    found = (closed_folder(folder, above=above) for folder in environment.folders if folder.exists())
    if (folder := next((each for each in found if each is not None), None)) is None:
        return ""
    mode = stat.S_IMODE(folder.stat().st_mode)
    return (
        f"; checks run as another user than root, for whom the folder {folder} (mode {mode:04o}) is closed: "
        f"run chmod a+x {folder}, or move the environment out of it"
    )


def _named(environment: LeanEnvironment) -> str:
    return f"environment {environment.name!r} ({environment.toolchain})"


def trial(checker: Checker) -> Callable[[LeanEnvironment], tuple[str, ...]]:
    """Return a function that judges one canary with a fresh Lean and describes a wrong verdict.

    The canary runs every step of a check: its statement is new each time, so it is compiled and cached too.
    """
    numbers = itertools.count(1)

    def wrong(environment: LeanEnvironment) -> tuple[str, ...]:
        statement = f"-- {os.getpid()} {next(numbers)}\n{AUDITED.statement}"
        canary = replace(AUDITED, statement=statement) if environment.audited else PROVED
        return _wrong(environment, [((canary, COLD), _report(environment, checker, canary, COLD))])

    return wrong


def _remedy(examined: Examination) -> str:
    """Return a remedy if all wrong verdicts come from modules that the audit cannot read, else ""."""
    names = {AUDITED.name, OTHER.name, REPLAYED.name, REFUSED.name}
    full = os.strerror(errno.ENOSPC)
    wrong = {each.partition(" (")[0] for each in examined.wrong}
    if AUDITED.name not in wrong or not wrong <= names or any(full in each for each in examined.wrong):
        return ""
    return (
        "; the audit cannot read the modules of this Lean: set `audit = false` in its table to serve it "
        "on the tier lean only (`farm environments add` does so with --no-audit)"
    )


def _told(environment: LeanEnvironment, checker: Checker, canary: LeanCanary, way: str) -> Report:
    """Return the report of a canary; a wrong verdict that accepts no proof is judged once more.

    On a very busy machine a canary may hit another limit than the one that it tests. A canary that was
    accepted against expectation is not judged again, and neither is one whose kernel used up its time.
    """
    report = _report(environment, checker, canary, way)
    reason = judge(report).reason
    if reason in (Reason.OK, Reason.KERNEL_TIME) or canary.accepts(reason):
        return report
    _log.warning(
        "The canary %s came out as %s in %s; judging it again", canary.name, reason, environment.name
    )
    return _report(environment, checker, canary, way)


def _report(environment: LeanEnvironment, checker: Checker, canary: LeanCanary, way: str) -> Report:
    check = canary.check(environment.header)
    if environment.other_kernels and canary.tier == Tier.KERNEL:
        limits = replace(check.limits, wall_seconds=_CHECKER_SECONDS, cpu_seconds=2 * _CHECKER_SECONDS)
        check = replace(check, limits=limits)
    if canary.alone is not None:
        return checker.ask_checker(check, environment, canary.alone, way=way)
    return checker.check(check, environment, way=way)


def _wrong(
    environment: LeanEnvironment, answers: Iterable[tuple[tuple[LeanCanary, str], Report]]
) -> tuple[str, ...]:
    """Return a description of each wrong verdict, which names all canaries that got it."""
    alike: dict[str, list[str]] = {}
    for (canary, way), report in answers:
        verdict = judge(report)
        is_right = canary.accepts(verdict.reason)
        events.canary_judged(environment.name, passed=is_right)
        if not is_right:
            alike.setdefault(f"{verdict.reason}: {verdict.detail}", []).append(f"{canary.name} ({way})")
    return tuple(f"{', '.join(names)} came out as {how}" for how, names in alike.items())
