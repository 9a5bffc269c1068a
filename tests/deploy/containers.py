"""What the tests of images share: the images, containers of them, and servers on a network.

Without FARM_TEST_IMAGES an image is this machine's own root file system with a Python environment at
/opt/farm, installed as docker/Dockerfile does it. The variable names a folder with images that were really
built, as tests/deploy/build.sh does: each has its file system in `NAME/root`, and its configuration in
`NAME/config.json`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import redis

from farm.embedded.child import ChildSpec
from tests.chaos.servers import Kept, Servers
from tests.commands import Running
from tests.processes import eventually

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "docker" / "Dockerfile"
#: What starts a container, as container.sh says.
_BEGIN = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--ipc", "--uts")
_SCRIPT = Path(__file__).with_name("container.sh")


@dataclass(frozen=True, kw_only=True)
class Image:
    """A file system and what is run in it: the fields are those of an image's configuration."""

    root: Path
    mounts: tuple[str, ...] = ()
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    environment: Mapping[str, str]
    user: str
    folder: str
    health: tuple[str, ...]

    @contextmanager
    def started(self, folder: Path, *command: str, **more: Any) -> Iterator[Container]:
        """Run the entry point with a command, else the image's, in a container that is gone at the end."""
        words = [*self.entrypoint, *(command or self.command)]
        with _running(self, folder, words, **more) as running:
            yield Container(running)

    def run(self, folder: Path, *words: str, **more: Any) -> Ended:
        """Run a program in a container of its own to its end."""
        with _running(self, folder, words, **more) as running:
            status = running.ended(seconds=300)
            return Ended(status, running.out.read_text(), running.said)


@dataclass(frozen=True)
class Ended:
    """How a container ended, and what it said."""

    status: int
    out: str
    said: str


@dataclass(frozen=True)
class Container:
    """A container that runs."""

    running: Running

    @property
    def said(self) -> str:
        return self.running.said

    def until(self, word: str, *, seconds: float = 60.0) -> None:
        """Wait until it says a word; fail when it ends before."""
        eventually(lambda: word in self.said or self.running.process.poll() is not None, seconds=seconds)
        assert word in self.said, self.said

    def stop(self) -> int:
        """Send SIGTERM to its process 1, as `docker stop` does, and return its exit status."""
        pid = self.running.process.pid
        (first,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(first), signal.SIGTERM)
        return self.running.ended()


@contextmanager
def _running(
    image: Image,
    folder: Path,
    words: Sequence[str],
    *,
    home: Path,
    mounts: Sequence[str] = (),
    **environment: str,
) -> Iterator[Running]:
    folder.mkdir(exist_ok=True)
    out, err = folder / "stdout", folder / "stderr"
    mounted = (*image.mounts, f"{home}:{image.environment['FARM_HOME']}", *mounts)
    command = [
        *_BEGIN,
        str(_SCRIPT),
        str(image.root),
        image.user.partition(":")[0],
        image.folder,
        *mounted,
        "--",
    ]
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            [*command, *words],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env={**image.environment, **environment},
            start_new_session=True,
        )
    try:
        yield Running(process, out, err)
    finally:
        process.kill()
        process.wait()


def home(folder: Path) -> Path:
    """Make a volume for FARM_HOME, as an engine does: it belongs to whom the image's folder belongs to."""
    folder.mkdir()
    os.chown(folder, 10001, 10001)
    return folder


# The images.


def images(folder: Path) -> dict[str, Image]:
    """Return the images `farm` and `worker-core`: built ones, or else this machine dressed as them."""
    if built := os.environ.get("FARM_TEST_IMAGES"):
        return {name: _built(Path(built).resolve() / name) for name in ("farm", "worker-core")}
    configured = {name: configuration(name) for name in ("farm", "worker-core")}
    locks = {"farm": ["farm"], "worker-core": ["farm", "core"]}
    return {
        name: replace(config, mounts=(f"{_installed(folder / name, *locks[name])}:/opt/farm:ro",))
        for name, config in configured.items()
    }


