"""Benchmarks, images: how many are made where lines of many headers come shuffled, and what that is worth.

Every line is checked by one of two workers, each with room for a few images. A header is one that no other
line's image can serve: a comment between its imports makes it another text.
"""

from __future__ import annotations

import json
import os
import random
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bench.around.site import FarmAtWork, farm_at_work
from tests.bench.checks.figures import Figure
from tests.bench.cold import seconds_through_farm

HEADERS, SAMPLES, WORKERS, ROOM = 400, 16, 2, 8
#: Images made for each header.
BAR = 1.2
_START_SECONDS = 90.0
_MADE = re.compile(r'^farm_images_begun_total\{[^}]*result="made"[^}]*\} (\S+)$', re.MULTILINE)


def images() -> Iterator[Figure]:
    """Check shuffled lines of many headers with two workers, and count the images that they make."""
    with farm_at_work() as farm, ExitStack() as stack:
        ports = [stack.enter_context(_worker(farm)) for _ in range(WORKERS)]
        before = sum(map(_made, ports))
        seconds = seconds_through_farm(farm, _manifest(farm.home.parent / "shuffled.jsonl"))
        made = sum(map(_made, ports)) - before
    yield Figure(
        key="images_per_header",
        name=f"images made per header, {HEADERS} headers x {SAMPLES} lines shuffled, {WORKERS} workers with "
        f"room for {ROOM}",
        unit="images",
        samples=(made / HEADERS,),
        at_most=BAR,
    )
    yield Figure(
        key="shuffled_checks",
        name="checks of the same lines",
        unit="checks/s",
        samples=(HEADERS * SAMPLES / seconds,),
    )


def _manifest(path: Path) -> Path:
    """Write the lines in an order of chance, the same each time."""
    lines = [
        {
            "name": f"t{header}_{sample}",
            "header": f"prelude\nimport /- {header} -/ Core\n",
            "formal_statement": f"theorem t{header} : True := by\n",
            "generation": f"```lean4\ntheorem t{header} : True := True.intro -- {sample}\n```",
        }
        for header in range(HEADERS)
        for sample in range(SAMPLES)
    ]
    random.Random(1).shuffle(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@contextmanager
def _worker(farm: FarmAtWork) -> Iterator[int]:
    """Run a worker of one thread; gives the port of its metrics when it serves."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = int(listening.getsockname()[1])
    command = [sys.executable, "-m", "farm", "worker", "--concurrency", "1", "--metrics-port", str(port)]
    settings = {"FARM_HOME": str(farm.home), "FARM_LOG_LEVEL": "warning", "FARM_IMAGES": str(ROOM)}
    with subprocess.Popen(command, env=os.environ | settings) as process:
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not _serves(port):
                assert process.poll() is None, "the worker ended"
                assert time.monotonic() < deadline, "no worker in time"
                time.sleep(0.1)
            yield port
        finally:
            process.terminate()


def _serves(port: int) -> bool:
    try:
        return "farm_worker_slots" in _scraped(port)
    except OSError:
        return False


def _made(port: int) -> float:
    return sum(map(float, _MADE.findall(_scraped(port))))


def _scraped(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())
