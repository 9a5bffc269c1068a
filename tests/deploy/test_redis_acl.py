"""A farm on a Redis with TLS, client certificates, and a user who may do only what the farm needs."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from farm.redis_client import redis_url
from farm.store import postgres
from farm.store.queries import Queries
from farm.store.transitions import Store
from tests.chaos.servers import Servers
from tests.commands import ENDLESS, HEADER, PROGRAMS, PROVED, WRONG, Command, entry, verdicts, write
from tests.farms import CORE, serving, wait_for_run
from tests.processes import PATIENCE, eventually
from tests.services import serving_http

SKETCH = HEADER + "theorem t : True := by sorry\n"
USERS = Path(__file__).parents[2] / "docker" / "redis" / "users.acl"
PASSWORD, ADMIN = "a-password", "an-administrator"
KINDS = [PROVED, ENDLESS, WRONG, ENDLESS, PROVED, ENDLESS]

_CA = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.crt"
_REQUEST = "req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"
_SIGNED = (
    "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out {name}.crt"
)


@dataclass(frozen=True)
class Guarded:
    """Where Redis listens, the folder of the certificates, and an administrator's client."""

    port: int
    folder: Path
    administrator: redis.Redis

    def url(self, *, password: str = PASSWORD) -> str:
        ours = f"ssl_certfile={self.folder}/client.crt&ssl_keyfile={self.folder}/client.key"
        server = f"ssl_cert_reqs=required&ssl_ca_certs={self.folder}/ca.crt"
        return f"rediss://farm:{password}@localhost:{self.port}/3?{server}&{ours}"

    def refused(self) -> list[object]:
        """Return what users were not allowed to do, but to tell a newer Redis their library's name."""
        log = self.administrator.acl_log()
        return [each["object"] for each in log if each["object"] != "client|setinfo"]


def _certificates(folder: Path) -> None:
    (folder / "names").write_text("subjectAltName=DNS:localhost")
    commands = [
        _CA,
        *(form.format(name=name) for name in ("server", "client") for form in (_REQUEST, _SIGNED)),
    ]
    for command in commands:
        subprocess.run(["openssl", *command.split()], check=True, capture_output=True, cwd=folder)


@contextmanager
def _guarded(folder: Path) -> Iterator[Guarded]:
    _certificates(folder)
    rights = USERS.read_text().replace("CHANGE-ME", PASSWORD)
    (folder / "users.acl").write_text(f"{rights}user {ADMIN} on >{PASSWORD} ~* &* +@all\n")
    port = _free_port()
    names = {"cert": "server.crt", "key": "server.key", "ca-cert": "ca.crt"}
    files = [word for name, file in names.items() for word in (f"--tls-{name}-file", str(folder / file))]
    words = [
        "redis-server",
        "--port",
        "0",
        "--tls-port",
        str(port),
        "--tls-auth-clients",
        "yes",
        "--save",
        "",
    ]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [*words, *files, "--aclfile", str(folder / "users.acl")], stdout=log, stderr=log, cwd=folder
        )
    given = {"ssl_ca_certs": "ca.crt", "ssl_certfile": "client.crt", "ssl_keyfile": "client.key"}
    paths = {name: str(folder / file) for name, file in given.items()}
    try:
        with redis.Redis("localhost", port, username=ADMIN, password=PASSWORD, ssl=True, **paths) as client:
            eventually(lambda: _answers(client) or server.poll() is not None)
            assert server.poll() is None, (folder / "log").read_text()
            yield Guarded(port, folder, client)
    finally:
        server.terminate()
        server.wait(20)


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def _free_port() -> int:
    with socket.create_server(("localhost", 0)) as listening:
        return int(listening.getsockname()[1])


@dataclass(frozen=True)
class Site:
    """A farm whose Redis is guarded."""

    farm: Command
    guarded: Guarded
    queries: Queries


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A farm whose broker knows its user only, under TLS, by a certificate."""
    assert shutil.which("redis-server"), "install it: sudo apt-get install redis-server"
    servers = Servers(tmp_path / "servers")
    folder = tmp_path / "redis"
    folder.mkdir()
    url = servers.new_database("guarded")
    engine = postgres.connect(url, application="farm-test")
    Store(engine).register([CORE])
    try:
        with _guarded(folder) as guarded:
            settings = {
                "FARM_HOME": str(tmp_path / "home"),
                "FARM_DATABASE_URL": url.replace("+psycopg", "", 1),
                "FARM_BROKER_URL": guarded.url(),
                "FARM_LEASE_SECONDS": str(2 * PATIENCE),
                "FARM_CONCURRENCY": "2",
                "FARM_ISOLATION": "rlimit",
            }
            yield Site(Command(settings), guarded, Queries(engine))
    finally:
        engine.dispose()
        servers.end()


def test_the_documented_rights_are_enough_for_a_run_a_service_and_a_killed_worker(
    site: Site, tmp_path: Path
) -> None:
    farm = site.farm
    manifest = write(tmp_path / "mixed.jsonl", *(entry(kind, number) for number, kind in enumerate(KINDS)))
    with (
        serving(farm, tmp_path / "second") as worker,
        serving_http(farm, tmp_path / "service") as service,
    ):
        with (
            serving(farm, tmp_path / "first") as first,
            farm.started(tmp_path / "submit", "submit", manifest) as submit,
        ):
            wait_for_run(site.queries, manifest, "running")
            first.process.kill()
            assert submit.ended(seconds=100) == 0, submit.said
        answer = service.post({"program": HEADER + PROGRAMS[PROVED].format(n=99)}, wait_seconds=30)
        assert [item["verdict"] for item in answer["items"]] == ["proved"]
        opened = service.ask("POST", "/v1/sessions", status=201, json={"program": SKETCH})
        asked = {"state": opened["states"][0]["id"], "tactics": ["exact nothing", "trivial"]}
        steps = service.ask("POST", f"/v1/sessions/{opened['id']}/steps", json=asked)["steps"]
        assert [each["outcome"] for each in steps[0]] == ["error", "no_goals"]
        service.ask("DELETE", f"/v1/sessions/{opened['id']}", json={})
        parts = {each["part"]: each["ok"] for each in farm.json("doctor")["parts"]}
        worker.process.terminate()
        assert worker.ended() == 0, worker.said
    assert parts["Redis"]
    assert verdicts(manifest) == KINDS
    assert site.guarded.refused() == []
    assert "NOPERM" not in worker.said + service.running.said


def test_the_rights_end_where_the_farm_ends(site: Site) -> None:
    with redis.Redis.from_url(redis_url(site.guarded.url())) as client:
        client.set("farm:x", "1")
        for forbidden in (
            lambda: client.get("another:x"),
            lambda: client.publish("another", "x"),
            client.flushall,
            lambda: client.config_get("*"),
            client.keys,
        ):
            with pytest.raises(redis.exceptions.NoPermissionError):
                forbidden()


def test_a_refused_password_is_told_without_it(site: Site) -> None:
    said = site.farm.having(FARM_BROKER_URL=site.guarded.url(password="wrong-one")).json("doctor", status=1)
    (broker,) = [each for each in said["parts"] if each["part"] == "Redis"]
    assert "FARM_BROKER_URL" in broker["words"]
    assert "wrong-one" not in broker["words"]


def test_a_client_without_a_certificate_is_refused(site: Site) -> None:
    bare = site.guarded.url().partition("&ssl_certfile")[0]
    said = site.farm.having(FARM_BROKER_URL=bare).json("doctor", status=1)
    assert not {each["part"]: each["ok"] for each in said["parts"]}["Redis"]
