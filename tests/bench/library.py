"""Bench step: the time, memory and disk that the table of dependencies of a large library takes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from farm_workers.audit import command
from farm_workers.audit.declarations import opened_module
from farm_workers.audit.dependencies import mapped
from farm_workers.audit.olean import Name
from farm_workers.box import isolation as isolations
from farm_workers.machine.environments import installed

from tests.bench.checks.figures import Figure

#: Copies of the core library, under other names: some 400 000 constants.
_COPIES = 197
#: The constants that a proof refers to.
_LOOKED_UP, _ROUNDS = 100, 5
_MIB = 1024.0 * 1024.0
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_MEASURED = (
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); u = resource.getrusage"
)
_MEASURED += "(resource.RUSAGE_CHILDREN); print(u.ru_utime + u.ru_stime, u.ru_maxrss / 1024)"


def library() -> Iterator[Figure]:
    """Measure the reading of a library, and looking names up in its table."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with isolations.prepared(home / "isolation") as isolation:
            core = Path(installed(home, None, isolation).lean("core").lean_path[0]) / "Core.olean"
        (home / "library").mkdir()
        for number in range(_COPIES):
            (home / "library" / f"M{number}.olean").write_bytes(_renamed(core, number))
        words = command(sys.executable, "library", [str(home / "table"), "e", str(home / "library")])
        done = subprocess.run(
            [sys.executable, "-c", _MEASURED, *words], capture_output=True, text=True, check=True
        )
        cpu, memory = map(float, done.stdout.splitlines()[-1].split())
        size = (home / "table").stat().st_size / _MIB
        yield Figure(
            key="library_cpu_seconds",
            name=done.stdout.splitlines()[0],
            unit="s",
            samples=(cpu,),
            at_most=60.0,
        )
        yield Figure(
            key="library_memory_mib", name="peak memory of the reading", unit="MiB", samples=(memory,)
        )
        yield Figure(
            key="library_table_mib", name="the table on disk", unit="MiB", samples=(size,), at_most=64.0
        )
        yield Figure(
            key="library_check_ms",
            name="a table opened, and a hundred constants looked up",
            unit="ms",
            samples=tuple(_looked_up(home / "table", core) for _ in range(_ROUNDS)),
            at_most=1.0,
        )


def _looked_up(table: Path, core: Path) -> float:
    with opened_module(_renamed(core, 7)) as module:
        # Names that begin otherwise keep their form in all copies: as good as no library has such names.
        names: list[Name] = [name for name in module.names if str(name[0]).isascii()][:_LOOKED_UP]
    begun = time.process_time()
    opened = mapped(table)
    for name in names:
        opened.below(name)
    return 1000.0 * (time.process_time() - begun)


def _renamed(file: Path, number: int) -> bytes:
    """Return a module in which the first part of each declared name is another one."""
    new, taken = bytearray(file.read_bytes()), set[bytes]()
    with opened_module(file) as module:
        olean, places = module.olean, set[int]()
        for ref in olean.elements(olean.object(olean.root, 1), "names"):
            while (parent := olean.child(ref, 0)) != ~0:
                ref = parent
            places.add(olean.child(ref, 1))
        texts = {place: olean.string(place).encode() for place in sorted(places) if place >= 0}
    mark = ("Q" + _LETTERS[number // 36] + _LETTERS[number % 36]).encode()
    for place, text in texts.items():
        if not text.isascii():
            continue
        has_room = -(len(text) + 1) % 8 >= len(mark)
        other, tried = (text + mark if has_room else text[: -len(mark)] + mark), 0
        while other in taken:
            other, tried = other[:-4] + bytes([65 + tried]) + mark, tried + 1
        taken.add(other)
        sizes = len(other) + 1, len(other) + 1, len(other)
        at = 8 * place + 8
        new[at : at + 24] = b"".join(size.to_bytes(8, "little") for size in sizes)
        new[at + 24 : at + 24 + len(other) + 1] = other + b"\0"
    return bytes(new)
