"""Benchmarks, the worker: cold checks through the farm beside a shell loop over the same programs.

Both run as many LeanRunner at once. The loop is what a user would write without the farm: `xargs` and the
shortest launcher of the same Lean, with no limits, no records and no verdicts. They take turns, so that
whatever else the machine does troubles both.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from statistics import median

from farm_workers.box.isolation import prepared
from farm_workers.environments.lean_environment import EMBEDDED, LeanEnvironment, environment_variables
from farm_workers.lean.messages import cold_command
from farm_workers.machine.environments import installed
from sqlalchemy import text

from farm import broker
from farm.allotment import cores
from farm.assembly.program import AssemblyOptions, assemble
from farm.manifest.entries import read
from farm.runs.submit import submit
from tests.bench.around.site import FarmAtWork, farm_at_work, options
from tests.bench.checks.figures import Figure

ROOT = Path(__file__).parents[2]
#: How often the two take turns.
TURNS = 4
_PROGRAMS = 80
_EXAMPLES = ROOT / "examples"
_START_SECONDS = 60.0

# The shortest way to call Lean when it is only a shared library.
_LAUNCHER = (
    "import ctypes, sys; words = [b'lean', *map(str.encode, sys.argv[2:])]; "
    "sys.exit(ctypes.CDLL(sys.argv[1]).lean_main(len(words), (ctypes.c_char_p * len(words))(*words)))"
)


def cold_checks() -> Iterator[Figure]:
    """Check the same programs through the farm and through a shell loop, in turns."""
    at_once = cores()
    with farm_at_work() as farm, worker(farm, at_once, way="cold"):
        with prepared(farm.home / "work") as isolation:
            environment = installed(farm.home, None, isolation).lean(EMBEDDED)
        programs = _programs(_PROGRAMS)
        files = _write(farm.home.parent / "programs", programs)
        manifest = _manifest(farm.home.parent / "programs.jsonl", programs)
        looped, farmed = [], []
        for _ in range(TURNS):
            looped.append(len(programs) / _loop(files, environment, at_once))
            farmed.append(len(programs) / seconds_through_farm(farm, manifest))
    ratio = median(farmed) / median(looped)
    yield Figure(
        key="cold_loop", name=f"cold checks, shell loop x {at_once}", unit="checks/s", samples=tuple(looped)
    )
    yield Figure(
        key="cold_farm", name=f"cold checks, farm x {at_once}", unit="checks/s", samples=tuple(farmed)
    )
    yield Figure(
        key="cold_over_loop", name="cold checks, farm / loop", unit="", samples=(ratio,), at_least=0.7
    )


def _programs(number: int) -> list[str]:
    """Return so many different programs that Lean ends by itself, from the examples."""
    expected = (_EXAMPLES / "quickstart.expected.jsonl").read_text(encoding="utf-8").splitlines()
    ends = {e["name"] for e in map(json.loads, expected) if e["reason"] in ("ok", "error", "has_sorry")}
    entries = [entry for entry in read(_EXAMPLES / "quickstart.jsonl") if entry.name in ends]
    texts = [assemble(entry, AssemblyOptions())[0].text for entry in entries]
    return [f"{texts[i % len(texts)]}\n-- {i}\n" for i in range(number)]


def _write(folder: Path, programs: list[str]) -> list[Path]:
    folder.mkdir()
    files = [folder / f"{number}.lean" for number in range(len(programs))]
    for file, program in zip(files, programs, strict=True):
        file.write_text(program, encoding="utf-8")
    return files


def _manifest(path: Path, programs: list[str]) -> Path:
    lines = (json.dumps({"name": "cold", "predicted_proof": program}) for program in programs)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _loop(files: list[Path], environment: LeanEnvironment, at_once: int) -> float:
    """Return the seconds a shell loop takes for the programs."""
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, *cold_command(environment)]
    script = f'{shlex.join(launcher)} < "$1" > "$1.out" 2>&1 || true'
    names = "\0".join(map(str, files)).encode()
    begun = time.perf_counter()
    subprocess.run(
        ["xargs", "-0", "-n", "1", "-P", str(at_once), "sh", "-c", script, "sh"],
        input=names,
        env=os.environ | environment_variables(environment),
        check=True,
    )
    return time.perf_counter() - begun


_SECONDS = text("""
    SELECT EXTRACT(epoch FROM max(decided_at) - CAST(:begun AS timestamptz))
    FROM verdicts JOIN jobs USING (check_id) WHERE run_id = :run
""")


def seconds_through_farm(farm: FarmAtWork, manifest: Path) -> float:
    """Return the seconds from the first call to the last verdict, by the database's clock."""
    run = submit(farm.store, [manifest], options(EMBEDDED), known=farm.queries.served()).run_id
    begun = farm.now()
    broker.call(farm.app, [EMBEDDED])
    while (tally := farm.queries.tally(run)).unfinished:
        time.sleep(0.2)
    assert not tally.unjudged, "some lines could not be judged"
    return judging_seconds(farm, run, begun)


def judging_seconds(farm: FarmAtWork, run: str, begun: datetime) -> float:
    """Return the seconds from a moment to a run's last verdict, by the database's clock."""
    with farm.engine.connect() as connection:
        return float(connection.scalar(_SECONDS, {"run": run, "begun": begun}) or 0)


@contextmanager
def worker(farm: FarmAtWork, at_once: int, *, way: str) -> Iterator[None]:
    """Run `farm worker` with this farm's home; it serves inside the block."""
    command = [sys.executable, "-m", "farm", "worker", "--concurrency", str(at_once)]
    environ = os.environ | {"FARM_HOME": str(farm.home), "FARM_LOG_LEVEL": "warning", "FARM_WAY": way}
    with subprocess.Popen(command, cwd=ROOT, env=environ) as process:
        try:
            deadline = time.monotonic() + _START_SECONDS
            while EMBEDDED not in [each.name for each in farm.queries.served()]:
                assert process.poll() is None, "the worker ended"
                assert time.monotonic() < deadline, "no worker in time"
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
