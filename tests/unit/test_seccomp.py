"""The filter of system calls, run as the kernel would run it."""

from __future__ import annotations

import ast
import errno
import functools
import os
import signal
import struct
import subprocess
import sys

import pytest
from farm_workers.box.launch import ITSELF, of_this_process
from farm_workers.box.seccomp import (
    FOR_CELLS,
    MACHINES,
    REFUSED,
    REFUSED_IN_CELLS,
    REFUSED_WHERE_SHARED,
    SOCKET_FAMILIES,
    filter_for,
)

ALLOW, ERROR, KILL = 0x7FFF0000, 0x00050000, 0x80000000
#: Calls that every program makes: read, write, mmap, execve, exit_group.
COMMON = {"x86_64": (0, 1, 9, 59, 231), "aarch64": (63, 64, 222, 221, 94)}
NEW_USER, NEW_THREAD = 0x10000000, 0x003D0F00


_filter = functools.cache(filter_for)


def said(
    machine: str,
    call: int,
    *arguments: int,
    audit: int | None = None,
    trusted: bool = False,
    in_cell: bool = False,
    image: int | None = None,
    **more: bool,
) -> int:
    """Run the filter on a call: classic BPF, of which it uses five instructions."""
    words = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<iIQ6Q", call, MACHINES[machine].audit if audit is None else audit, 0, *words)
    code = _filter(machine, trusted=trusted, in_cell=in_cell, image=image, **more)
    assert code is not None
    program = list(struct.iter_unpack("<HBBI", code))
    accumulator = position = 0
    while True:
        instruction, yes, no, operand = program[position]
        position += 1
        if instruction == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif instruction == 0x54:
            accumulator &= operand
        elif instruction == 0x06:
            return operand
        else:
            test = {0x15: accumulator == operand, 0x35: accumulator >= operand, 0x45: accumulator & operand}
            position += yes if test[instruction] else no


@pytest.mark.parametrize("machine", MACHINES)
def test_what_programs_do_is_allowed(machine: str) -> None:
    assert {said(machine, call) for call in COMMON[machine]} == {ALLOW}


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_listed_is_refused_with_its_error(machine: str) -> None:
    for rule in REFUSED.values():
        number = rule[MACHINES[machine].place]
        if number is not None:
            assert said(machine, number) == ERROR | rule[0]


@pytest.mark.parametrize("machine", MACHINES)
def test_threads_and_processes_are_allowed_and_user_namespaces_are_not(machine: str) -> None:
    clone = MACHINES[machine].clone
    assert said(machine, clone, NEW_THREAD) == said(machine, clone, 17) == ALLOW
    assert said(machine, clone, NEW_USER | 17) == ERROR | errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_a_trusted_process_may_make_namespaces_and_mounts_and_nothing_else_more(machine: str) -> None:
    here = MACHINES[machine]
    numbers = {name: rule[here.place] for name, rule in REFUSED.items() if rule[here.place] is not None}
    allowed = {name for name, number in numbers.items() if said(machine, number, trusted=True) == ALLOW}
    assert allowed == {"unshare", "setns", "mount", "umount2", "pivot_root"} == FOR_CELLS
    assert said(machine, here.clone, NEW_USER | 17, trusted=True) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_the_upper_half_of_an_argument_hides_nothing(machine: str) -> None:
    here = MACHINES[machine]
    assert said(machine, here.ioctl, 0, 0x5412 | 1 << 40) == ERROR | errno.EPERM
    assert said(machine, here.socket, 40 | 1 << 40) == ERROR | errno.EAFNOSUPPORT


#: kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_send_signal; which argument is the signal.
SENDING = {
    "x86_64": ((62, 1), (200, 1), (234, 2), (129, 1), (297, 2), (424, 1)),
    "aarch64": ((129, 1), (130, 1), (131, 2), (138, 1), (240, 2), (424, 1)),
}
#: Signals that come of a process's own faults and limits, or that a C library sends to its threads.
HARMLESS = {0, 4, 5, 6, 7, 8, 11, 17, 18, 23, 24, 25, 28, 31, 32, 33}
#: SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
STOPPING = {19, 20, 21, 22}


