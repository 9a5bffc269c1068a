"""The place where a program of the farm runs: a container and its runtime, systemd, or neither."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

#: Files by which container runtimes can be known.
_MARKS = {"/run/.containerenv": "podman", "/.dockerenv": "docker"}
#: Every container of a pod has it; the folder of its token may be missing.
_KUBERNETES = "KUBERNETES_SERVICE_HOST"
#: This folder exists if systemd runs the machine: sd_booted(3).
_SYSTEMD = Path("/run/systemd/system")
_LOCAL = frozenset({"", "localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Deployment:
    """A place: the container's runtime, None outside of one, and whether it has systemd."""

    container: str | None
    has_systemd: bool

    def start(self, server: Server, host: str) -> str:
        """Return how to start a server, in words; the `host` of its address is "" or a path for a socket."""
        if self.container == "kubernetes":
            return f"start it: `kubectl get pods` shows whether the pod of {server.name} runs"
        if self.container is not None:
            return f"start it: its container must run in a network of this one ({server.compose})"
        if host not in _LOCAL and not host.startswith("/"):
            return f"start it on {host}"
        return f"start it (Debian: {server.unit})" if self.has_systemd else f"start it: {server.command}"

    def delegate(self) -> str:
        """Return how to give the farm a control group of version 2, in words."""
        if self.container is not None:
            return "set FARM_CGROUP to a group of its own: mkdir /sys/fs/cgroup/farm, as the container's root"
        given = "set FARM_CGROUP to a delegated group"
        if self.has_systemd:
            run = "systemd-run --user --scope -p Delegate=yes farm worker"
            return f"start the farm in a group of its own ({run}), or {given}"
        return f"{given}: sudo mkdir /sys/fs/cgroup/farm && sudo chown -R $USER /sys/fs/cgroup/farm"


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """A server that the farm needs, and the command that starts it with systemd, Compose, and neither."""

    name: str
    unit: str
    compose: str
    command: str


REDIS = Server(
    name="Redis",
    unit="sudo systemctl start redis-server",
    compose="docker compose up -d redis",
    command="redis-server --daemonize yes",
)
POSTGRES = Server(
    name="PostgreSQL",
    unit="sudo systemctl start postgresql",
    compose="docker compose up -d postgres",
    command="pg_ctl -D DATA start, as the user of its data",
)


def container() -> str | None:
    """Return the runtime of the container that this process is in, None outside of one."""
    if _KUBERNETES in os.environ:
        return "kubernetes"
    return next((name for mark, name in _MARKS.items() if Path(mark).exists()), None)


def here() -> Deployment:
    """Return the place of this process."""
    return Deployment(container=container(), has_systemd=_SYSTEMD.is_dir())
