"""A way over TCP to a database that listens on a socket of its machine only."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine


@contextmanager
def over_tcp(engine: Engine, *, broken_by: bytes = b"", ends: bytes = b"") -> Iterator[str]:
    """The URL of the same database over TCP, for one connection.

    It `ends` with these bytes in place of the answer to a message that has `broken_by` in it.
    """
    url = engine.url
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def relay() -> None:
            with server.accept()[0] as theirs, socket.socket(socket.AF_UNIX) as ours:
                ours.connect(f"{url.query['host']}/.s.PGSQL.{url.query.get('port', url.port) or 5432}")
                while ready := select.select([theirs, ours], [], [])[0]:
                    for each in ready:
                        if not (data := each.recv(1 << 16)):
                            return
                        if broken_by and broken_by in data:
                            theirs.sendall(ends)
                            return
                        (ours if each is theirs else theirs).sendall(data)

        thread = threading.Thread(target=relay, daemon=True)
        thread.start()
        there = url.set(host="127.0.0.1", port=port).difference_update_query(["host", "port"])
        yield there.render_as_string(hide_password=False)
        thread.join(20)