@pytest.mark.parametrize("machine", MACHINES)
def test_who_sends_a_deadly_signal_dies_of_it_where_that_is_not_allowed(machine: str) -> None:
    for call, place in SENDING[machine]:
        answers = {
            number: said(machine, call, *place * [1], number | 1 << 40, in_cell=True) for number in range(65)
        }
        assert {number for number, answer in answers.items() if answer == ALLOW} == HARMLESS
        refused = {number for number, answer in answers.items() if answer == ERROR | errno.EPERM}
        assert refused == STOPPING
        assert set(answers.values()) == {ALLOW, KILL, ERROR | errno.EPERM}
        assert said(machine, call, *place * [1], 9) == ALLOW
    assert {said(machine, call, in_cell=True) for call in COMMON[machine]} == {ALLOW}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_terminal_is_not_fed_and_else_can_be_asked(machine: str) -> None:
    ioctl = MACHINES[machine].ioctl
    assert [said(machine, ioctl, 0, request) for request in (0x5412, 0x541C)] == 2 * [ERROR | errno.EPERM]
    assert said(machine, ioctl, 0, 0x5401) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_sockets_are_of_the_common_families(machine: str) -> None:
    call = MACHINES[machine].socket
    allowed = {family for family in range(50) if said(machine, call, family) == ALLOW}
    assert allowed == set(SOCKET_FAMILIES)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_calls_of_another_machine_end_the_process(machine: str) -> None:
    for other in {*(each.audit for each in MACHINES.values()), 0x40000003} - {MACHINES[machine].audit}:
        assert said(machine, COMMON[machine][0], audit=other) == KILL


def test_the_second_table_of_x86_64_is_closed() -> None:
    assert said("x86_64", 0x40000000 | COMMON["x86_64"][0]) == ERROR | errno.ENOSYS


def test_a_machine_that_is_not_known_gets_no_filter() -> None:
    assert filter_for("riscv64") is None


@pytest.mark.parametrize("machine", MACHINES)
def test_jumps_end_in_the_program(machine: str) -> None:
    code = filter_for(machine)
    assert code is not None
    program = list(struct.iter_unpack("<HBBI", code))
    for place, (_, yes, no, _) in enumerate(program):
        assert place + 1 + max(yes, no) <= len(program)
    assert len(program) < 4096  # BPF_MAXINSNS
    assert program[-1][0] == 0x06


