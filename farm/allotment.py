"""The resources that this process may use: cores and memory, by control groups, Slurm and affinity.

Every function reads below a `root`, which is the machine's own unless a test gives another. Sources:
cgroups(7), https://docs.kernel.org/admin-guide/cgroup-v2.html, and the variables of
https://slurm.schedmd.com/srun.html.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")

#: By version of control groups, the files that name a limit of memory in bytes.
_MEMORY_FILES = {1: ("memory.limit_in_bytes",), 2: ("memory.max", "memory.high")}
_WORD = re.compile(r"([0-9]+)(?:\(x([0-9]+)\))?", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlGroup:
    """A control group: its folder and version."""

    folder: Path
    version: int

    def read(self, name: str) -> str:
        """Return the text of one of its files, "" if it cannot be read."""
        try:
            return (self.folder / name).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            return ""


def cores(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> int:
    """Return how many cores this process may use: the least that any limit allows, rounded up, at least 1."""
    limits = [_affinity(), *filter(None, map(_quota, groups("cpu", root)))]
    if (slurm := _slurm_cores(environ)) is not None:
        limits.append(slurm)
    return max(1, min(limits))


def memory_mib(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> int:
    """Return how much memory this process may use, in MiB: the least that any limit allows, at least 1."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20]
    for group in groups("memory", root):
        words = [group.read(name).strip() for name in _MEMORY_FILES[group.version]]
        limits += [int(word) >> 20 for word in words if word.isdigit()]
    if (slurm := _slurm_memory_mib(environ, cores(root, environ))) is not None:
        limits.append(slurm)
    return max(1, min(limits))


def out_of_memory(root: Path = ROOT) -> dict[Path, int]:
    """Return how often each group around this process ran out of memory, so that the kernel killed for it.

    A group of version 1 counts only those of its own processes that were killed.
    """
    counts = {}
    for at, group in enumerate(groups("memory", root)):
        if group.version == 2:
            events = _keyed(group.read("memory.events.local"))
            counts[group.folder] = max(events.get("oom", 0), events.get("oom_kill", 0))
        elif at == 0:
            counts[group.folder] = _keyed(group.read("memory.oom_control")).get("oom_kill", 0)
    return {folder: count for folder, count in counts.items() if count}


def groups(controller: str, root: Path = ROOT) -> Iterator[ControlGroup]:
    """Yield the group of this process for a controller, then its parents, as far as they are mounted."""
    for version, path in _own_groups(controller, root):
        for mounted, folder in _mounts(controller, version, root):
            own = _below(path, mounted, folder)
            upward = (each for each in (own, *own.parents) if each == folder or folder in each.parents)
            yield from (ControlGroup(folder=each, version=version) for each in upward)
            break


def _own_groups(controller: str, root: Path) -> Iterator[tuple[int, str]]:
    """Yield the version and the path of each group of this process in which a controller may limit it."""
    for line in _lines(root / "proc/self/cgroup"):
        number, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            yield 1, path
        elif number == "0" and not controllers:
            yield 2, path


def _mounts(controller: str, version: int, root: Path) -> Iterator[tuple[str, Path]]:
    """Yield of each mount of a controller which group it shows, and its folder; see proc_pid_mountinfo(5)."""
    for line in _lines(root / "proc/self/mountinfo"):
        front, _, back = line.partition(" - ")
        kind, _, options = back.split(" ", 2)
        is_it = kind == "cgroup2" if version == 2 else kind == "cgroup" and controller in options.split(",")
        if is_it:
            mounted, folder = front.split(" ")[3:5]
            yield _unescaped(mounted), root / _unescaped(folder).lstrip("/")


def _below(path: str, mounted: str, folder: Path) -> Path:
    """Return the folder of a group below a mount; the mount's own if the group lies outside of it."""
    relative = os.path.relpath(path, mounted) if path.startswith("/") else ".."
    own = folder / relative
    return folder if relative.split("/")[0] == ".." or not own.is_dir() else own


def _quota(group: ControlGroup) -> int | None:
    """Return the cores of a group's quota, rounded up, None without one."""
    if group.version == 2:
        words = group.read("cpu.max").split()
    else:
        words = [group.read(f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    if len(words) != 2 or not all(word.isdigit() and int(word) for word in words):
        return None
    return -(-int(words[0]) // int(words[1]))


def _affinity() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _slurm_cores(environ: Mapping[str, str]) -> int | None:
    """Return the cores of this task of a Slurm job, None outside of one."""
    if per_task := _number(environ, "SLURM_CPUS_PER_TASK"):
        return per_task
    on_node = _number(environ, "SLURM_CPUS_ON_NODE") or _of_node(environ, "SLURM_JOB_CPUS_PER_NODE")
    return max(1, on_node // _tasks(environ)) if on_node else None


def _slurm_memory_mib(environ: Mapping[str, str], cores: int) -> int | None:
    """Return the memory of this task of a Slurm job, None outside of one, or if it has all of the node."""
    if on_node := _number(environ, "SLURM_MEM_PER_NODE"):
        return on_node // _tasks(environ)
    if per_cpu := _number(environ, "SLURM_MEM_PER_CPU"):
        return per_cpu * (_slurm_cores(environ) or cores)
    return None


def _tasks(environ: Mapping[str, str]) -> int:
    """Return how many tasks of this job step share the node."""
    return _of_node(environ, "SLURM_STEP_TASKS_PER_NODE") or 1


def _of_node(environ: Mapping[str, str], name: str) -> int | None:
    """Return the number that a variable such as ``2(x3),1`` has for this node."""
    numbers: list[int] = []
    for word in environ.get(name, "").split(","):
        if (found := _WORD.fullmatch(word)) is None:
            return None
        numbers += [int(found[1])] * min(int(found[2] or 1), 1 << 16)
    place = _number(environ, "SLURM_NODEID") or 0
    return numbers[place] if place < len(numbers) else None


def _number(environ: Mapping[str, str], name: str) -> int | None:
    word = environ.get(name, "")
    return int(word) if re.fullmatch(r"[0-9]{1,12}", word, re.ASCII) else None


def _keyed(text: str) -> dict[str, int]:
    words = text.split()
    return {key: int(value) for key, value in zip(words[::2], words[1::2], strict=False) if value.isdigit()}


def _lines(file: Path) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()]


def _unescaped(word: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), word)
