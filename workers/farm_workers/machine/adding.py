"""Machine step, for `farm environments`: adds, packs and verifies environments of this machine.

An environment is added only after all its canaries got the right verdicts.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from farm.errors import FarmError, SettingsError, UsageError
from farm.settings import Settings
from farm_workers.checking.canary import Examination, examine, refusal
from farm_workers.environments import bundle, digest, record, storage, table
from farm_workers.environments.bundle import BundleFacts
from farm_workers.environments.configured import Parts, Table, digests, tables
from farm_workers.environments.lean_environment import EMBEDDED, LeanEnvironment
from farm_workers.environments.making import Made, Making, Source, notes_of
from farm_workers.environments.record import Record
from farm_workers.environments.table import Keys, Value
from farm_workers.machine.environments import FILE
from farm_workers.machine.fitting import lean_with_fit
from farm_workers.machine.opening import isolated
from farm_workers.systems.lean.judge import checker as checker_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Added:
    """An added environment, with the results of its canaries and the reading speed of its disk."""

    environment: LeanEnvironment
    examined: Examination
    seconds: float
    storage: storage.Storage | None
    way: str

    @property
    def works(self) -> dict[str, str]:
        """Whether this machine's way, the audit and the replay work with this Lean, by name and in words."""
        forked = self.way in self.examined.ways
        others = ", ".join(sorted(self.examined.ways - {self.way})) or "cold"
        return {
            self.way: "yes" if forked else f"no, Lean is run {others} instead",
            "audit": "yes" if self.environment.audited else "no, it serves the tier lean only",
            "replay": _replay(self.environment),
        }


def _replay(environment: LeanEnvironment) -> str:
    kernels = ["the farm's seal"] if environment.forks else []
    kernels += [each.name for each in environment.checkers]
    if not environment.audited or not kernels:
        return "no, the tier kernel cannot be had: it needs a `checker` and the audit"
    return f"yes, by {' and '.join(kernels)}"


def environments_file(settings: Settings) -> Path:
    """Return the path of this machine's file of environments, which may not exist yet."""
    return settings.environments or settings.home / FILE


def add(
    settings: Settings, making: Making, source: Source, *, headers: Sequence[str] = (), audited: bool = True
) -> Added:
    """Make an environment, judge its canaries, and write its table; raises FarmError.

    The table is written last, so a failure leaves `farm.toml` unchanged.
    """
    file = environments_file(settings)
    table.require_room(file, making.name)
    made = source.make(making)
    keys = _keys(made, headers, audited=audited)
    parts = _described(making.name, keys)
    keys["toolchain"] = parts.toolchain.name
    found = _read(making, made, parts)
    making.say("Measure the disk, and judge the known programs")
    measured = storage.measure(parts.folders)
    environment = Table(making.name, keys).environment(settings.home)
    started = time.monotonic()
    with isolated(settings) as isolation:
        way, home = settings.way, settings.home
        environment = lean_with_fit(environment, home=home, isolation=isolation, way=way, say=making.say)
        with checker_of(isolation, settings, 1) as checker:
            examined = examine(environment, checker)
    if examined.wrong:
        raise FarmError(f"{refusal(environment, examined)}\n{file} is as it was")
    record.save(settings.home, making.name, found)
    table.add(file, making.name, keys)
    return Added(
        environment=environment,
        examined=examined,
        seconds=time.monotonic() - started,
        storage=measured,
        way=settings.way,
    )


def _keys(made: Made, headers: Sequence[str], *, audited: bool) -> dict[str, Value]:
    keys = dict(made.keys)
    if headers:
        keys["headers"] = [header if header.endswith("\n") else f"{header}\n" for header in headers]
        keys.pop("header", None)
    if not audited:
        keys["audit"] = False
    return keys


def _described(name: str, keys: Keys) -> Parts:
    try:
        return Table(name, keys).parts()
    except SettingsError as error:
        raise SettingsError(f"environment {name!r}: {error}") from error


def _read(making: Making, made: Made, parts: Parts) -> Record:
    """Return the record of a new environment; raises FarmError if its digest is not the bundle's."""
    making.say("Read all compiled modules and compute the digest")
    folder = making.folder if notes_of(making.folder).get("name") == making.name else None
    with making.following("reading") as told:
        found = Record.read(parts, told, made=folder)
    if made.digest and made.digest != found.digest:
        shutil.rmtree(making.folder / "bundle")
        raise FarmError(
            f"the bundle was damaged or changed: it says that its digest is {made.digest}, and it is "
            f"{found.digest}. Pack it again; nothing of it was kept"
        )
    return found


def packed(settings: Settings, making: Making, file: Path) -> BundleFacts:
    """Pack an environment into a bundle, with a digest computed from its files and not from the cache."""
    keys = _keys_of(settings, making.name)
    parts = _described(making.name, keys)
    making.say("Read all compiled modules and compute the digest")
    with making.following("reading") as told:
        found = Record.read(parts, told)
    making.say(f"Pack them into {file}")
    with making.following("packing") as told:
        return bundle.pack(making.name, keys, parts, found.digest, file, told)


def _keys_of(settings: Settings, name: str) -> dict[str, Value]:
    """Return the keys of an environment's table; raises UsageError if it has no table."""
    file = environments_file(settings)
    if name == EMBEDDED and name not in tables(file, required=False):
        raise UsageError(f"{name} comes with the farm as a Python package: pip installs and verifies it")
    return table.keys(file, name)


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifiedEnvironment:
    """The record of an environment's present files, its earlier record, and its cached digest."""

    found: Record
    earlier: Record | None
    remembered: str

    @property
    def differences(self) -> list[str]:
        """The differences from the earlier record; none without one."""
        return list(self.found.differences(self.earlier)) if self.earlier else []

    @property
    def is_stale(self) -> bool:
        """Whether files changed but kept their sizes and times, so that the cached digest is wrong."""
        return self.remembered != self.found.digest


def verified(settings: Settings, making: Making, *, accept: bool) -> VerifiedEnvironment:
    """Read all files of an environment, and return its new record with the earlier one.

    The new record is saved if the environment had none, or if `accept` is true. If the cached digest is
    wrong, all cached digests are dropped.
    """
    keys = _keys_of(settings, making.name)
    parts = _described(making.name, keys)
    earlier = record.load(settings.home, making.name)
    with making.following("reading") as told:
        found = Record.read(parts, told, made=Path(earlier.made) if earlier and earlier.made else None)
    if earlier is None or accept:
        record.save(settings.home, making.name, found)
    remembered = Table(making.name, keys).environment(settings.home).digest
    if remembered != found.digest:
        digest.forget(digests(settings.home))
    return VerifiedEnvironment(found=found, earlier=earlier, remembered=remembered)
