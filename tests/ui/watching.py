"""A farm at work that a real Prometheus watches: its parts, what it judges, and how both are asked."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import yaml
from psycopg.rows import dict_row
from sqlalchemy import Engine, text

from farm.store.reader import ROLE
from tests.commands import ADMITTED, ENDLESS, HEADER, PROVED, WRONG, Command, entry, write
from tests.dashboards import MONITORING, ROOT
from tests.processes import eventually

CASES = ROOT / "tests" / "cases" / "verdict"
_CHEAT = HEADER + "axiom cheat{n} : False\n\ntheorem t{n} : False := cheat{n}\n"


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return int(bound.getsockname()[1])


@dataclass(frozen=True)
class Watched:
    """A farm that has judged, and the Prometheus that watched it from `since` (Unix time) on."""

    farm: Command
    engine: Engine
    prometheus: str
    since: float
    runs: tuple[str, ...]

    def api(self, path: str, **params: object) -> Any:
        """Ask Prometheus' API, and return its data."""
        words = urllib.parse.urlencode(params)
        with urllib.request.urlopen(f"{self.prometheus}/api/v1/{path}?{words}", timeout=60) as answer:
            return json.load(answer)["data"]

    def now(self, expression: str, at: float | None = None) -> dict[tuple[tuple[str, str], ...], float]:
        """Return the values of an expression by their labels."""
        found = self.api("query", query=expression, time=at or time.time())["result"]
        return {tuple(sorted(each["metric"].items())): float(each["value"][1]) for each in found}

    def over_time(self, expression: str) -> list[float]:
        """Return all values of an expression in the time that was watched, of all series."""
        asked = {"query": expression, "start": self.since, "end": time.time(), "step": 1}
        found = self.api("query_range", **asked)["result"]
        return [float(value) for each in found for _, value in each["values"]]

    def read(self, question: str) -> list[dict[str, Any]]:
        """Ask PostgreSQL as the role that reads the views."""
        url = self.engine.url.set(drivername="postgresql", username=ROLE)
        with psycopg.connect(url.render_as_string(hide_password=False), row_factory=dict_row) as connection:
            return connection.execute(question.encode()).fetchall()

    def stored(self, question: str) -> list[Any]:
        """Ask PostgreSQL as the farm."""
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(question))]


def case(path: str, number: int, **more: object) -> dict[str, object]:
    """Return a line with a program of the suite's cases, made different from others by its number."""
    program = (CASES / path / "program.lean").read_text()
    return {"name": Path(path).name, "predicted_proof": f"{program}-- {number}\n", **more}


def _round(nth: int) -> dict[str, list[dict[str, object]]]:
    """Return the manifests of one round, by the options they are submitted with."""
    first = 100 * nth
    ordinary = [entry(kind, first + k) for k in range(4) for kind in (PROVED, WRONG, ADMITTED)]
    ordinary += [entry(ENDLESS, first + 50), entry(ENDLESS, first + 51, group="g"), ordinary[0]]
    ordinary += [case("timeout/heartbeats", nth), case("rejected/crash", nth)]
    ordinary += [{"name": "cheat", "predicted_proof": _CHEAT.format(n=first)}]
    nonsense = {"name": "nonsense", "header": HEADER, "formal_statement": "theorem x : Nonsense := by"}
    answer = f"def Nonsense : Prop := True\n\ntheorem x : Nonsense := by\n  exact True.intro -- {nth}"
    ordinary += [{**nonsense, "generation": f"```lean\n{answer}\n```"}]
    return {
        "": ordinary,
        "--cpu 0.5 --timeout 60": [case("timeout/endless_processor_time", nth)],
        "--memory-mib 256 --timeout 60": [case("memory_limit/doubling_string", nth)],
    }


def judged(farm: Command, folder: Path, nth: int) -> list[str]:
    """Have a round of manifests judged, and return the ids of its runs."""
    runs = []
    for number, (options, lines) in enumerate(_round(nth).items()):
        path = write(folder / f"{nth}-{number}.jsonl", *lines)
        said = farm("submit", path, *options.split(), "--json", seconds=300)
        assert said.returncode in (0, 3), said.stderr
        runs.append(json.loads(said.stdout)["run"])
    return runs


@contextmanager
def exporting(farm: Command, folder: Path) -> Iterator[dict[str, int]]:
    """Start a worker, `farm metrics` and the service, each telling its metrics at a port."""
    ports = {name: free_port() for name in ("worker", "metrics", "service")}
    commands = {
        "worker": ("worker", "--metrics-port", ports["worker"]),
        "metrics": ("metrics", "--port", ports["metrics"]),
        "service": ("serve", "--port", ports["service"]),
    }
    with ExitStack() as stack:
        for name, words in commands.items():
            running = stack.enter_context(farm.started(folder / name, *words))
            eventually(lambda name=name: _listens(ports[name]), seconds=120)  # type: ignore[misc]
            assert running.process.poll() is None, running.said
        yield ports


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _is_ready(address: str) -> bool:
    """Whether Prometheus answers questions: it listens, and answers 503, before it does."""
    try:
        with urllib.request.urlopen(f"{address}/-/ready", timeout=10):
            return True
    except OSError as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        return False


def configuration(ports: dict[str, int], token: Path) -> str:
    """Return a Prometheus configuration with the jobs of the farm's own, asked each second."""
    made = yaml.safe_load((MONITORING / "prometheus.yaml").read_text())
    made["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    made["rule_files"] = [str(MONITORING / "rules.yaml")]
    jobs = {job["job_name"]: job for job in made["scrape_configs"]}
    del jobs["farm-workers"]["dns_sd_configs"]
    jobs["farm-workers"]["static_configs"] = [{"targets": [f"127.0.0.1:{ports['worker']}"]}]
    jobs["farm"]["static_configs"] = [{"targets": [f"127.0.0.1:{ports['metrics']}"]}]
    served = {"targets": [f"127.0.0.1:{ports['service']}"]}
    credentials = {"credentials_file": str(token)}
    made["scrape_configs"].append(
        {"job_name": "farm-service", "static_configs": [served], "authorization": credentials}
    )
    return yaml.safe_dump(made)


@contextmanager
def prometheus(program: Callable[[str], str], folder: Path, configured: str) -> Iterator[str]:
    """Start Prometheus, and give its address once it answers."""
    folder.mkdir()
    (folder / "prometheus.yaml").write_text(configured)
    port = free_port()
    words = [
        *(program("prometheus"), f"--config.file={folder / 'prometheus.yaml'}"),
        *(f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
    try:
        address = f"http://127.0.0.1:{port}"
        eventually(lambda: process.poll() is not None or _is_ready(address), seconds=60)
        assert process.poll() is None, (folder / "log").read_text()
        yield address
    finally:
        process.kill()
        process.wait()
