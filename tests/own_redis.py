"""A Valkey (or Redis) of a test's own, which it may stop in every way and start again."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from farm.embedded.binaries import find_pair
from farm.embedded.child import ChildSpec
from farm.embedded.home import lock
from farm.embedded.pair import start_valkey
from farm.redis_client import redis_url
from tests.chaos.servers import Kept

#: Commands after which a server refuses, by the code of the error that its clients get.
FAULTS = {
    "OOM": ["CONFIG SET maxmemory 1"],
    "READONLY": ["REPLICAOF 127.0.0.1 1"],
    "NOREPLICAS": ["CONFIG SET min-replicas-to-write 1"],
    "NOAUTH": ["CONFIG SET requirepass changed"],
    "NOPERM": ["ACL SETUSER default -@write"],
}
_HEALTHY = [
    "CONFIG SET maxmemory 0",
    "REPLICAOF NO ONE",
    "CONFIG SET min-replicas-to-write 0",
    'CONFIG SET requirepass ""',
    "ACL SETUSER default on nopass +@all",
]


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
        with self.client() as client:
            for command in FAULTS[fault]:
                client.execute_command(*command.split())
            client.execute_command("CLIENT KILL TYPE normal SKIPME yes")
            try:
                yield
            finally:
                for command in _HEALTHY:
                    client.execute_command(*(word.strip('"') for word in command.split()))

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
