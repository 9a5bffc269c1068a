"""What the chart's pods run, run for real: their words, settings and rights, on real servers and Lean."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psycopg
import pytest
import redis
from sqlalchemy import Engine, text

from farm.runs.export import export
from farm.store import postgres
from farm.store.environments import Served
from farm.store.queries import Queries
from farm.store.reader import ROLE, make_reader
from farm.store.transitions import Store
from tests.commands import ENDLESS, Command, Running, entry, write
from tests.deploy.charts import (
    CASES,
    MINIMAL,
    Object,
    Pod,
    at,
    merged,
    named,
    of_kind,
    pods,
    rendered,
    variables,
    worker,
)
from tests.farms import CORE, claimed, finished, load
from tests.no_namespaces import PREFIX
from tests.processes import PATIENCE, eventually

# The chart names their commands.
pytestmark = pytest.mark.reaches(
    "farm.cli.keys", "farm.cli.metrics", "farm.cli.operating", "farm.cli.roles", "farm.cli.serving"
)
BIN = Path(postgres.__file__).parents[2] / ".venv" / "bin"


@dataclass(frozen=True)
class Mounted:
    """A folder that stands for what a pod has mounted, and the ports that stand for its own."""

    folder: Path
    urls: tuple[str, str]
    ports: dict[str, str]

    def text(self, word: str) -> str:
        """Return a word of a container with this machine's paths and ports."""
        for path in ("/etc/farm", "/var/lib/farm"):
            word = word.replace(path, f"{self.folder}{path}")
        return re.sub(r"\b(8700|9700|9701)\b", lambda found: self.ports[found[0]], word)

    def command(self, container: Object) -> Command:
        """Return the `farm` command with a container's settings."""
        urls = self.folder / "etc" / "farm" / "urls"
        for folder in (urls, self.folder / "var" / "lib" / "farm", urls.parent / "reader"):
            folder.mkdir(parents=True, exist_ok=True)
        (urls.parent / "reader" / "password").write_text("secret\n")
        for name, url in zip(("database", "broker"), self.urls, strict=True):
            (urls / name).write_text(f"{url}\n")
        given = {name: self.text(value) for name, value in variables(container).items()}
        return Command({**given, "KUBERNETES_SERVICE_HOST": "10.0.0.1"})  # every container has it

    def words(self, container: Object) -> list[str]:
        return [self.text(word) for word in container["args"]]

    def run(self, container: Object, **more: Any) -> subprocess.CompletedProcess[str]:
        return self.command(container)(*self.words(container), **more)

    @contextmanager
    def started(self, container: Object, *prefix: str) -> Iterator[Running]:
        words = self.words(container)
        with self.command(container).started(self.folder / words[0], *words, prefix=prefix) as running:
            yield running

    def probed(self, container: Object, probe: str) -> int:
        """Return the status that a container answers a probe of its own with, asked as the kubelet asks."""
        asked = container[probe]["httpGet"]
        port = next(each["containerPort"] for each in container["ports"] if each["name"] == asked["port"])
        url = f"http://127.0.0.1:{self.ports[str(port)]}{asked['path']}"
        return _status(Request(url, headers={"Host": f"10.1.2.3:{port}"}))


def _status(asked: Request) -> int:
    try:
        with urlopen(asked, timeout=30) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return str(found.getsockname()[1])


def _url(engine: Engine) -> str:
    return engine.url.set(drivername="postgresql").render_as_string(hide_password=False)


@pytest.fixture
def mounted(database: Engine, redis_database: tuple[str, redis.Redis], tmp_path: Path) -> Mounted:
    """A pod's folder, over a database with the farm's tables and nothing in them."""
    ports = {port: _free_port() for port in ("8700", "9700", "9701")}
    return Mounted(tmp_path / "pod", (_url(database), redis_database[0]), ports)


def pod(values: dict[str, Any], component: str) -> Pod:
    (found,) = (each for each in pods(rendered(values)) if each.component == component)
    return found


def test_the_setup_prepares_an_empty_database_and_repeating_it_changes_nothing(
    mounted: Mounted, empty_database_url: str
) -> None:
    empty = replace(mounted, urls=(empty_database_url.replace("+psycopg", ""), mounted.urls[1]))
    setup = pod(CASES["everything"], "setup")
    for _ in range(2):
        for container in setup.containers:
            said = empty.run(container)
            assert said.returncode == 0, said.stderr
    engine = postgres.connect(empty_database_url, application="farm-test")
    with engine.connect() as connection:
        declared = connection.execute(text("SELECT name, toolchain FROM environments")).all()
    assert {*declared} == {("core", ""), ("mathlib-4.22", "4.22.0"), ("Own_Lean", "")}
    reader = make_url_of(engine, ROLE)
    with psycopg.connect(reader) as connection:
        assert len(connection.execute("SELECT * FROM report.queues").fetchall()) == 3
    engine.dispose()