@pytest.mark.parametrize("machine", MACHINES)
def test_a_cell_cannot_say_who_gets_its_orphans(machine: str) -> None:
    prctl, subreaper, name = MACHINES[machine].prctl, 36, 15
    assert said(machine, prctl, subreaper, 0, in_cell=True) == ERROR | errno.EPERM
    assert said(machine, prctl, subreaper, 1) == ALLOW
    assert said(machine, prctl, name, 1, in_cell=True) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_a_cell_makes_no_process_that_is_not_below_it(machine: str) -> None:
    clone, sibling, child = MACHINES[machine].clone, 0x8000 | 17, 17
    assert said(machine, clone, sibling, in_cell=True) == ERROR | errno.EPERM
    assert said(machine, clone, child, in_cell=True) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_a_cell_sets_limits_of_its_own_only_and_makes_nothing_that_outlives_it(machine: str) -> None:
    prlimit = MACHINES[machine].prlimit
    assert said(machine, prlimit, 0, 7, in_cell=True) == ALLOW
    assert said(machine, prlimit, 1, 7, in_cell=True) == ERROR | errno.EPERM
    for numbers in REFUSED_IN_CELLS.values():
        number = numbers[MACHINES[machine].place - 1]
        assert said(machine, number, in_cell=True) == ERROR | errno.EPERM
        assert said(machine, number) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_a_cell_cannot_have_the_kernel_send_it_a_signal_of_its_choice(machine: str) -> None:
    here, refused = MACHINES[machine], ERROR | errno.EPERM
    asked = {number: said(machine, here.clone, number | 1 << 40, in_cell=True) for number in range(256)}
    assert {number for number, answer in asked.items() if answer == ALLOW} == {0, 17}
    assert set(asked.values()) == {ALLOW, refused}
    for command in (8, 10, 15, 1024, 1026):  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY
        assert said(machine, here.fcntl, 3, command, 9, in_cell=True) == refused
    assert said(machine, here.fcntl, 3, 4, 0, in_cell=True) == ALLOW
    for call, place in ((here.setrlimit, 0), (here.prlimit, 1)):
        assert said(machine, call, *place * [0], 0, in_cell=True) == refused
        assert said(machine, call, *place * [0], 7, in_cell=True) == ALLOW
    assert said(machine, here.clone, 9) == said(machine, here.setrlimit, 0) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_a_fork_sends_its_image_no_signal_in_a_cell_that_both_are_in(machine: str) -> None:
    image, other, refused = 7, 8, ERROR | errno.EPERM
    kill, tkill, tgkill, queue, queue_to_thread, by_descriptor = (call for call, _ in SENDING[machine])
    for target in (image, -image, -1):
        word = target & 0xFFFFFFFF
        assert said(machine, kill, word, 11, in_cell=True, image=image) == refused
        assert said(machine, kill, word, 11, in_cell=True) == ALLOW
    for call in (tgkill, queue, queue_to_thread):
        assert said(machine, call, image, 11, 11, in_cell=True, image=image) == refused
        assert said(machine, call, other, 11, 11, in_cell=True, image=image) == ALLOW
    assert said(machine, tkill, other, 11, in_cell=True, image=image) == refused
    assert said(machine, kill, other, 11, in_cell=True, image=image) == ALLOW
    assert said(machine, kill, other, 9, in_cell=True, image=image) == KILL
    assert said(machine, by_descriptor, image, 11, in_cell=True, image=image) == ALLOW


#: Run in a process of its own: takes the filter of a fork on, then makes each call on its parent.
_IN_A_CELL = """
import ctypes, os, platform, sys
from farm_workers.box import seccomp
from farm_workers.images.child import Filter
machine = platform.machine()
place = seccomp.MACHINES[machine].place - 1
parent, libc = os.getppid(), ctypes.CDLL(None, use_errno=True)
calls = {name: numbers[place] for name, numbers in seccomp.REFUSED_IN_CELLS.items()}
assert libc.prctl(38, 1, 0, 0, 0) == 0
Filter(seccomp.filter_for(machine, in_cell=True, image=parent), machine).take()

def said(number, *words):
    return ctypes.get_errno() if libc.syscall(number, *words, 0, 0, 0, 0) == -1 else 0

answers = {name: said(number, parent) for name, number in calls.items()}
for number in (0, 6, 11, 19, 20, 21, 22):
    answers[f"kill {number}"] = said(seccomp._SENDING[0][place], parent, number)
answers["kill -1"] = said(seccomp._SENDING[0][place], -1, 11)
print(answers, flush=True)
os.abort()
"""


def test_the_kernel_of_this_machine_refuses_a_fork_what_is_listed() -> None:
    run = subprocess.run([sys.executable, "-c", _IN_A_CELL], check=False, capture_output=True, text=True)
    assert run.returncode == -signal.SIGABRT, run.stderr  # a process may still abort
    answers = ast.literal_eval(run.stdout)
    assert set(answers.values()) == {errno.EPERM}, answers
    assert answers.keys() > {*REFUSED_IN_CELLS}