def _built(folder: Path) -> Image:
    config = json.loads((folder / "config.json").read_text())["Docker"]["config"]
    return Image(
        root=(folder / "root").resolve(),
        entrypoint=tuple(config["Entrypoint"]),
        command=tuple(config["Cmd"]),
        environment=dict(each.split("=", 1) for each in config["Env"]),
        user=config["User"],
        folder=config["WorkingDir"],
        health=tuple(config["Healthcheck"]["Test"][1:]),
    )


def stages() -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """Return the stages of the Dockerfile by name: what each is from, and its instructions."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found: dict[str, tuple[str, list[tuple[str, str]]]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            found[name] = (base, [])
        elif found:
            found[name][1].append((word, " ".join(rest.split())))
    return found


def configuration(name: str) -> Image:
    """Return what the Dockerfile says of an image, with this machine's file system for its own."""
    chain, there = [], stages()
    while name in there:
        name, instructions = there[name]
        chain.insert(0, instructions)
    last = {word: rest for instructions in chain for word, rest in instructions}
    given = [rest for instructions in chain for word, rest in instructions if word == "ENV"]
    variables = dict(word.split("=", 1) for word in shlex.split(" ".join(given)))
    variables["PATH"] = variables["PATH"].replace(
        "$PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    )
    return Image(
        root=Path("/"),
        entrypoint=tuple(json.loads(last["ENTRYPOINT"])),
        command=tuple(json.loads(last["CMD"])),
        environment=variables,
        user=last["USER"],
        folder=last["WORKDIR"],
        health=tuple(json.loads(last["HEALTHCHECK"].partition(" CMD ")[2])),
    )


def _installed(folder: Path, *locks: str) -> Path:
    """Install what the locks and this checkout hold into a folder that is at /opt/farm in a container."""
    folder.mkdir()
    wheels = folder.parent / "wheels"
    if not wheels.exists():
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheels)]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin")  # one that every user may run
    assert python is not None
    # What pip installs in the image, from uv's cache.
    uv = Path(sys.executable).with_name("uv")
    pip = f"{uv} pip install --quiet --python /opt/farm/bin/python --compile-bytecode"
    script = [
        f"{python} -m venv --without-pip /opt/farm",
        *(f"{pip} --no-deps --require-hashes -r {ROOT}/docker/{lock}.lock" for lock in locks),
        f"{pip} --no-deps --no-index {next(wheels.glob('*.whl'))}",
        f"cp {ROOT}/docker/setup.sh /opt/farm/bin/farm-setup",
        f"cp {ROOT}/docker/healthy.py /opt/farm/bin/farm-healthy",
        "chmod 755 /opt/farm/bin/farm-*",
    ]
    place = f"mkdir -p /opt/farm && mount --bind {folder} /opt/farm"
    command = ["unshare", "--mount", "sh", "-ec", "\n".join([place, *script])]
    subprocess.run(command, check=True)
    return folder


# The servers.


class Networked(Servers):
    """A PostgreSQL and a Valkey on an address of this machine, which ask for passwords."""

    def __init__(self, home: Path) -> None:
        number = os.getpid()
        self.address = f"127.{64 + (number >> 16) % 64}.{number >> 8 & 255}.{number & 255 or 1}"
        super().__init__(home)
        hba = "local all all trust\nhost all all 127.0.0.0/8 scram-sha-256\n"
        (home / "postgres" / "pg_hba.conf").write_text(hba)
        with psycopg.connect(self._postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute("ALTER ROLE farm PASSWORD 'secret'")
            connection.execute("SELECT pg_reload_conf()")
        with redis.Redis.from_url(self.redis_url) as client:
            client.config_set("requirepass", "secret")

    def _keep_postgres(self, program: ChildSpec) -> Kept:
        listening = ("-c", f"listen_addresses={self.address}")
        return super()._keep_postgres(replace(program, command=(*program.command, *listening)))

    def _keep_valkey(self, program: ChildSpec) -> Kept:
        listening = ("--bind", self.address, "--port", "6379")
        return super()._keep_valkey(replace(program, command=(*program.command, *listening)))

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a container that uses them."""
        return {
            "FARM_DATABASE_URL": f"postgresql://farm:secret@{self.address}/farm",
            "FARM_BROKER_URL": f"redis://:secret@{self.address}/0",
        }
