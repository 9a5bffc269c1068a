"""Remedies are those of the place: nothing of systemd in a container, nothing of Docker outside of one."""

from __future__ import annotations

import re

import pytest

from farm.place import POSTGRES, REDIS, Deployment, Server, container, here


def place(runtime: str | None = None, *, systemd: bool = False) -> Deployment:
    return Deployment(container=runtime, has_systemd=systemd)


@pytest.mark.parametrize("server", [REDIS, POSTGRES])
@pytest.mark.parametrize(
    ("where", "host", "told"),
    [
        (place(systemd=True), "localhost", r"systemctl start (redis-server|postgresql)"),
        (place(systemd=True), "/run/postgresql", "systemctl"),
        (place(systemd=True), "", "systemctl"),
        (place(systemd=True), "db.example", "start it on db.example$"),
        (place(), "127.0.0.1", "start it: (redis-server --daemonize yes|pg_ctl)"),
        (place("docker"), "redis", "docker compose up -d (redis|postgres)"),
        (place("podman", systemd=True), "localhost", "docker compose up"),
        (place("kubernetes"), "farm-redis", "kubectl get pods"),
    ],
)
def test_a_server_is_started_as_its_place_starts_servers(
    server: Server, where: Deployment, host: str, told: str
) -> None:
    said = where.start(server, host)
    assert re.search(told, said)
    assert said.startswith("start it")
    assert ("systemctl" in said) == (told.startswith((r"systemctl", "systemctl")))


@pytest.mark.parametrize(
    ("where", "told", "never"),
    [
        (place(systemd=True), "systemd-run --user --scope -p Delegate=yes farm worker", "sudo mkdir"),
        (place(), "sudo mkdir /sys/fs/cgroup/farm", "systemd"),
        (place("docker"), "FARM_CGROUP", "systemd"),
        (place("kubernetes", systemd=True), "FARM_CGROUP", "systemd"),
    ],
)
def test_a_group_is_delegated_as_its_place_does_that(where: Deployment, told: str, never: str) -> None:
    said = where.delegate()
    assert told in said
    assert never not in said


def test_a_pod_is_known_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert container() == "kubernetes"
    assert here().container == "kubernetes"
