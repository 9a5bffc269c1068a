"""Machine step, fitting: tries on this machine whether the Lean of an environment can be forked.

The toolchain's own modules describe its functions (`farm_workers.binding.modules`). Whether the description
is right, and whether Lean behaves in a fork as it does in a process of its own, is tried: each way to
elaborate, the best one first, has to judge the canaries and the corpus of tricks rightly, with the messages,
positions and facts that a fresh Lean gives, and to outlive a hundred forks. A crash, or any difference, is an
answer of this step and no failure.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from farm.documents import decoded
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Reason, judge
from farm.limits import Limits
from farm.log import logger
from farm_workers.audit.declarations import Module
from farm_workers.audit.olean import MalformedOlean, opened
from farm_workers.binding import modules
from farm_workers.binding.description import encoded
from farm_workers.binding.signatures import Description
from farm_workers.box import once as box
from farm_workers.box.bubblewrap import python
from farm_workers.box.isolation import Isolation
from farm_workers.checking.canary import AUDITED, ERROR, OTHER, PROVED, REFUSED, REPLAYED, SORRY
from farm_workers.checking.checker import Checker
from farm_workers.environments.environment import Environment
from farm_workers.environments.fit import Fit, Tried, engine, path_of, save
from farm_workers.environments.lean_environment import LeanEnvironment, environment_variables, has_run
from farm_workers.exploits import corpus
from farm_workers.lean.way import COLD, FORKED
from farm_workers.replay import FOLDERS

#: The ways to elaborate in a fork, the best one first, by the names of their abilities.
WAYS = ("snapshots", "commands")
#: How many forks an image has to outlive, and how many runs of a fresh Lean are timed beside them.
FORKS, COLD_RUNS = 100, 5
#: The most compiled modules that are read, and the most misfits and reasons that are kept.
MODULES, MOST_KEPT = 1000, 5
#: The most seconds for comparing tricks with a fresh Lean, and for reading modules.
COMPARE_SECONDS, READ_SECONDS = 240.0, 30.0
#: How many tricks are tried at once.
_AT_ONCE = 2
_CANARIES = (PROVED, ERROR, SORRY, AUDITED, REPLAYED, REFUSED, OTHER)
_START = "import sys; sys.path.insert(0, {!r}); from farm_workers.binding.__main__ import main; main()"
_WORKERS = Path(__file__).parents[2]
#: Limits of a step that reads no program.
_QUICK = Limits(wall_seconds=60.0, cpu_seconds=60.0, memory_mib=4096)

_log = logger(__name__)
#: Prints the present step.
Say = Callable[[str], None]


def _quiet(_: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trials:
    """The number of forks, of runs of a fresh Lean and of tricks, None for all, and the ways to try."""

    forks: int = FORKS
    cold_runs: int = COLD_RUNS
    compare_seconds: float = COMPARE_SECONDS
    ways: Sequence[str] = WAYS
    tricks: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Bound:
    """The abilities that a library lacks under a description, which comes from a `source`."""

    source: str
    lacking: dict[str, str]


_ALL = Trials()


def fitted(
    environment: LeanEnvironment,
    home: Path,
    isolation: Isolation,
    say: Say = _quiet,
    trials: Trials = _ALL,
    given: Description | None = None,
) -> Fit:
    """Try how the Lean of an environment can be forked; only its description is written.

    A `given` description counts instead of that of the toolchain's modules.
    """
    began = time.monotonic()
    library = environment.library
    start = Fit(digest=environment.digest, lean=environment.toolchain, source="", engine=engine())
    if library is None:
        return _without(start, f"{environment.lean[0]} has no shared library beside it")
    say("Read how this Lean describes its functions")
    try:
        description = _described(environment, library, home, given)
    except (MalformedOlean, OSError) as error:
        return _without(start, f"Lean's own modules cannot be read: {error}")
    try:
        bound = _bound(environment, library, description, isolation)
    except ValueError as error:
        return _without(start, str(error))
    described = time.monotonic() - began
    fit = replace(start, description=description, source=bound.source, lacking=bound.lacking)
    fit = _tried(environment, fit, home, isolation, say, trials)
    say("Read compiled modules of the environment")
    number, misfits = _read(environment)
    figures = {"describe_seconds": described, **fit.figures, "fit_seconds": time.monotonic() - began}
    return replace(fit, modules=number, misfits=misfits, figures={k: round(v, 4) for k, v in figures.items()})


def with_fit(
    environment: Environment, *, home: Path, isolation: Isolation, way: str, say: Say = _quiet
) -> Environment:
    """Return an environment with its fit, which is tried and kept if it is needed and not known.

    It is needed where Lean is to be forked, and the farm's tests have not run its release. Raises FarmError
    if the fit cannot be kept.
    """
    if not isinstance(environment, LeanEnvironment):
        return environment
    return lean_with_fit(environment, home=home, isolation=isolation, way=way, say=say)


def lean_with_fit(
    environment: LeanEnvironment, *, home: Path, isolation: Isolation, way: str, say: Say
) -> LeanEnvironment:
    """Return a Lean environment with its fit, as `with_fit` does."""
    if environment.fit or way != FORKED:
        return environment
    if environment.library is None or has_run(environment.toolchain):
        return environment
    _log.info("Trying how %s (%s) can be forked", environment.name, environment.toolchain)
    fit = fitted(environment, home, isolation, say)
    save(home, fit)
    _log.info("%s: %s", environment.name, fit.words)
    return replace(environment, fit=fit)


def _without(fit: Fit, why: str) -> Fit:
    return replace(fit, tried=(Tried(way=WAYS[0], fits=False, why=(why,)),))


def _described(environment: LeanEnvironment, library: Path, home: Path, given: Description | None) -> str:
    """Write the description of a toolchain to a file and return its path, "" for the farm's own."""
    if given is None and has_run(environment.toolchain):
        return ""
    found = given or modules.describe(library.parent)
    path = path_of(home, environment.digest).with_suffix(".description.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(encoded(found), encoding="utf-8")
    return str(path)


def _bound(environment: LeanEnvironment, library: Path, description: str, isolation: Isolation) -> _Bound:
    """Return the abilities that a library lacks. Raises ValueError if the library cannot be loaded."""
    given = [description] if description else []
    words = [python(), "-I", "-S", "-c", _START.format(str(_WORKERS)), str(library), *given]
    run = box.run(
        words,
        isolation=isolation,
        limits=_QUICK,
        environment=environment_variables(environment),
        visible=[*FOLDERS, _WORKERS / "farm_workers" / "audit", *environment.folders, *map(Path, given)],
    )
    if run.exit_status != 0:
        said = run.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ValueError(f"the library cannot be loaded: {run.box_error or said or 'it crashed'}")
    return decoded(_Bound, json.loads(run.stdout))


def _tried(
    environment: LeanEnvironment, fit: Fit, home: Path, isolation: Isolation, say: Say, trials: Trials
) -> Fit:
    """Try the ways, the best one first, until one fits."""
    tried: list[Tried] = []
    for way in trials.ways:
        if lacks := fit.lacking.get(way) or fit.lacking.get("seal"):
            tried.append(Tried(way=way, fits=False, why=(lacks,)))
            continue
        say(f"Try the way {way}: canaries, tricks, and a hundred forks, beside a fresh Lean")
        candidate = replace(environment, fit=replace(fit, way=way))
        trial = _Trial(candidate, trials)
        with Checker(isolation, home=home, way=FORKED, concurrency=_AT_ONCE) as checker:
            why = tuple(itertools.islice(trial.misfits(checker), MOST_KEPT))
        tried.append(Tried(way=way, fits=not why, why=why))
        fit = replace(fit, cases=fit.cases + trial.cases)
        if not why:
            return replace(fit, way=way, tried=tuple(tried), figures=trial.figures)
    return replace(fit, tried=tuple(tried))


Fact = Callable[[Report], object]
#: Facts that must be equal in a fork and in a fresh Lean, which cannot keep examples, so verdicts on tricks
#: with examples differ, and only those of canaries are compared.
_MESSAGES: Mapping[str, Fact] = {"messages and positions": lambda report: report.answer.messages}
_FACTS: Mapping[str, Fact] = {
    **_MESSAGES,
    "reason and detail": lambda report: (judge(report).reason, judge(report).detail),
    "facts of the module": lambda report: (
        report.audit
        and (report.audit.accepted, report.audit.target, report.audit.axioms, report.audit.constants)
    ),
}


class _Trial:
    """One way in one environment; `cases` counts the judged programs, `figures` are seconds and ratios."""

    def __init__(self, environment: LeanEnvironment, trials: Trials) -> None:
        self._environment, self._trials = environment, trials
        self.cases = 0
        self.figures: dict[str, float] = {}

    def misfits(self, checker: Checker) -> Iterator[str]:
        """Yield a sentence for each reason why the way does not fit."""
        began = time.monotonic()
        if why := checker.cannot_fork(self._environment):
            yield f"no image of the header: {why}"
            return
        self.figures["image_seconds"] = time.monotonic() - began
        yield from self._canaries(checker)
        yield from self._tricks(checker)
        yield from self._forks(checker)
        yield from self._goals(checker)

    def _canaries(self, checker: Checker) -> Iterator[str]:
        for canary in _CANARIES:
            check = canary.check(self._environment.header)
            report = self._forked(checker, check)
            reason = judge(report).reason
            if not canary.accepts(reason):
                yield f"the canary {canary.name} came out as {reason}"
            yield from self._compared(checker, canary.name, check, report, _FACTS)

    def _tricks(self, checker: Checker) -> Iterator[str]:
        end = time.monotonic() + self._trials.compare_seconds
        # A fresh Lean, with which forks are compared, does not list the tactics that it ran.
        fit = (case for case in corpus.fitting(self._environment) if not case.task.forbid)
        cases = corpus.one_of_each(fit)[: self._trials.tricks]

        def tried(case: corpus.Case) -> list[str]:
            return [] if time.monotonic() > end else list(self._trick(checker, case))

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            yield from itertools.chain.from_iterable(pool.map(tried, cases))

    def _trick(self, checker: Checker, case: corpus.Case) -> Iterator[str]:
        found = corpus.judged(checker, self._environment, case, Tier.KERNEL)
        self.cases += 1
        if not found.is_right and not found.is_failure:
            yield f"the trick {case.name} came out as {found.verdict.reason}"
        # A program's code can tell the ways apart, and print anything. Without a statement a fork adds errors
        # about declarations that leave nothing, for which a fresh Lean does not look.
        if not case.runs_code and case.statement:
            check = corpus.asked(self._environment, case, Tier.KERNEL)
            yield from self._compared(checker, case.name, check, found.report)

    def _forks(self, checker: Checker) -> Iterator[str]:
        check = PROVED.check(self._environment.header)
        forked = [self._seconds(checker, check, FORKED) for _ in range(self._trials.forks)]
        cold = [self._seconds(checker, check, COLD) for _ in range(self._trials.cold_runs)]
        if None in forked:
            yield f"{forked.count(None)} of {len(forked)} forks in a row did not answer"
            return
        times = median(each for each in forked if each is not None), median(each or 0.0 for each in cold)
        self.figures |= {"forked_seconds": times[0], "cold_seconds": times[1]}

    def _seconds(self, checker: Checker, check: Check, way: str) -> float | None:
        began = time.monotonic()
        report = checker.check(check, self._environment, way=way)
        is_right = report.way == way and judge(report).reason is Reason.OK
        return time.monotonic() - began if is_right else None

    def _goals(self, checker: Checker) -> Iterator[str]:
        fit = self._environment.fit
        if fit is None or "goals" in fit.lacking:
            return
        report = self._forked(checker, replace(SORRY.check(self._environment.header), goals=True))
        if not report.goals:
            yield "the goal at a sorry was not printed"

    def _forked(self, checker: Checker, check: Check) -> Report:
        self.cases += 1
        return checker.check(check, self._environment, way=FORKED)

    def _compared(
        self, checker: Checker, name: str, check: Check, forked: Report, facts: Mapping[str, Fact] = _MESSAGES
    ) -> Iterator[str]:
        """Yield the first difference between a fork's facts and a fresh Lean's."""
        if forked.way != FORKED:
            if forked.way == COLD:
                yield f"{name}: a fresh Lean had to answer in place of a fork"
            return
        cold = checker.check(check, self._environment, way=COLD)
        if not (forked.run.is_undisturbed and cold.run.is_undisturbed):
            return  # a limit ended one of them, at whichever moment
        for what, of in facts.items():
            if of(forked) != of(cold):
                yield f"{name}: {what} of a fork differ from those of a fresh Lean"
                return


def _read(environment: LeanEnvironment) -> tuple[int, tuple[str, ...]]:
    """Have the audit read compiled modules; return their number, and a sentence for each misfit."""
    end, read, misfits = time.monotonic() + READ_SECONDS, 0, list[str]()
    for path in itertools.islice(_modules(environment), MODULES):
        if time.monotonic() > end:
            break
        read += 1
        try:
            with opened(path) as olean:
                module = Module(olean)
                for name in module.names:
                    module.constant(name)
        except (MalformedOlean, OSError) as error:
            if len(misfits) < MOST_KEPT:
                misfits.append(f"{path.name}: {error}")
    return read, tuple(misfits)


def _modules(environment: LeanEnvironment) -> Iterator[Path]:
    folders: Sequence[Path] = [Path(each) for each in environment.lean_path]
    library = environment.library
    if library is not None and library.parent.name == "lean":
        folders = [*folders, library.parent]
    for folder in folders:
        yield from (path for path in sorted(folder.rglob("*.olean")) if path.suffixes == [".olean"])
