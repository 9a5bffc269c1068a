"""The long instruments: tests and contests that take too long for every change."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PYTEST = ("-m", "pytest", "-m", "long")


@dataclass(frozen=True, kw_only=True, slots=True)
class Instrument:
    """One long instrument: arguments of Python, and environment variables."""

    name: str
    arguments: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """An instrument that ended, with its exit status and its wall time in seconds."""

    name: str
    status: int
    seconds: float


# Landlock in place of namespaces, for programs whose tests are too long to run at both levels each time.
_WALLED = {"FARM_TEST_ISOLATION": "landlock"}
_SYSTEMS = ("tests/systems/test_hol_light.py", "tests/systems/test_metamath.py")
_FOLDERS = ("tests/acceptance", "tests/integration", "tests/unit")
_TRICKS = ("tests/acceptance/test_nothing_passes_on.py", "tests/acceptance/test_tokens.py")
_WAYS = tuple(f"tests/acceptance/test_{name}.py" for name in ("ways", "prepared", "second_kernel"))

#: Instruments that are the long tests of some files.
_LONG = (
    Instrument(
        name="hostile",
        arguments=(*_PYTEST, "tests/acceptance/test_hostile.py", "tests/acceptance/test_shared_contexts.py"),
    ),
    Instrument(name="oracle", arguments=(*_PYTEST, "tests/acceptance/test_oracle.py")),
    Instrument(name="levels", arguments=(*_PYTEST, "tests/acceptance/test_box.py")),
    Instrument(name="ways", arguments=(*_PYTEST, *_WAYS)),
    Instrument(name="contest", arguments=(*_PYTEST, "tests/acceptance/test_bench.py")),
    Instrument(name="around", arguments=(*_PYTEST, "tests/integration/test_bench_around.py")),
    Instrument(name="selftest", arguments=(*_PYTEST, "tests/acceptance/test_tiers.py")),
    Instrument(
        name="images",
        arguments=(*_PYTEST, "tests/acceptance/test_images.py", "tests/acceptance/test_isolation.py"),
    ),
    Instrument(name="honest", arguments=(*_PYTEST, "tests/acceptance/test_honest_programs.py")),
    Instrument(name="crowd", arguments=(*_PYTEST, "tests/acceptance/test_load.py")),
    Instrument(name="chart", arguments=(*_PYTEST, "tests/deploy/test_chart.py")),
    Instrument(name="upset", arguments=(*_PYTEST, "tests/acceptance/test_chaos.py")),
)
_FILES = {word for each in _LONG for word in each.arguments if word.endswith(".py")}

#: The unit tests that count calls, which compare times here.
_GROWTH = tuple(
    str(path.relative_to(ROOT))
    for path in sorted((ROOT / "tests" / "unit").glob("test_*.py"))
    if "from tests.counted import assert_" in path.read_text(encoding="utf-8")
)

INSTRUMENTS = (
    Instrument(name="tricks", arguments=("-m", "pytest", *_TRICKS), variables={"FARM_TEST_AFTER": "300"}),
    Instrument(
        name="acceptance",
        arguments=("-m", "pytest", "-n", "5", "--dist", "loadfile", "tests/acceptance"),
    ),
    *_LONG,
    Instrument(
        name="others",
        arguments=(*_PYTEST, *_FOLDERS, *(f"--ignore={file}" for file in sorted(_FILES))),
    ),
    Instrument(name="walled", arguments=("-m", "pytest", *_SYSTEMS), variables=_WALLED),
    Instrument(
        name="walled-corpus",
        arguments=("-m", "pytest", "-n", "5", "tests/acceptance/test_corpus.py"),
        variables=_WALLED,
    ),
    Instrument(name="growth", arguments=("-m", "pytest", *_GROWTH), variables={"FARM_TEST_GROWTH": "time"}),
    Instrument(
        name="properties", arguments=("-m", "pytest", "tests/unit"), variables={"FARM_TEST_EXAMPLES": "2000"}
    ),
    Instrument(name="fuzz-http", arguments=("-m", "tests.fuzz.http", "--requests", "10000")),
    Instrument(name="fuzz-olean", arguments=("-m", "tests.fuzz.olean", "--examples", "100000")),
    Instrument(name="fuzz-programs", arguments=("-m", "tests.fuzz.programs", "--examples", "100000")),
    Instrument(name="chaos", arguments=("-m", "tests.chaos", "--seeds", "3", "--lines", "1000")),
    Instrument(name="load", arguments=("-m", "tests.load", "--minutes", "10")),
    Instrument(name="rolling", arguments=("-m", "tests.rolling")),
)


def run(instruments: Iterable[Instrument]) -> list[Ran]:
    """Run instruments one after the other and return how each ended; their output goes to stdout."""
    return [_run(each) for each in instruments]


def _run(instrument: Instrument) -> Ran:
    sys.stdout.write(f"== {instrument.name}: python {' '.join(instrument.arguments)}\n")
    sys.stdout.flush()
    begun = time.monotonic()
    environment = os.environ | dict(instrument.variables)
    status = subprocess.run(
        [sys.executable, *instrument.arguments], cwd=ROOT, env=environment, check=False
    ).returncode
    return Ran(name=instrument.name, status=status, seconds=time.monotonic() - begun)


def table(ran: Iterable[Ran]) -> str:
    """Return a table of instruments with their minutes and outcomes."""
    return "".join(map(_row, ran))


def _row(ran: Ran) -> str:
    outcome = "passed" if ran.status == 0 else f"failed with status {ran.status}"
    return f"{ran.name:<16}{ran.seconds / 60:>6.1f} min  {outcome}\n"
