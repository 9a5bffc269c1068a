"""The page docs/operate/install.md as it stands: it installs a bare node, whose units judge proofs."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from farm.store import postgres
from farm.store.rights import Role
from farm.store.roles import make_roles
from tests.chaos.servers import Servers
from tests.deploy.node import Node, a_node
from tests.deploy.page import commands
from tests.deploy.unit import UNITS, Unit
from tests.pooler import Pooler, pooling
from tests.processes import eventually

# The page types their commands.
pytestmark = pytest.mark.reaches(
    "farm.cli.keys", "farm.cli.metrics", "farm.cli.operating", "farm.cli.roles", "farm.cli.serving"
)
SOURCE = Path(__file__).parents[2]
#: What cannot be done without systemd and the network, and what a node has already.
_ELSEWHERE = re.compile(r"(systemctl|journalctl|apt-get|farm-node|/opt/farm/bin/farm db|echo|printf|psql) ")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Servers, Pooler, str]]:
    """A PostgreSQL, which a pooler before it makes reachable for other users."""
    found = Servers(tmp_path_factory.mktemp("servers"))
    direct = postgres.connect(found.new_database("empty"), application="farm-test")
    with pooling(direct.url) as pooler:
        yield found, pooler, pooler.url(direct.url).replace("+psycopg", "", 1)
    direct.dispose()
    found.end()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis that everybody on this machine reaches."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    folder = tmp_path_factory.mktemp("redis")
    server = subprocess.Popen(
        ["redis-server", "--port", str(port), "--save", ""], cwd=folder, stdout=subprocess.DEVNULL
    )
    eventually(lambda: _listens(port))
    yield f"redis://127.0.0.1:{port}/0"
    server.terminate()
    server.wait(20)


def _listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def node(servers: tuple[Servers, Pooler, str], broker: str) -> Iterator[Node]:
    """A node after the page's first section."""
    assert os.geteuid() == 0, "only root can make a node"
    with a_node(SOURCE) as made:
        made.run("touch ca.crt")  # whoever follows the page brings it
        for command in commands("A node from nothing"):
            if not _ELSEWHERE.match(command):
                made.run(command)
        made.run(f"echo '{servers[2]}' > /etc/farm/database-url; echo '{broker}' > /etc/farm/broker-url")
        # The page's URLs have a password in place of SECRET; here one role is all parts.
        for part in ("owner", "service"):
            made.run(f"echo \"FARM_DATABASE_URL='{servers[2]}'\" >> /etc/farm/{part}.env")
        made.run("farm-node --as owner db upgrade")
        yield made


def test_the_database_that_the_page_makes_is_the_owners_after_it_made_the_roles(
    servers: tuple[Servers, Pooler, str],
) -> None:
    role = "page_farm"  # the tests' own servers have a role farm already
    spoken = [re.search(r'-c "(.+)"$', each) for each in commands("A node from nothing") if "psql " in each]
    asked = [re.sub(r"\bfarm\b", role, each[1]) for each in spoken if each]
    assert len(asked) == 1
    admin = create_engine(servers[0].new_database("other"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(asked[0]))
    url = admin.url.set(database=role)
    made = make_roles(
        url.render_as_string(hide_password=False), passwords={}, new_passwords=dict.fromkeys(Role, "secret")
    )
    assert not made.has_tables
    owner = url.set(username=str(Role.OWNER)).render_as_string(hide_password=False)
    assert postgres.upgrade(owner) == (None, postgres.SCHEMA)
    admin.dispose()


def without_cgroups(unit: Unit) -> Unit:
    """Return a unit for this machine, which may have no control groups for other users than root."""
    command = f"env FARM_ISOLATION=bwrap {unit['ExecStart']}"
    return Unit(unit.path, {**unit.settings, "ExecStart": [command]})


def test_the_worker_s_unit_lets_checks_be_confined_and_judges(node: Node, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with node.started(without_cgroups(UNITS["farm-worker"]), log) as worker:
        eventually(lambda: "Serving" in log.read_text() or worker.poll() is not None, seconds=120)
        assert "Serving environments=core" in log.read_text(), log.read_text()
        assert "isolation bwrap" in log.read_text()
        node.run("install -o farm -g farm -m 600 examples/quickstart.jsonl /var/lib/farm/quick.jsonl")
        node.run("farm-node submit /var/lib/farm/quick.jsonl --memory-mib 512")
        assert '"verdict": "proved"' in node.run("cat /var/lib/farm/quick.jsonl").stdout
        assert "farm_worker_slots" in node.run("curl -sf http://127.0.0.1:9700/metrics").stdout
        for command in commands("A node from nothing")[-2:]:
            assert command.split()[0] in ("farm-node", "printf")
            node.run(command)
    assert worker.returncode == 0, log.read_text()


@pytest.mark.parametrize(
    ("name", "url", "words"),
    [
        ("farm-serve", "http://127.0.0.1:8700/health/ready", ""),
        ("farm-metrics", "http://127.0.0.1:9701/metrics", "farm_up 1.0"),
    ],
)
def test_the_other_units_answer(node: Node, tmp_path: Path, name: str, url: str, words: str) -> None:
    log = tmp_path / "log"
    port = int(url.split(":")[2].split("/")[0])
    with node.started(UNITS[name], log) as process:
        eventually(lambda: _listens(port) or process.poll() is not None, seconds=60)
        assert words in node.run(f"curl -sf {url}").stdout
        assert "token" not in log.read_text()
    assert process.returncode == 0, log.read_text()


def test_a_node_is_upgraded_as_the_page_says(node: Node) -> None:
    for command in commands("Upgrading a node"):
        if "systemctl" not in command:
            node.run(command)


def test_nobody_else_reads_the_addresses(node: Node) -> None:
    for name in ("database-url", "broker-url"):
        refused = subprocess.run(
            node.words("setpriv", "--reuid=65534", "--clear-groups", "cat", f"/etc/farm/{name}"),
            capture_output=True,
            check=False,
        )
        assert refused.returncode != 0
