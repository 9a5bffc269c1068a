"""A Valkey (or Redis) of a test's own, which it may stop in every way and start again."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import redis

from farm.embedded.binaries import find_pair
from farm.embedded.child import ChildSpec
from farm.embedded.home import lock
from farm.embedded.pair import start_valkey
from farm.redis_client import redis_url
from tests.chaos.servers import Kept
from tests.processes import eventually

#: Commands after which a server refuses, by the code of the error that its clients get.
FAULTS = {
    "OOM": ["CONFIG SET maxmemory 1"],
    "READONLY": ["REPLICAOF 127.0.0.1 1"],
    "NOREPLICAS": ["CONFIG SET min-replicas-to-write 1"],
    "NOAUTH": ["CONFIG SET requirepass changed"],
    "NOPERM": ["ACL SETUSER default -@write"],
    "MISCONF": ["SET unsaved 1", "CONFIG SET save '3600 1'", "BGSAVE"],
    "max number of clients": ["CONFIG SET maxclients 1"],
}
_HEALTHY = [
    "CONFIG SET maxmemory 0",
    "REPLICAOF NO ONE",
    "CONFIG SET min-replicas-to-write 0",
    "CONFIG SET requirepass ''",
    "ACL SETUSER default on nopass +@all",
    "CONFIG SET save ''",
    "CONFIG SET maxclients 10000",
]
#: A server that loads this many keys, with this pause after each, answers nothing else for some seconds.
_KEYS, _PAUSE_MICROSECONDS = 2000, 2000


class OwnRedis:
    """A server on a unix socket; `url` is Celery's, and stays when it is started again."""

    def __init__(self, home: Path, pair: str) -> None:
        held = lock(home)
        assert held is not None
        self._home, self._lock, self._pair = home, held, pair
        self.start()

    def start(self) -> None:
        self.url = start_valkey(self._home, self._lock, find_pair(self._pair)[1], self._keep)

    def _keep(self, program: ChildSpec) -> Kept:
        self.server = Kept(program)
        return self.server

    def kill(self) -> None:
        self.server.end_by(signal.SIGKILL)

    @contextmanager
    def hung(self) -> Iterator[None]:
        """Have it take connections and answer nothing inside the block."""
        os.kill(self.server.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.server.pid, signal.SIGCONT)

    @contextmanager
    def client(self) -> Iterator[redis.Redis]:
        with redis.Redis.from_url(redis_url(self.url), retry=None) as client:
            yield client

    @contextmanager
    def refusing(self, fault: str) -> Iterator[None]:
        """Have it refuse what the farm asks inside the block, in one of the ways of `FAULTS`."""
        with self.client() as client, self._nothing_saved(client):
            for command in FAULTS[fault]:
                client.execute_command(*shlex.split(command))
            if fault == "MISCONF":
                eventually(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")
            client.execute_command("CLIENT KILL TYPE normal SKIPME yes")
            try:
                yield
            finally:
                for command in _HEALTHY:
                    client.execute_command(*shlex.split(command))
                # Else it would save, where the folder is gone, what it began to save inside the block.
                eventually(lambda: not client.info("persistence")["rdb_bgsave_in_progress"])

    @contextmanager
    def _nothing_saved(self, client: redis.Redis) -> Iterator[None]:
        """Put a folder where the server would save its data, inside the block."""
        obstacle = Path(client.config_get("dir")["dir"]) / client.config_get("dbfilename")["dbfilename"]
        (obstacle / "full").mkdir(parents=True)
        try:
            yield
        finally:
            shutil.rmtree(obstacle)

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Replace it by a server that begins to load a large file, which takes a while."""
        with self.client() as client:
            folder = client.config_get("dir")["dir"]
            client.mset({f"large:{number}": "x" * 1024 for number in range(_KEYS)})
            client.save()
        self.kill()
        socket = urlsplit(redis_url(self.url)).path
        slow = f"--key-load-delay {_PAUSE_MICROSECONDS} --loading-process-events-interval-bytes 1024"
        binary = find_pair(self._pair)[1]
        words = [*binary.prefix, str(binary.program), "--port", "0", "--unixsocket", socket, "--dir", folder]
        with subprocess.Popen([*words, "--save", "", *slow.split()], stdout=subprocess.DEVNULL) as server:
            try:
                eventually(self._is_loading)
                yield
            finally:
                server.kill()
        self.start()

    def _is_loading(self) -> bool:
        try:
            with self.client() as client:
                client.ping()
        except redis.BusyLoadingError:
            return True
        except redis.ConnectionError:
            pass
        return False

    def end(self) -> None:
        self.server.end()
        os.close(self._lock)


@contextmanager
def own_redis(pair: str) -> Iterator[OwnRedis]:
    """Run one inside the block."""
    # Short: the name of a socket has 107 characters at most.
    with tempfile.TemporaryDirectory() as folder:
        server = OwnRedis(Path(folder), pair)
        try:
            yield server
        finally:
            server.end()
