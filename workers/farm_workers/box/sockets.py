"""Box step, sockets: makes sockets whose calls wait, whatever default timeout this process has.

A socket is made non-blocking where `socket.setdefaulttimeout` was called, and so is its other end in another
process. Celery calls it while a worker shuts down and checks still run; a program that imports the farm may.
"""

from __future__ import annotations

import socket


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Return two connected sockets that keep the bounds of messages. Raises OSError."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        end.setblocking(True)
    return ends


def socket_of(descriptor: int) -> socket.socket:
    """Return the socket of a descriptor, which it owns. Raises OSError."""
    given = socket.socket(fileno=descriptor)
    given.setblocking(True)
    return given
