"""Box step: explains why this machine has no namespaces, with the command or option that remedies it.

`look` asks the kernel; `explain` is pure and interprets the answers. `writable_groups` names the option that
lets a container make control groups.
"""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from farm.place import container
from farm_workers.box import probe
from farm_workers.box.bubblewrap import python

#: Settings of the kernel that can prevent namespaces: the bad value, a good one, and the failures that it
#: causes.
_SYSCTLS: Mapping[str, tuple[str, str, frozenset[tuple[str, int]]]] = {
    "user.max_user_namespaces": ("0", "15000", frozenset({("user", errno.ENOSPC)})),
    "kernel.unprivileged_userns_clone": ("0", "1", frozenset({("user", errno.EPERM)})),
    "kernel.apparmor_restrict_unprivileged_userns": (
        *("1", "0"),
        frozenset(product(("spaces", "mount", "proc"), (errno.EPERM, errno.EACCES)))
        | {("user", errno.EACCES)},
    ),
}
#: The options that let a container make namespaces, by container runtime.
_OPTIONS = {
    "docker": (
        "run it with: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
        "--security-opt systempaths=unconfined"
    ),
    "podman": "run it with: podman run --security-opt seccomp=unconfined --security-opt unmask=ALL",
    "kubernetes": (
        "give the pod hostUsers: false, and its container securityContext: {procMount: Unmasked, "
        "seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}}"
    ),
}
#: The options that let a container make control groups, by container runtime.
_GROUPS = {
    "docker": (
        "run it with: docker run --user 0 --security-opt writable-cgroups=true "
        "(Docker 28 or newer, control groups of version 2)"
    ),
    "podman": "run it with: podman run --user 0 --security-opt unmask=/sys/fs/cgroup",
    "kubernetes": (
        "set cgroup_writable = true for the runtime in the node's containerd (2.1 or newer), "
        "and give the container securityContext: {runAsUser: 0}"
    ),
}
_UNIT = "in a systemd unit: RestrictNamespaces=no, and no SystemCallFilter= without @mount"


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelAnswers:
    """The kernel's answers about namespaces.

    `tried` are errors by the words of `farm_workers.box.probe`; `sysctls` its settings, empty for a missing
    one; `container` is the runtime of the container around this process, None outside of one; `masked` are
    mounted-over places in ``/proc``; `filtered`: a filter of system calls is on this process.
    """

    tried: Mapping[str, int]
    sysctls: Mapping[str, str]
    container: str | None
    masked: tuple[str, ...]
    filtered: bool


def look() -> KernelAnswers:
    """Ask the kernel whether this process can make namespaces."""
    return KernelAnswers(
        tried=_tried(),
        sysctls={name: _text(f"/proc/sys/{name.replace('.', '/')}").strip() for name in _SYSCTLS},
        container=container(),
        masked=tuple(place for place in _mounted() if place.startswith("/proc/")),
        filtered="\nSeccomp:\t2\n" in _text("/proc/self/status"),
    )


def explain(kernel: KernelAnswers) -> str | None:
    """Return in sentences the obstacle to bubblewrap's namespaces, and the remedy; None if unknown."""
    failed, number = next(((word, error) for word, error in kernel.tried.items() if error), ("", 0))
    if not failed:
        return None
    for name, (bad, good, failures) in _SYSCTLS.items():
        if kernel.sysctls.get(name) == bad and (failed, number) in failures:
            where = " on the container's host" if kernel.container else ""
            return f"{name} is {bad}; set it{where} with: sudo sysctl -w {name}={good}"
    if failed == "proc" and kernel.masked:
        return f"{', '.join(kernel.masked[:3])} are masked, so no new /proc can be mounted; {_remedy(kernel)}"
    if number in (errno.EINVAL, errno.ENOSYS):
        return "this kernel has no user namespaces; it must be built with CONFIG_USER_NS"
    return f"{_refused(kernel, failed, number)}; {_remedy(kernel)}"


def _refused(kernel: KernelAnswers, failed: str, number: int) -> str:
    what = {"user": "unshare", "spaces": "unshare", "mount": "mount", "proc": "mount of /proc"}[failed]
    who = "a filter of system calls (seccomp)" if kernel.filtered else "the kernel or its security module"
    return f"{who} refuses {what} ({errno.errorcode.get(number, number)})"


def _remedy(kernel: KernelAnswers) -> str:
    if kernel.container is not None:
        return _OPTIONS.get(kernel.container, " or ".join(_OPTIONS.values()))
    return _UNIT if kernel.filtered else f"if this is a container, {_OPTIONS['docker']}"


def writable_groups(error: int | None) -> str | None:
    """Return the option that lets a container make control groups; None outside containers."""
    if runtime := container():
        return _GROUPS[runtime]
    return f"if this is a container, {_GROUPS['docker']}" if error == errno.EROFS else None


def _tried() -> dict[str, int]:
    command = [python(), "-I", "-S", probe.__file__]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30).stdout
    return {word: int(number) for word, number in (line.split() for line in said.splitlines())}


def _mounted() -> list[str]:
    return [line.split()[4] for line in _text("/proc/self/mountinfo").splitlines()]


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
