"""Time that tests take: a plugin of pytest records it, ``python -m tests.budget`` compares it with budgets.

`make test` loads the plugin, which writes `build/durations.json` and prints the time of folders and of the
slowest tests. Continuous integration runs the command afterwards: it fails where a folder, or a test without
the marker `long`, takes more than `MARGIN` or `TEST_MARGIN` times its budget. Other users of a machine can
double the time of a folder, and make that of one test many times as long.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.processes import PATIENCE

FILE = Path(__file__).parents[1] / "build" / "durations.json"
#: Seconds of a folder, when its tests are spread over all processes of the run; and those of one test.
FOLDERS: Mapping[str, float] = {"tests/unit": 60.0, "tests/integration": 240.0, "tests/acceptance": 480.0}
TEST = 10.0
MARGIN, TEST_MARGIN = 3.0, 20.0
_SLOWEST = 10


@dataclass(frozen=True, kw_only=True)
class Durations:
    """Seconds of each test with its fixtures, of a run in so many processes."""

    processes: int
    seconds: Mapping[str, float]

    def table(self) -> Iterator[str]:
        """Yield the use of each budget, and the slowest tests."""
        for folder, budget in FOLDERS.items():
            yield f"{self._of(folder):8.1f} s of {budget * PATIENCE:g} s  {folder}"
        for test in sorted(self.seconds, key=self.seconds.__getitem__, reverse=True)[:_SLOWEST]:
            yield f"{self.seconds[test]:8.1f} s of {TEST * PATIENCE:g} s  {test}"

    def excesses(self) -> Iterator[str]:
        """Yield a sentence for each folder and each test that exceeds its budget by far."""
        used = {folder: (self._of(folder), MARGIN, budget) for folder, budget in FOLDERS.items()}
        used |= {test: (seconds, TEST_MARGIN, TEST) for test, seconds in self.seconds.items()}
        for name, (seconds, margin, budget) in used.items():
            if seconds > margin * PATIENCE * budget:
                yield f"{name} takes {seconds:.1f} s, more than {margin:g} times its {budget * PATIENCE:g} s"

    def _of(self, folder: str) -> float:
        return (
            sum(each for test, each in self.seconds.items() if test.startswith(f"{folder}/")) / self.processes
        )


@dataclass
class _Recorder:
    """Adds up what pytest reports of each test: its call, and the fixtures that it was the first to need."""

    processes: int
    seconds: dict[str, float] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the file and print the table."""
        found = Durations(processes=self.processes, seconds=self.seconds)
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(json.dumps({"processes": found.processes, "seconds": found.seconds}, indent=0))
        terminalreporter.section("budgets of time")
        for line in found.table():
            terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    """Record durations, in the process that the others report to."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(int(getattr(config.option, "numprocesses", None) or 1)))


def main() -> int:
    """Print what exceeds its budget by far; return 1 if there is any."""
    excesses = list(Durations(**json.loads(FILE.read_text())).excesses())
    sys.stdout.write("".join(f"{each}\n" for each in excesses))
    return 1 if excesses else 0


if __name__ == "__main__":
    sys.exit(main())
