"""Examines the isolation, the memory and the environments of this machine for `farm doctor`."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from farm import allotment
from farm.cli.doctor import Diagnosis
from farm.connections import Connections
from farm.errors import FarmError
from farm.judging.advisories import advisories
from farm.judging.forgeable import FORGEABLE, is_forgeable
from farm_workers.checking.canary import closed
from farm_workers.checking.canary import examine as examine_canaries
from farm_workers.environments.environment import Environment
from farm_workers.environments.lean_environment import LeanEnvironment, own_folder
from farm_workers.environments.storage import measure
from farm_workers.machine.descriptors import needed, raise_limit
from farm_workers.machine.environments import Configured, require_names
from farm_workers.machine.opening import ANY, OF_A_WORKER, Machine, demanded, isolated, opened

#: The most environments that are examined in parallel, and the deadline in seconds for all of them.
_AT_ONCE, _MOST_SECONDS = 4, 600.0


def examine(connections: Connections) -> Iterator[Diagnosis]:
    """Yield a diagnosis of the isolation, the memory, each environment, and its canaries."""
    yield _isolation(connections)
    yield memory(connections.settings.concurrency)
    yield open_files(connections.settings.concurrency, raise_limit())
    try:
        # A worker may refuse to start with this isolation; its environments are examined all the same.
        with opened(connections.settings, minimum=ANY) as machine:
            yield from _environments(machine)
    except FarmError as error:
        yield Diagnosis(part="Lean", ok=False, words=str(error))


def memory(concurrency: int, root: Path = allotment.ROOT) -> Diagnosis:
    """Return the cores, the memory, and the control groups in which the kernel killed for lack of memory."""
    mib, cores = allotment.memory_mib(root), allotment.cores(root)
    words = f"{mib} MiB and {cores} cores, for {concurrency} checks at once"
    killed = allotment.out_of_memory(root)
    for folder, count in killed.items():
        words += (
            f"; the control group {folder} ran out of memory {count} times since it was made, and the kernel "
            "killed processes in it: give it more memory, or lower FARM_CONCURRENCY or FARM_IMAGES_MIB"
        )
    return Diagnosis(part="memory", ok=True, weak=bool(killed), words=words)


def open_files(concurrency: int, most: int) -> Diagnosis:
    """Return whether a worker may open enough files for its checks at once."""
    words = f"at most {most}; {concurrency} checks at once need {needed(concurrency)}"
    is_enough = needed(concurrency) <= most
    remedy = "" if is_enough else ": raise the hard limit (LimitNOFILE= in a systemd unit, ulimit -Hn)"
    return Diagnosis(part="open files", ok=needed(1) <= most, weak=not is_enough, words=words + remedy)


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
    """Examine the environments in parallel, and yield each diagnosis as soon as it is complete."""
    require_names(machine.configured)
    found: queue.SimpleQueue[tuple[str, Diagnosis | None]] = queue.SimpleQueue()
    room = threading.Semaphore(_AT_ONCE)

    def look(name: str, each: Configured) -> None:
        with room:
            try:
                for diagnosis in _environment(name, each, machine):
                    found.put((name, diagnosis))
            except Exception as error:  # noqa: BLE001 # the thread's edge: the other threads go on
                words = f"{type(error).__name__}: {error}"
                found.put((name, Diagnosis(part=f"canaries of {name}", ok=False, words=words)))
            found.put((name, None))

    for name, each in machine.configured.items():
        threading.Thread(target=look, args=(name, each), daemon=True).start()
    yield from _until(found, set(machine.configured))


def _until(found: queue.SimpleQueue[tuple[str, Diagnosis | None]], left: set[str]) -> Iterator[Diagnosis]:
    """Yield diagnoses until all environments in `left` are done, or the deadline has passed."""
    deadline = time.monotonic() + _MOST_SECONDS
    while left:
        try:
            name, diagnosis = found.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            words = f"not examined to the end within {_MOST_SECONDS:g} s"
            yield from (Diagnosis(part=f"canaries of {each}", ok=False, words=words) for each in sorted(left))
            return
        if diagnosis is None:
            left.discard(name)
        else:
            yield diagnosis


def _environment(name: str, configured: Configured, machine: Machine) -> Iterator[Diagnosis]:
    """Yield the diagnoses of one environment and of its canaries."""
    try:
        environment = configured.find()
    except FarmError as error:
        yield Diagnosis(part=f"environment {name}", ok=False, words=str(error))
        return
    words = f"{environment.toolchain}, digest {environment.digest[:12]}"
    if known := advisories(environment.toolchain):
        words += f"; known holes in its kernel: {', '.join(each.id for each in known)}"
    slow = _slow_storage(environment) if isinstance(environment, LeanEnvironment) else ""
    words += f". Slow storage: {slow}" if slow else ""
    yield Diagnosis(part=f"environment {name}", ok=True, weak=bool(slow), words=words)
    if isinstance(environment, LeanEnvironment):
        yield _canaries(environment, machine)
    else:
        yield _sound(environment, machine)


def _sound(environment: Environment, machine: Machine) -> Diagnosis:
    started = time.monotonic()
    part = f"canaries of {environment.name}"
    try:
        machine.judges.require_sound(environment)
    except FarmError as error:
        return Diagnosis(part=part, ok=False, words=str(error))
    return Diagnosis(part=part, ok=True, words=f"all judged correctly in {time.monotonic() - started:.1f} s")


def _slow_storage(environment: LeanEnvironment) -> str:
    """Return a warning if the disk with an environment's modules is slow, else ""."""
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
    if environment.fit:
        words += f"; {environment.fit.words}"
    elif environment.library and not environment.forks:
        words += f"; whether it can be forked is not known: farm environments fit {environment.name}"
    wrong = "; ".join(examined.wrong)
    return Diagnosis(
        part=f"canaries of {environment.name}",
        ok=not wrong,
        words=wrong + closed(environment, machine.checker.isolation) if wrong else words,
    )
