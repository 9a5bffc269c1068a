"""Extraction step: has the Lean files of a folder elaborated, and judges the lines that come of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice, pairwise
from pathlib import Path

from farm.assembly.challenge import Challenge
from farm.datasets.history import FileHistory, NoHistory, history
from farm.datasets.journal import Journal, Unit, digest
from farm.datasets.splits import side
from farm.datasets.theorem_formats import FORMATS
from farm.datasets.theorems import Extract, LeftOut, SourceFile, Theorem, bare_name, manifest_line
from farm.judging.assurance import Assurance
from farm.judging.audit import PART_PROVED
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.verdict import Outcome, Verdict, judge
from farm.lean_text.policy.screen import NO_POLICY
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.task import Task
from farm_workers.audit.standing import MOST_LISTED, Standing
from farm_workers.checking.asked import check_of
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.edits import SORRY
from farm_workers.lean.extracted import NoExtract
from farm_workers.machine.abridging import Abridging, Shown
from farm_workers.machine.abridging import Wanted as Contexts
from farm_workers.machine.repository import NoSource, source_of

#: How often the theorems of a file are judged in two halves, where they could not be judged at once.
_MOST_HALVES = 24
#: Why a theorem of a file is not proved there.
_STANDINGS: Mapping[str, str] = {
    Standing.REFUSED: "it rests on an axiom of the file or on an unsafe constant",
    Standing.OPEN: "it contains a sorry",
    Standing.RESTS_ON_OPEN: "it rests on a sorry",
    Standing.MISSING: "the compiled file does not declare it",
    Standing.OTHER_STATEMENT: "the compiled file states something else under its name",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """The options of an extraction, those of `farm extract`; `contexts` are the shorter ones to show.

    `since` and `split` are days, in seconds since 1970.
    """

    format: str
    states: bool
    costs: bool
    dates: bool
    since: int | None
    split: int | None
    most: int
    check: bool
    check_files: bool
    limits: Limits
    environment: str | None
    contexts: Contexts | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _InFile:
    """Whether a file proves one of its theorems, None if that was not decided; and why it does not."""

    is_proved: bool | None
    why: str = ""

    @classmethod
    def of(cls, standing: str | None, unknown: str) -> _InFile:
        """Return the meaning of a part's verdict; `unknown` is the reason for None."""
        if standing is None or standing == Standing.UNCHECKED:
            return cls(is_proved=None, why=unknown)
        if standing == PART_PROVED:
            return cls(is_proved=True)
        return cls(is_proved=False, why=_STANDINGS.get(standing, standing))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Result:
    """A theorem with its verdicts and its shorter context, if the options want them."""

    theorem: Theorem
    verdict: Verdict | None
    shown: Shown | None
    in_file: _InFile | None

    @property
    def unjudged(self) -> str:
        """The reason for which the theorem was not judged, "" for none."""
        if self.verdict is not None and self.verdict.outcome is Outcome.JUDGE_ERROR:
            return self.verdict.detail
        return self.in_file.why if self.in_file is not None and self.in_file.is_proved is None else ""

    @property
    def is_proved(self) -> bool:
        """Whether the line was judged by itself, and is proved."""
        return self.verdict is not None and self.verdict.outcome is Outcome.PROVED


