"""Asks a real `farm serve` what its own schema allows, and what it forbids, by the thousand.

`python -m tests.fuzz.http --requests 10000`. A worker judges what is taken. An answer is wrong
that is a failure of the service, that has a status or a body which the schema does not name, or that takes
what the schema forbids.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tests.chaos.servers import Servers
from tests.processes import CODE, eventually

_CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
_OPERATIONS = 13  # some have few ways to be asked


@contextmanager
def _service(folder: Path) -> Iterator[str]:
    """Give the URL of a service over servers of its own."""
    servers = Servers(folder / "home")
    try:
        url = servers.new_database("fuzz")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        given = {
            "FARM_DATABASE_URL": url,
            "FARM_BROKER_URL": servers.broker_url(1),
            "FARM_HOME": str(folder / "user"),
            "PYTHONPATH": CODE,
        }
        folder.chmod(0o755)
        said = folder / "said.log"
        with said.open("ab") as log, ExitStack() as running:
            for words in (["serve", "--port", str(port), "--no-token"], ["worker", "--concurrency", "1"]):
                running.enter_context(_running([sys.executable, "-P", "-m", "farm", *words], given, log))
            eventually(lambda: _is_served(port), seconds=120)
            yield f"http://127.0.0.1:{port}"
        sys.stderr.write(_failures(said.read_text()))
    finally:
        servers.end()


@contextmanager
def _running(words: Sequence[str], given: Mapping[str, str], log: BinaryIO) -> Iterator[None]:
    process = subprocess.Popen(words, env=os.environ | given, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def _is_served(port: int) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health/serving") as answer:
        return bool(answer.status == 200)
    return False


def _failures(log: str) -> str:
    """Return the last of what a service says of its own failures."""
    return log[log.rfind("Traceback") :][:4000] if "Traceback" in log else ""


def ask(
    url: str, *, requests: int, seed: int = 0, phases: str = "coverage,fuzzing", stdout: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Ask a service about so many requests, and return how schemathesis ends, and what it said to a pipe."""
    words = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json"),
        *("--phases", phases, "--mode", "all", "--checks", ",".join(_CHECKS)),
        *("--max-examples", str(max(1, requests // _OPERATIONS)), "--continue-on-failure"),
        *("--seed", str(seed), "--request-timeout", "30", "--no-color"),
        *("--suppress-health-check", "all"),
    ]
    return subprocess.run(
        words,
        env=os.environ | {"SCHEMATHESIS_HOOKS": "tests.fuzz.http_hooks"},
        cwd=Path(__file__).parents[2],
        stdout=stdout,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def main() -> None:
    """Ask, print what schemathesis prints, and end as it does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000, help="about so many, over all addresses")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, _service(Path(folder)) as url:
        asked = ask(url, requests=options.requests, seed=options.seed)
    sys.exit(asked.returncode)


if __name__ == "__main__":
    main()
