"""What this machine checks with, looked at part by part, for `farm doctor`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from farm import allotment
from farm.cli.doctor import Diagnosis
from farm.connections import Connections
from farm.errors import FarmError
from farm.judging.advisories import advisories
from farm.judging.forgeable import FORGEABLE, is_forgeable
from farm_workers.checking.canary import examine as examine_canaries
from farm_workers.checking.machine import ANY, OF_A_WORKER, Machine, demanded, isolated, opened
from farm_workers.environments.environment import Environment
from farm_workers.environments.lean_environment import LeanEnvironment, own_folder
from farm_workers.environments.storage import measure


def examine(connections: Connections) -> list[Diagnosis]:
    """Look at the isolation, at each environment, and at what its canaries came out as."""
    findings = [_isolation(connections), memory(connections.settings.concurrency)]
    try:
        # What a worker would refuse to start with can still be looked at.
        with opened(connections.settings, minimum=ANY) as machine:
            findings += _environments(machine)
    except FarmError as error:
        findings.append(Diagnosis(part="Lean", ok=False, words=str(error)))
    return findings


def memory(concurrency: int, root: Path = allotment.ROOT) -> Diagnosis:
    """Say how many cores and how much memory there is, and whether the kernel killed out of memory here."""
    mib, cores = allotment.memory_mib(root), allotment.cores(root)
    words = f"{mib} MiB and {cores} cores, for {concurrency} checks at once"
    killed = allotment.out_of_memory(root)
    for folder, count in killed.items():
        words += (
            f"; the control group {folder} ran out of memory {count} times since it was made, and the kernel "
            "killed processes in it: give it more memory, or lower FARM_CONCURRENCY or FARM_IMAGES_MIB"
        )
    return Diagnosis(part="memory", ok=True, weak=bool(killed), words=words)


def _isolation(connections: Connections) -> Diagnosis:
    least = demanded(connections.settings, OF_A_WORKER if connections.settings.database_url else ANY)
    try:
        with isolated(connections.settings) as isolation:
            isolation.require(least)
    except FarmError as error:
        return Diagnosis(part="isolation", ok=False, words=str(error))
    words = " ".join([f"in force: {isolation.name} (at least {least} was asked for).", *isolation.missing])
    if weak := is_forgeable(isolation.name):
        words += f" Here {FORGEABLE}."
    return Diagnosis(part="isolation", ok=True, weak=weak, words=words)


def _environments(machine: Machine) -> Iterator[Diagnosis]:
    for name, problem in machine.installed.problems.items():
        yield Diagnosis(part=f"environment {name}", ok=False, words=problem)
    for environment in machine.installed.sound.values():
        words = f"{environment.toolchain}, digest {environment.digest[:12]}"
        if known := advisories(environment.toolchain):
            words += f"; known holes in its kernel: {', '.join(each.id for each in known)}"
        slow = _slow_storage(environment) if isinstance(environment, LeanEnvironment) else ""
        words += f". Slow storage: {slow}" if slow else ""
        yield Diagnosis(part=f"environment {environment.name}", ok=True, weak=bool(slow), words=words)
        if isinstance(environment, LeanEnvironment):
            yield _canaries(environment, machine)
        else:
            yield _sound(environment, machine)
    machine.installed.require_any()


def _sound(environment: Environment, machine: Machine) -> Diagnosis:
    started = time.monotonic()
    part = f"canaries of {environment.name}"
    try:
        machine.judges.require_sound(environment)
    except FarmError as error:
        return Diagnosis(part=part, ok=False, words=str(error))
    return Diagnosis(part=part, ok=True, words=f"all judged correctly in {time.monotonic() - started:.1f} s")


def _slow_storage(environment: LeanEnvironment) -> str:
    """Say how slow the disk of an environment's modules is, "" where it is not slow."""
    own = own_folder(Path(environment.lean[0])) / "lib" / "lean"
    measured = measure([*map(Path, environment.lean_path), *[own] * own.is_dir()])
    return measured.warning() if measured else ""


def _canaries(environment: LeanEnvironment, machine: Machine) -> Diagnosis:
    way = machine.checker.way
    started = time.monotonic()
    examined = examine_canaries(environment, machine.checker)
    seconds = time.monotonic() - started
    words = f"all {examined.canaries} judged correctly in {seconds:.1f} s; way {way}"
    if way not in examined.ways:
        words += " does not work with this Lean, which is run cold instead"
    return Diagnosis(
        part=f"canaries of {environment.name}",
        ok=not examined.wrong,
        words="; ".join(examined.wrong) or words,
    )