@dataclass(frozen=True, kw_only=True, slots=True)
class Extracting:
    """Extracts the files of one environment, several at once.

    `modules` are those of all files, and `began` is the time of the repository's first commit, for a split.
    """

    root: Path
    checker: Checker
    environment: LeanEnvironment
    wanted: Wanted
    at_once: int
    modules: tuple[str, ...] = ()
    began: int = 0

    def units(self, files: Sequence[tuple[str, Path]]) -> Iterator[Unit]:
        """Yield each file as it is finished; few more are begun than are yielded, so few are held.

        A caller that closes the iterator early waits for no file: the running ones are cancelled.
        """
        left = threading.Event()
        of_files, of_lines = ThreadPoolExecutor(self.at_once), ThreadPoolExecutor(self.at_once)
        todo, running = iter(files), set[Future[Unit]]()
        try:
            while True:
                for each in islice(todo, 2 * self.at_once - len(running)):
                    running.add(of_files.submit(self._unit, *each, left, of_lines))
                if not running:
                    return
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield future.result()
        finally:
            left.set()
            for pool in (of_files, of_lines):
                pool.shutdown(cancel_futures=True)

    def is_finished(self, name: str, file: Path, journal: Journal) -> bool:
        """Return whether a file is finished as it is now."""
        try:
            return journal.has(name, self._digest(source_of(name, file)))
        except NoSource:
            return False

    def _digest(self, source: SourceFile) -> str:
        """Return the digest of everything that the lines of a file depend on."""
        options = json.dumps([asdict(self.wanted), self.modules, self.began])
        return digest(source.path, source.text, options, self.environment.digest)

    def _unit(self, name: str, file: Path, left: threading.Event, lines: Executor) -> Unit:
        known = ""
        try:
            source = source_of(name, file)
            known = self._digest(source)
            extract = self._extract(source, left)
        except (NoExtract, NoSource) as error:
            return Unit(file=name, digest=known, facts={"failed": str(error)}, lines=())
        theorems, left_out = self._dated(source, extract)
        found = self._results(source, theorems, left, lines)
        facts = {
            "left_out": [{"name": each.name, "why": each.why, "words": each.words} for each in left_out],
            "exited": extract.exited,
            **_facts(found),
        }
        encoded = (line for each in found for line in self._lines(source, each))
        return Unit(file=source.path, digest=known, facts=facts, lines=encoded)

    def _results(
        self, source: SourceFile, theorems: Sequence[Theorem], left: threading.Event, lines: Executor
    ) -> list[_Result]:
        """Return each theorem with its verdicts and its shorter context, if the options want them."""
        unknown = [None] * len(theorems)
        verdicts: Iterable[Verdict | None] = unknown
        if self.wanted.check:
            verdicts = lines.map(lambda each: self._judged(source, each, left), theorems)
        shown: Iterable[Shown | None] = self._shown(source, theorems) or unknown
        in_file: Iterable[_InFile | None] = unknown
        if self.wanted.check_files:
            in_file = self._in_file(source, theorems, left)
        return [
            _Result(theorem=it, verdict=verdict, shown=its, in_file=its_file)
            for it, verdict, its, its_file in zip(theorems, verdicts, shown, in_file, strict=True)
        ]

    def _dated(self, source: SourceFile, extract: Extract) -> tuple[Sequence[Theorem], Sequence[LeftOut]]:
        """Return the theorems with their dates, if these are wanted, and those that are left out."""
        if not self.wanted.dates:
            return extract.theorems, extract.left_out
        try:
            known = history(self.root, source.path, source.bytes)
        except NoHistory:
            known = FileHistory(created=None, lines=())
        kept, left_out = list[Theorem](), list(extract.left_out)
        since, split = self.wanted.since, self.wanted.split
        for each in extract.theorems:
            created = known.of_lines(source.place(each.start)[0], source.place(each.proof - 1)[0])
            dated = replace(each, file_created=known.created, created=created)
            if created is None and (since is not None or split is not None):
                left_out.append(LeftOut(name=each.user_name, why="no date"))
            elif created is not None and since is not None and created.seconds < since:
                left_out.append(LeftOut(name=each.user_name, why="older"))
            elif created is not None and split is not None:
                own = side(split, created=created, file=known.created, began=self.began)
                kept.append(replace(dated, side=own))
            else:
                kept.append(dated)
        return kept, left_out

    def _extract(self, source: SourceFile, left: threading.Event) -> Extract:
        return self.checker.extract(
            source,
            self.environment,
            limits=self.wanted.limits,
            most=self.wanted.most,
            modules=self.modules,
            states=self.wanted.states,
            costs=self.wanted.costs,
            cancelled=left.is_set,
        )

    def _shown(self, source: SourceFile, theorems: Sequence[Theorem]) -> list[Shown]:
        """Return the shorter context of each theorem, if these are wanted."""
        if self.wanted.contexts is None:
            return []
        outline = partial(self.checker.outline, environment=self.environment, limits=self.wanted.limits)
        stated = [(source.part(0, it.start), source.part(it.start, it.proof)) for it in theorems]
        return Abridging(outline, self.wanted.contexts).shown(stated)

    def _in_file(
        self, source: SourceFile, theorems: Sequence[Theorem], left: threading.Event
    ) -> Iterator[_InFile]:
        """Yield for each theorem whether its file proves it; the whole file is one check, if it compiles.

        The statement is the file with `sorry` for each proof.
        A file may not compile with `sorry` for one of its proofs, as where a definition below computes with
        the theorem. Then the theorems are judged in halves, and these in halves, up to a number of checks.
        """
        more = iter(range(_MOST_HALVES))
        for first in range(0, len(theorems), MOST_LISTED):
            yield from self._halved(source, theorems[first : first + MOST_LISTED], left, more)

    def _halved(
        self, source: SourceFile, some: Sequence[Theorem], left: threading.Event, more: Iterator[int]
    ) -> list[_InFile]:
        report = self.checker.check(self._whole(source, some), self.environment, cancelled=left.is_set)
        if report.challenge_error is None or len(some) == 1 or next(more, None) is None:
            return _standings(report, some)
        half = len(some) // 2
        return [
            each for part in (some[:half], some[half:]) for each in self._halved(source, part, left, more)
        ]

    def _whole(self, source: SourceFile, theorems: Sequence[Theorem]) -> Check:
        """Return the check of a file up to the last of some theorems, against their statements."""
        last = theorems[-1]
        places = [(0, 0), *((it.proof, it.end) for it in theorems)]
        above = (source.part(end, start) for (_, end), (start, _) in pairwise(places))
        stated = "".join(f"{text}{SORRY}" for text in above) + "\n"
        return Check.of(
            program=source.part(0, last.end) + "\n",
            limits=self.wanted.limits,
            submitted=(),
            challenge=Challenge(program=stated, name=last.user_name, admits=len(theorems)),
            assurance=Assurance(tier=self.environment.tiers[0], policy=NO_POLICY, requires_all_parts=True),
            task=Task(declarations=True),
        )

    def _lines(self, source: SourceFile, found: _Result) -> Iterator[bytes]:
        more: dict[str, object] = {}
        if found.in_file is not None:
            more["proved_in_file"] = found.in_file.is_proved
        if found.shown is not None and self.wanted.contexts is not None:
            more |= found.shown.fields(self.wanted.contexts)
        if found.verdict is not None:
            more["proof_status"] = found.verdict.proof_status
        for line in FORMATS[self.wanted.format](source, found.theorem, self.wanted.environment):
            yield json.dumps({**line, **more}, ensure_ascii=False).encode("utf-8", "backslashreplace")

    def _judged(self, source: SourceFile, it: Theorem, left: threading.Event) -> Verdict:
        """Return the verdict on a line, which is judged as a submitted line is."""
        line = manifest_line(source, it, None)
        entry = Entry(
            path=source.path,
            line=1,
            name=it.user_name,
            header="",
            context=str(line["context"]),
            formal_statement=str(line["formal_statement"]),
            generation=str(line["generation"]),
            predicted_proof="",
        )
        assurance = Assurance(tier=self.environment.tiers[0], policy=NO_POLICY)
        check = check_of(entry, self.wanted.limits, assurance)
        if check.challenge is not None:  # no other line has this context: to share it would cost more
            check = replace(check.against(replace(check.challenge, context_end=0)), context_end=0)
        return judge(self.checker.check(check, self.environment, cancelled=left.is_set))


