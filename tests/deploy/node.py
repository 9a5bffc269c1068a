"""A bare node inside this machine: an own view of /opt, /etc and /var/lib, in which units run confined."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.deploy.unit import Unit
from tests.processes import PATIENCE, processes

_SECCOMP = Path(__file__).with_name("seccomp.py")

# Each of these folders is as it was without a farm; what is put into it stays in the node, and goes with it.
_PRIVATE = ("/opt", "/var/lib", "/usr/local/sbin")
_BEGIN = """
set -e
mount --make-rprivate /
cp -a /etc "$1/etc" && mount --bind "$1/etc" /etc
for folder in {folders}; do
    there="$1$folder" && mkdir -p "$there"
    mount --bind "$folder" "$there" && mount -t tmpfs -o mode=755 tmpfs "$folder"
    for each in "$there"/*; do
        [ -e "$each" ] && [ "${{each##*/}}" != farm ] || continue
        own="$folder/${{each##*/}}"
        if [ -d "$each" ]; then mkdir "$own"; else touch "$own"; fi
        mount --bind "$each" "$own"
    done
done
echo ready
exec sleep infinity
"""


@dataclass(frozen=True)
class Node:
    """A mount namespace; commands in it are root's."""

    process: subprocess.Popen[str]
    folder: Path

    def words(self, *command: str) -> list[str]:
        return ["nsenter", f"--target={self.process.pid}", "--mount", f"--wd={self.folder}", *command]

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script in the node's shell, in the unpacked source."""
        run = subprocess.run(
            self.words("sh", "-euc", script), capture_output=True, text=True, check=False, env=_clean()
        )
        assert run.returncode == 0, f"{script}\n{run.stdout}\n{run.stderr}"
        return run

    @contextmanager
    def started(self, unit: Unit, log: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Run what a unit starts, confined like it as far as that goes without systemd."""
        with log.open("wb") as said:
            process = subprocess.Popen(
                self.words(*confined(unit)), stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=_clean()
            )
        try:
            yield process
        finally:
            # Its one child is the unit's main process: bubblewrap waits for it, and passes no signal on.
            for each in processes():
                if each.parent == process.pid:
                    os.kill(each.pid, signal.SIGTERM)
            process.wait(60 * PATIENCE)


@contextmanager
def a_node(source: Path) -> Iterator[Node]:
    """Make a node whose source is a copy of that of the checkout's files."""
    with tempfile.TemporaryDirectory(prefix="farm-node-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        unpacked = folder / "source"
        unpacked.mkdir()
        for each in ("farm", "workers", "migrations", "docker", "examples"):
            shutil.copytree(source / each, unpacked / each, ignore=shutil.ignore_patterns("__pycache__"))
        for each in ("pyproject.toml", "requirements.lock", "README.md", "LICENSE", "NOTICE"):
            shutil.copy(source / each, unpacked)
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", _BEGIN.format(folders=" ".join(_PRIVATE)), "sh", name],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield Node(process, unpacked)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def confined(unit: Unit) -> list[str]:
    """Return the command of a unit behind what does to it as systemd would: see systemd.exec(5).

    That is its user, its rights, its file system and its filter of system calls; control groups are left out.
    """
    assert unit["ProtectSystem"] == "strict"
    view = ["--ro-bind", "/", "/", "--bind", "/proc", "/proc", "--bind", "/sys", "/sys"]
    state = f"/var/lib/{unit['StateDirectory']}"
    view += ["--bind", state, state]
    view += ["--dev", "/dev"] if unit["PrivateDevices"] == "yes" else []
    view += ["--perms", "1777", "--tmpfs", "/tmp"] if unit["PrivateTmp"] == "yes" else []
    view += [word for home in ("/home", "/root") for word in ("--perms", "0000", "--tmpfs", home)]
    rights = [f"--reuid={unit['User']}", f"--regid={unit['Group']}", "--init-groups", "--no-new-privs"]
    assert unit["CapabilityBoundingSet"] == ""
    rights += ["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]
    numbers = ",".join(map(str, sorted(refused_calls(unit))))
    python = ["/usr/bin/python3", "-c", _SECCOMP.read_text(), numbers]
    variables = [f"{name}={value}" for name, value in unit.variables().items()]
    return ["bwrap", *view, "--", "setpriv", *rights, *python, "env", "-C", "/", *variables, *unit.command]


def refused_calls(unit: Unit) -> set[int]:
    """Return the numbers of the system calls that a unit's filter refuses."""
    numbers = _numbers()
    allowed = set(numbers)
    for nth, setting in enumerate(unit.settings["SystemCallFilter"]):
        names = _names(setting.lstrip("~").split())
        allowed = allowed - names if setting[0] == "~" else names if nth == 0 else allowed | names
    return {number for name, number in numbers.items() if name not in allowed}


def _names(words: list[str]) -> set[str]:
    """Return the system calls of sets and names as systemd has them."""
    found = {word for word in words if word[0] != "@"}
    for word in (word for word in words if word[0] == "@"):
        said = subprocess.run(
            ["systemd-analyze", "syscall-filter", word], capture_output=True, text=True, check=True
        )
        found |= _names(
            [line.strip() for line in said.stdout.splitlines()[1:] if line.strip()[:1] not in ("", "#")]
        )
    return found


def _numbers() -> dict[str, int]:
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h").read_text()
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", header)}


def _clean() -> dict[str, str]:
    """Return the environment of a login, with what pip needs to find packages here."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", **kept}
