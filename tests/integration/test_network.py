"""A farm whose servers are elsewhere: over TCP with TLS and passwords, on the distribution's servers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from farm.embedded.binaries import NOBODY
from tests.commands import PROVED, WRONG, Command, entry, verdicts, write
from tests.farms import serving
from tests.processes import eventually

USER: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
PASSWORD = "p@ss word/é"
QUOTED = "p%40ss%20word%2F%C3%A9"


@dataclass(frozen=True)
class Network:
    """Where the two servers listen, and the certificate that they show."""

    postgres: int
    redis: int
    certificate: Path

    def settings(self, certificate: Path | None = None) -> dict[str, str]:
        trusted = certificate or self.certificate
        database = f"postgresql://farm:{QUOTED}@localhost:{self.postgres}/postgres"
        broker = f"rediss://:{QUOTED}@localhost:{self.redis}/0"
        return {
            "FARM_DATABASE_URL": f"{database}?sslmode=verify-full&sslrootcert={trusted}",
            "FARM_BROKER_URL": f"{broker}?ssl_cert_reqs=required&ssl_ca_certs={trusted}",
        }


def a_certificate(folder: Path, name: str) -> Path:
    """Make a key and a certificate for localhost that nobody has signed; return the certificate."""
    made, key = folder / f"{name}.crt", folder / f"{name}.key"
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    words += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(made)]
    subprocess.run(words, check=True, capture_output=True)
    key.chmod(0o600)
    if USER:
        os.chown(key, NOBODY, NOBODY)
    made.chmod(0o644)
    return made


def a_port() -> int:
    with socket.create_server(("localhost", 0)) as listening:
        return int(listening.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("localhost", port)) == 0


@contextmanager
def running(words: list[str], port: int, folder: Path) -> Iterator[None]:
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd=folder, **USER)
    try:
        eventually(lambda: answers(port))
        yield
    finally:
        process.terminate()
        process.wait(20)


def postgres_words(folder: Path, certificate: Path, port: int) -> list[str]:
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    password = folder / "password"
    password.write_text(PASSWORD)
    made = [str(binaries / "initdb"), "-D", str(folder / "data"), "-U", "farm", "-A", "scram-sha-256"]
    subprocess.run([*made, "--pwfile", str(password)], check=True, capture_output=True, cwd=folder, **USER)
    options = {
        "listen_addresses": "localhost",
        "unix_socket_directories": "",
        "ssl": "on",
        "ssl_cert_file": str(certificate),
        "ssl_key_file": str(certificate.with_suffix(".key")),
    }
    given = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    return [str(binaries / "postgres"), "-D", str(folder / "data"), "-p", str(port), *given]


def redis_words(certificate: Path, port: int) -> list[str]:
    files = ["--tls-cert-file", str(certificate), "--tls-key-file", str(certificate.with_suffix(".key"))]
    files += ["--tls-ca-cert-file", str(certificate), "--tls-auth-clients", "no"]
    words = ["redis-server", "--port", "0", "--tls-port", str(port), "--requirepass", PASSWORD, "--save", ""]
    return [*words, *files]


@pytest.fixture(scope="module")
def network(pair: str) -> Iterator[Network]:
    """Both servers over TCP with TLS only, each with a password."""
    missing = not Path("/usr/lib/postgresql").exists() or not all(
        map(shutil.which, ("redis-server", "openssl"))
    )
    if missing:
        assert pair != "system", "install postgresql, redis-server and openssl"
        pytest.skip("needs: sudo apt-get install postgresql redis-server openssl")
    with tempfile.TemporaryDirectory(prefix="farm-test-") as name:
        folder = Path(name)
        if USER:
            os.chown(folder, NOBODY, NOBODY)
        found = Network(postgres=a_port(), redis=a_port(), certificate=a_certificate(folder, "server"))
        with (
            running(postgres_words(folder, found.certificate, found.postgres), found.postgres, folder),
            running(redis_words(found.certificate, found.redis), found.redis, folder),
        ):
            yield found


def test_a_farm_over_tls_judges_and_exports(network: Network, tmp_path: Path) -> None:
    farm = Command({"FARM_HOME": str(tmp_path / "home"), **network.settings()})
    assert farm("db", "upgrade").returncode == 0
    path = write(tmp_path / "m.jsonl", entry(PROVED, 1), entry(WRONG, 2))
    with serving(farm, tmp_path / "worker", FARM_ISOLATION="rlimit"):
        said = farm("submit", path)
        assert said.returncode == 0, said.stderr
        parts = farm.json("doctor", status=0)["parts"]
    assert verdicts(path) == [PROVED, WRONG]
    assert {each["part"]: each["ok"] for each in parts}["Redis"]
    assert QUOTED not in f"{said.stderr}{parts}"


def test_a_server_that_shows_another_certificate_is_not_trusted(network: Network, tmp_path: Path) -> None:
    other = a_certificate(tmp_path, "other")
    farm = Command({"FARM_HOME": str(tmp_path / "home"), **network.settings(other)})
    said = farm("status", "--runs")
    assert said.returncode == 1
    assert "certificate" in said.stderr
    assert QUOTED not in said.stderr
    assert "Traceback" not in said.stderr