#: O_RDONLY, O_WRONLY, O_RDWR and both of their bits; O_TRUNC; O_CREAT, O_CLOEXEC.
READ, WRITE, BOTH, NEITHER, TRUNCATE, OTHERS = 0, 1, 2, 3, 0o1000, 0o2000100


@pytest.mark.parametrize("machine", MACHINES)
def test_where_files_are_shared_all_is_refused_that_landlock_has_no_rule_about(machine: str) -> None:
    here, refused = MACHINES[machine], ERROR | errno.EPERM
    for rule in REFUSED_WHERE_SHARED.values():
        number = rule[here.place]
        if number is not None:
            assert said(machine, number, shared=True) == ERROR | rule[0]
    assert {said(machine, call, shared=True) for call in range(463, 600)} == {ERROR | errno.ENOSYS}
    assert {said(machine, here.socket, family, shared=True) for family in range(50)} == {
        ERROR | errno.EAFNOSUPPORT
    }
    for command in (6, 7, 37, 38, 8, 10, 15, 1024, 1026):  # locks, and signals that the kernel sends later
        assert said(machine, here.fcntl, 3, command, shared=True) == refused
    assert said(machine, here.fcntl, 3, 2, shared=True) == ALLOW
    assert said(machine, here.ioctl, 3, 0x5401, shared=True) == ALLOW
    for request in (0x40086602, 0x401C5820, 0x40806685, 0x5412):  # attributes, verity, input of a terminal
        assert said(machine, here.ioctl, 3, request, shared=True) == refused
    assert {said(machine, call, shared=True) for call in COMMON[machine]} == {ALLOW}


@pytest.mark.parametrize("machine", MACHINES)
def test_where_files_are_shared_one_is_opened_for_what_landlock_asks_about(machine: str) -> None:
    here, refused = MACHINES[machine], ERROR | errno.EPERM
    calls = [(here.openat, 2), *([(here.open, 1)] if here.open is not None else [])]
    for call, place in calls:
        for way in (READ, WRITE, BOTH):
            assert said(machine, call, *place * [0], way | OTHERS, shared=True) == ALLOW
        for way in (WRITE, BOTH):
            assert said(machine, call, *place * [0], way | TRUNCATE | OTHERS, shared=True) == ALLOW
        for way in (READ | TRUNCATE, NEITHER, NEITHER | TRUNCATE | OTHERS):
            assert said(machine, call, *place * [0], way | 1 << 40, shared=True) == refused


@pytest.mark.parametrize("machine", MACHINES)
def test_where_landlock_knows_no_signals_a_process_sends_them_to_itself_alone(machine: str) -> None:
    *calls, by_descriptor = (call for call, _ in SENDING[machine])
    for call in calls:
        for target in (1, 7, 0, -1, -7, ITSELF - 1):
            word = target & 0xFFFFFFFF
            assert said(machine, call, word, 0, 0, shared=True, alone=True) == ERROR | errno.EPERM
            assert said(machine, call, word, 0, 0, shared=True) == ALLOW
        assert said(machine, call, ITSELF, 0, 0, shared=True, alone=True) == ALLOW
        assert said(machine, call, ITSELF, 9, 9, shared=True, alone=True, in_cell=True) == KILL
    assert said(machine, by_descriptor, 3, 0, shared=True, alone=True) == ERROR | errno.EPERM
    code = filter_for(machine, shared=True, alone=True)
    assert code is not None
    assert code.count(ITSELF.to_bytes(4, "little")) == len(calls)
    assert of_this_process(code).count(os.getpid().to_bytes(4, "little")) >= len(calls)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_fork_and_a_command_are_refused_all_that_a_session_is(machine: str) -> None:
    """So a probe with the rights of a session speaks for all of them."""
    for call in range(470):
        session = said(machine, call, 5, 5, 5, shared=True, holder=True)
        if session != ALLOW:
            assert said(machine, call, 5, 5, 5, shared=True) != ALLOW
            assert said(machine, call, 5, 5, 5, shared=True, in_cell=True) != ALLOW
