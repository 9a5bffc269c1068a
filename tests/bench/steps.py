"""Benchmarks, one measured process: a step of the farm, its seconds and its peak memory, as JSON::

python -m tests.bench.steps submit DATABASE_URL MANIFEST
python -m tests.bench.steps again DATABASE_URL MANIFEST
python -m tests.bench.steps export DATABASE_URL RUN
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

from farm import db
from farm.export import export
from farm.queries import Queries
from farm.store import Store
from farm.submit import submit
from tests.bench.farm_at_work import options


def _submit(database_url: str, manifest: str) -> str:
    store = Store(db.connect(database_url, application="farm-bench"))
    known = Queries(store.engine).served()
    return submit(store, [Path(manifest)], options(share=True), known=known).run_id


def _again(database_url: str, manifest: str) -> str:
    """Submit what is known, as another run, and return how many lines are shared."""
    store = Store(db.connect(database_url, application="farm-bench"))
    queries = Queries(store.engine)
    asked = options(share=True)
    made = submit(store, [Path(manifest)], asked, known=queries.served(), new_run=True)
    return made.run_id


def _export(database_url: str, run: str) -> str:
    engine = db.connect(database_url, application="farm-bench")
    queries = Queries(engine)
    (written,) = export(Store(engine), queries, queries.run(run))
    return str(written.lines)


def _peak_mib() -> float:
    """Return the most memory this process had resident; `ru_maxrss` would count its parent's, too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    assert found, "this kernel does not tell a process's peak"
    return int(found[1]) / 1024


def main() -> None:
    step = {"submit": _submit, "again": _again, "export": _export}[sys.argv[1]]
    begun = time.perf_counter()
    result = step(*sys.argv[2:])
    seconds = time.perf_counter() - begun
    sys.stdout.write(json.dumps({"seconds": seconds, "peak_mib": _peak_mib(), "result": result}))


if __name__ == "__main__":
    main()
