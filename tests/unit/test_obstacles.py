"""Why a machine has no namespaces, and what mends it: what the kernel says, and what a person is told."""

from __future__ import annotations

import errno

import pytest
from farm_workers.box.obstacles import KernelAnswers, explain, look

FREE = {"user.max_user_namespaces": "15000"}
CLOSED_TO_USERS = {**FREE, "kernel.unprivileged_userns_clone": "0"}
UBUNTU = {**FREE, "kernel.apparmor_restrict_unprivileged_userns": "1"}


def told(
    *tried: int,
    sysctls: dict[str, str] = FREE,
    container: str | None = None,
    masked: tuple[str, ...] = (),
    filtered: bool = False,
) -> str | None:
    words = dict(zip(("user", "spaces", "mount", "proc"), tried, strict=False))
    return explain(
        KernelAnswers(tried=words, sysctls=sysctls, container=container, masked=masked, filtered=filtered)
    )


def test_where_the_kernel_refuses_nothing_no_cause_is_made_up() -> None:
    assert told(0, 0, 0, 0, sysctls=UBUNTU, masked=("/proc/kcore",), container="docker") is None


@pytest.mark.parametrize(
    ("tried", "sysctls", "command"),
    [
        ([errno.ENOSPC], {"user.max_user_namespaces": "0"}, "user.max_user_namespaces=15000"),
        ([errno.EPERM], CLOSED_TO_USERS, "kernel.unprivileged_userns_clone=1"),
        ([0, errno.EPERM], UBUNTU, "kernel.apparmor_restrict_unprivileged_userns=0"),
        ([0, 0, errno.EACCES], UBUNTU, "kernel.apparmor_restrict_unprivileged_userns=0"),
        ([errno.EACCES], UBUNTU, "kernel.apparmor_restrict_unprivileged_userns=0"),
    ],
)
def test_a_setting_of_the_kernel_is_named_with_the_command_that_changes_it(
    tried: list[int], sysctls: dict[str, str], command: str
) -> None:
    said = told(*tried, sysctls=sysctls)
    assert said is not None
    assert said.endswith(f"; set it with: sudo sysctl -w {command}")
    assert said == (told(*tried, sysctls=sysctls, container="docker") or "").replace(
        " on the container's host", ""
    )


def test_a_setting_that_did_not_cause_the_failure_is_not_blamed() -> None:
    said = told(errno.EPERM, sysctls=UBUNTU, container="docker", filtered=True)
    assert said is not None
    assert "apparmor_restrict" not in said
    assert said.startswith("a filter of system calls (seccomp) refuses unshare (EPERM); run it with: docker")


@pytest.mark.parametrize(
    ("container", "options"),
    [
        ("docker", ["seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"]),
        ("podman", ["seccomp=unconfined", "unmask=ALL"]),
        ("kubernetes", ["hostUsers: false", "procMount: Unmasked", "seccompProfile"]),
    ],
)
@pytest.mark.parametrize("tried", [[errno.EPERM], [0, 0, errno.EACCES], [0, 0, 0, errno.EPERM]])
def test_a_container_is_told_the_options_of_what_runs_it(
    container: str, options: list[str], tried: list[int]
) -> None:
    said = told(*tried, container=container, masked=("/proc/kcore", "/proc/sys"))
    assert said is not None
    assert [option for option in options if option not in said] == []


def test_a_masked_proc_is_named_when_a_new_one_cannot_be_mounted() -> None:
    masked = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi")
    said = told(0, 0, 0, errno.EPERM, container="docker", masked=masked)
    assert said is not None
    assert said.startswith("/proc/kcore, /proc/keys, /proc/timer_list are masked, so no new /proc can be")


def test_a_filter_outside_of_a_container_is_taken_for_that_of_a_unit() -> None:
    assert "RestrictNamespaces=no" in (told(errno.EPERM, filtered=True) or "")


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS])
def test_a_kernel_without_user_namespaces_is_told(number: int) -> None:
    assert "CONFIG_USER_NS" in (told(number) or "")


def test_a_pod_is_known_as_one_without_a_token_of_kubernetes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert look().container == "kubernetes"