def make_url_of(engine: Engine, role: str) -> str:
    return engine.url.set(drivername="postgresql", username=role).render_as_string(hide_password=False)


def _slots(engine: Engine, values: dict[str, Any], name: str) -> int:
    """Return what KEDA would read for an environment, as the role that it asks as."""
    (trigger,) = named(rendered(values), "ScaledObject", name)["spec"]["triggers"]
    with psycopg.connect(make_url_of(engine, ROLE)) as connection:
        (row,) = connection.execute(trigger["metadata"]["query"]).fetchall()
    assert isinstance(row[0], int)
    return int(row[0])


def test_a_scaler_reads_how_many_slots_there_is_work_for(database: Engine, tmp_path: Path) -> None:
    values = merged(CASES["everything"], at("environments/core", {"lean": {"baked": True}}))
    name, store = "farm-worker-core", Store(database)
    make_reader(database, password=None)
    assert _slots(database, values, name) == 0  # nobody knows the environment yet
    store.declare("core")
    store.register([Served(name="other", digest="", toolchain="", tiers=("kernel", "audit", "lean"))])
    assert _slots(database, values, name) == 0
    answers = [{"name": "t", "predicted_proof": f"theorem t : True := trivial -- {n}"} for n in range(45)]
    load(store, tmp_path / "other.jsonl", *answers, environment="other")
    assert _slots(database, values, name) == 0
    load(store, tmp_path / "core.jsonl", *answers)
    assert _slots(database, values, name) == 3  # of 20 checks each
    with database.connect() as connection:
        first = connection.scalar(text("SELECT min(id) FROM checks WHERE environment = 'core'"))
    claimed(store, int(str(first)))
    assert _slots(database, values, name) == 1 + 3
    with database.begin() as connection:
        connection.execute(text("UPDATE checks SET queued_at = now() - interval '61 seconds'"))
    assert _slots(database, values, name) == 1 + 44


def test_the_service_waits_for_the_first_key_that_is_valid(mounted: Mounted) -> None:
    (container,) = pod(MINIMAL, "service").spec["initContainers"]
    farm = mounted.command(container)
    assert farm("keys", "add", "gone").returncode == farm("keys", "revoke", "gone").returncode == 0
    environment = {**farm.environment, "PATH": f"{BIN}:{os.environ['PATH']}"}
    said = mounted.folder / "said"
    with said.open("w") as stderr:
        waiting = subprocess.Popen(container["command"], env=environment, stderr=stderr)
    try:
        told = "kubectl exec deploy/farm-metrics -- farm keys add NAME"
        eventually(lambda: told in said.read_text(), seconds=60)
        assert waiting.poll() is None
        assert farm("keys", "add", "me").returncode == 0
        assert waiting.wait(60 * PATIENCE) == 0
    finally:
        waiting.kill()
        waiting.wait()


def test_the_service_answers_probes_and_clients_by_its_name_in_the_cluster(mounted: Mounted) -> None:
    values = merged(MINIMAL, at("service/allowHosts", ["farm.example"]))
    (container,) = pod(values, "service").spec["containers"]
    token = mounted.command(container)("keys", "add", "me").stdout.strip()
    with mounted.started(container) as running:
        eventually(lambda: mounted.probed(container, "startupProbe") == 200, seconds=60)
        assert mounted.probed(container, "livenessProbe") == 200
        assert mounted.probed(container, "readinessProbe") == 200
        port = mounted.ports["8700"]
        for host, status in (
            ("farm-service.proofs.svc:8700", 200),
            ("farm-service:8700", 200),
            ("farm.example", 200),
            ("evil.example", 403),
        ):
            headers = {"Host": host.replace("8700", port), "Authorization": f"Bearer {token}"}
            assert _status(Request(f"http://127.0.0.1:{port}/v1/environments", headers=headers)) == status
        running.process.terminate()
        assert running.ended() == 0


def test_the_metrics_answer_probes_and_scrapes_also_without_postgresql(mounted: Mounted) -> None:
    away = replace(mounted, urls=("postgresql://farm@127.0.0.1:1/farm", "redis://127.0.0.1:1/0"))
    (container,) = pod(MINIMAL, "metrics").spec["containers"]
    with away.started(container):
        eventually(lambda: away.probed(container, "startupProbe") == 200, seconds=60)
        assert away.probed(container, "readinessProbe") == away.probed(container, "livenessProbe") == 200
        with urlopen(f"http://127.0.0.1:{away.ports['9701']}/metrics", timeout=60) as answer:
            assert b"farm_up 0" in answer.read()


def rights(found: Pod) -> list[str]:
    """Return what is put before a worker's words so that it has its pod's user, capabilities and filter."""
    security = found.containers[0]["securityContext"]
    user = found.spec["securityContext"]["runAsUser"]
    if user:
        # In a user namespace, as the pod has one, and so that this user may read the tests' files. It has no
        # capability there.
        kept = ["unshare", "--user", f"--map-user={user}", f"--map-group={user}", "setpriv", "--no-new-privs"]
    else:
        added = [f"+{each.lower()}" for each in security["capabilities"]["add"]]
        kept = ["setpriv", f"--bounding-set={','.join(['-all', *added])}", "--inh-caps=-all"]
    is_filtered = security["seccompProfile"]["type"] == "RuntimeDefault"
    return [*kept, *(PREFIX if is_filtered else ())]