def _standings(report: Report, theorems: Sequence[Theorem]) -> list[_InFile]:
    """Return for each theorem whether its file proves it, by one report.

    The theorems are parts of one statement. Only the verdict on its own part decides about a theorem, never
    that on the whole.
    """
    parts = () if report.audit is None else report.audit.parts or ()
    standing = {bare_name(each.name): each.verdict for each in parts}
    verdict = judge(report)
    unknown = verdict.detail
    if verdict.outcome is Outcome.PROVED:  # something in the file gives `sorry` another meaning
        unknown = "the file proves its statement also with a sorry for the proof"
    return [_InFile.of(standing.get(each.user_name), unknown) for each in theorems]


def _facts(found: Sequence[_Result]) -> dict[str, object]:
    """Return the facts of a file's theorems, for the journal."""
    return {
        "theorems": len(found),
        "proved": sum(each.is_proved for each in found),
        "proved_in_file": sum(each.in_file is not None and each.in_file.is_proved is True for each in found),
        "states": sum(each.shown is not None and each.shown.states for each in found),
        "unproved": [
            {"name": each.theorem.user_name, "reason": each.verdict.reason, "detail": each.verdict.detail}
            for each in found
            if each.verdict is not None
            and not each.is_proved
            and each.verdict.outcome is not Outcome.JUDGE_ERROR
        ],
        "not_in_file": [
            {"name": each.theorem.user_name, "why": each.in_file.why}
            for each in found
            if each.in_file is not None and each.in_file.is_proved is False
        ],
        "unjudged": [
            {"name": each.theorem.user_name, "why": each.unjudged} for each in found if each.unjudged
        ],
        "not_shown": [
            {"name": each.theorem.user_name, "why": each.shown.why}
            for each in found
            if each.shown is not None and each.shown.text is None
        ],
    }
