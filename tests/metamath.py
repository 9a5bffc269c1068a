"""What the tests of Metamath share: environments of Debian's databases, and judging lines in them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from farm_workers.box.isolation import Isolation
from farm_workers.systems.metamath.environment import MetamathEnvironment, environment
from farm_workers.systems.metamath.judge import MetamathJudge

from farm.assembly.program import AssemblyOptions
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.verdict import Verdict, judge
from farm.kinds import Kind
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.settings import Settings
from farm.systems.known import system
from tests.processes import PATIENCE

DATABASES = Path("/usr/share/metamath/databases")
LIMITS = Limits(wall_seconds=30.0 * PATIENCE, cpu_seconds=30.0 * PATIENCE, memory_mib=512)


def check(statement: str, answer: str, *, limits: Limits = LIMITS, fenced: bool = True) -> Check:
    """Return the check of an answer, as a submit makes it."""
    answer = f"```metamath\n{answer}\n```" if fenced else answer
    entry = Entry(
        path="m.jsonl",
        line=1,
        name="line",
        header="",
        formal_statement=statement,
        generation=answer,
        predicted_proof="",
    )
    metamath = system(Kind.METAMATH)
    (program,) = metamath.assemble(entry, AssemblyOptions())
    return Check.of(
        program=program.text,
        submitted=program.submitted,
        challenge=metamath.challenge("", "", statement),
        limits=limits,
    )


@dataclass(frozen=True)
class Judging:
    """A judge in one environment."""

    judge: MetamathJudge
    environment: MetamathEnvironment

    def begin(self, asked: Check) -> Report | Future[Report]:
        return self.judge.check(asked, self.environment)

    def report(self, asked: Check) -> Report:
        report = self.begin(asked)
        return report.result(120 * PATIENCE) if isinstance(report, Future) else report

    def verdict(self, statement: str, answer: str, *, fenced: bool = True) -> Verdict:
        return judge(self.report(check(statement, answer, fenced=fenced)))


@contextmanager
def judging(isolation: Isolation, home: Path, database: str | Path, **table: str) -> Iterator[Judging]:
    """Give a judge with an environment of one of Debian's databases, or of any file."""
    found = environment("here", {"database": str(DATABASES / database), **table}, home)
    made = MetamathJudge(isolation, Settings.load({"FARM_HOME": str(home)}), 2)
    try:
        yield Judging(made, found)
    finally:
        made.close()
