"""A PgBouncer in transaction mode before a PostgreSQL of the tests' own, restarted at will."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import URL

from farm.embedded.binaries import find_pair
from tests.deploy.page import settings
from tests.processes import eventually

USER, PASSWORD = "farm", "through"
PROGRAM = "pgbouncer"


@dataclass
class Pooler:
    """One that is started with `start`; `url` stays the same over restarts."""

    folder: Path
    sockets: Path
    size: int = 4
    port: int = field(default_factory=lambda: _free_port())

    def url(self, direct: URL) -> str:
        """Return what leads through it to the database that a URL leads to directly."""
        parts: dict[str, Any] = {
            "username": USER,
            "password": PASSWORD,
            "host": "127.0.0.1",
            "port": self.port,
            "query": {},
        }
        return direct.set(**parts).render_as_string(hide_password=False)

    def start(self) -> None:
        configuration = self.folder / "pgbouncer.ini"
        configuration.write_text(
            f"[databases]\n* = host={self.sockets} user={USER}\n[pgbouncer]\n"
            + settings(
                "PgBouncer",
                *("auth_type", "pool_mode", "max_client_conn"),
                auth_file=str(self.folder / "users.txt"),
                default_pool_size=str(self.size),
                listen_addr="127.0.0.1",
                listen_port=str(self.port),
                unix_socket_dir="",
            )
        )
        (self.folder / "users.txt").write_text(f'"{USER}" "{PASSWORD}"\n')
        # It refuses root, as PostgreSQL does.
        prefix = find_pair("auto")[0].prefix
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*prefix, PROGRAM, str(configuration)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        eventually(self._answers)

    def _answers(self) -> bool:
        assert self._process.poll() is None, self.log
        with socket.socket() as asking:
            return asking.connect_ex(("127.0.0.1", self.port)) == 0

    def end(self, by: signal.Signals = signal.SIGTERM) -> None:
        self._process.send_signal(by)
        self._process.wait(30)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()


@contextmanager
def pooling(direct: URL, *, size: int = 4) -> Iterator[Pooler]:
    """A pooler before the server that a URL with a socket's folder leads to."""
    assert shutil.which(PROGRAM), f"install it: sudo apt-get install {PROGRAM}"
    with tempfile.TemporaryDirectory(prefix="farm-pooler-") as folder:
        pooler = Pooler(Path(folder), Path(str(direct.query["host"])), size)
        pooler.start()
        try:
            yield pooler
        finally:
            pooler.end()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