@pytest.mark.parametrize("case", ["minimal", "namespaces", "root"])
def test_a_worker_with_its_pods_rights_judges_what_the_charts_test_asks(case: str, mounted: Mounted) -> None:
    values = CASES[case]
    found = worker(values)
    (container,) = found.containers
    (asking,) = pod(values, "test").containers
    least = variables(container)["FARM_ISOLATION"]
    for step in pod(values, "setup").containers:
        assert mounted.run(step).returncode == 0
    with mounted.started(container, *rights(found)) as running:
        assert mounted.probed(container, "readinessProbe") in (0, 503)
        said = mounted.run(asking, seconds=80)
        assert said.returncode == 0, said.stderr + running.said
        assert mounted.probed(container, "startupProbe") == mounted.probed(container, "readinessProbe") == 200
        found_level = re.search(r"; isolation ([\w+]+)", running.said)
        assert found_level is not None
        assert found_level[1].endswith(least)  # this machine may have control groups as well
        running.process.terminate()
        assert running.ended(seconds=found.spec["terminationGracePeriodSeconds"]) == 0


def test_the_nightly_prune_deletes_what_is_old_and_nothing_else(
    mounted: Mounted, database: Engine, tmp_path: Path
) -> None:
    store = Store(database)
    store.register([CORE])
    _judged(store, tmp_path / "old.jsonl")
    with database.begin() as connection:
        for table, moment in (
            ("runs", "created_at"),
            ("manifests", "exported_at"),
            ("verdicts", "decided_at"),
        ):
            connection.execute(text(f"UPDATE {table} SET {moment} = {moment} - interval '31 days'"))
    _judged(store, tmp_path / "young.jsonl")
    (container,) = pod(CASES["everything"], "prune").containers
    said = mounted.run(container)
    assert said.returncode == 0, said.stderr
    with database.connect() as connection:
        left = connection.scalars(text("SELECT path FROM manifests")).all()
    assert [Path(path).name for path in left] == ["young.jsonl"]


def _judged(store: Store, path: Path) -> None:
    """Store a run of one line that is judged and exported."""
    proof = f"theorem {path.stem} : True := trivial"
    run_id = load(store, path, {"name": path.stem, "predicted_proof": proof})
    (claim,) = store.claim(["core"], worker="w", lease_seconds=60)
    assert finished(store, claim)
    queries = Queries(store.engine)
    assert list(export(store, queries, queries.run(run_id), processes=0))


def test_without_what_its_isolation_needs_a_worker_ends_and_says_what_is_missing(mounted: Mounted) -> None:
    found = worker(CASES["namespaces"])
    prefix = [*rights(found), *PREFIX]  # as if seccompProfile were RuntimeDefault
    with mounted.started(found.containers[0], *prefix) as running:
        assert running.ended() == 2
    assert "give the pod hostUsers: false" in running.said.splitlines()[-1]


def test_a_worker_that_is_at_a_long_check_without_postgresql_is_left_alone(
    mounted: Mounted, database: Engine, servers: Any, tmp_path: Path
) -> None:
    Store(database).declare("core")
    (container,) = worker(CASES["no isolation"]).containers
    with mounted.started(container) as running:
        eventually(lambda: mounted.probed(container, "startupProbe") == 200, seconds=120)
        path = write(tmp_path / "long.jsonl", entry(ENDLESS, 1, timeout=300))
        assert mounted.command(container)("submit", path, "--no-wait").returncode == 0
        eventually(lambda: _is_running(database), seconds=60)
        name = database.url.database
        database.dispose()
        with psycopg.connect(servers.database_url.replace("+psycopg", ""), autocommit=True) as admin:
            admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            try:
                eventually(lambda: "will be retried" in running.said, seconds=60)
                assert mounted.probed(container, "livenessProbe") == 200
                eventually(lambda: mounted.probed(container, "readinessProbe") == 503)  # and it says so
            finally:
                admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


def _is_running(engine: Engine) -> bool:
    with engine.connect() as connection:
        asked = "SELECT count(*) FROM checks WHERE status = 'running' AND NOT ahead"
        return bool(connection.scalar(text(asked)))


def test_every_workload_is_tested_here() -> None:
    """A part that joins the chart is to be run here as well."""
    assert {each.component for each in pods(rendered(CASES["everything"]))} == {
        *("worker", "service", "metrics", "setup", "test", "prune")
    }
    made = rendered(CASES["everything"])
    assert not of_kind(made, "StatefulSet", "DaemonSet")
    assert not of_kind(rendered(MINIMAL), "CronJob")  # nobody's runs are deleted unasked
