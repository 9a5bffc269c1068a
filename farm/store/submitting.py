"""Submits of the same files or recheck wait for each other, and find the run that the first one stored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from sqlalchemy import Connection, text

from farm.judging.submit_options import SubmitOptions
from farm.manifest.entries import fingerprint
from farm.manifest.lines import Fingerprint

# A second transaction waits at the insert until the first has ended; then it finds the run. Transactions
# that only read cannot hold this up, as they can an advisory lock.
_BEGIN = text("INSERT INTO submitting VALUES (:sha256)")
_END = text("DELETE FROM submitting WHERE paths_sha256 = :sha256")

_OF_FILES = text("""
    SELECT runs.id, array_agg(path ORDER BY number) AS paths,
           array_agg(ARRAY[sha256, next_sha256] ORDER BY number) AS sha256s
    FROM runs JOIN manifests ON manifests.run_id = runs.id
    WHERE options - 'traceparent' = CAST(:options AS jsonb) AND cancelled_at IS NULL
      AND runs.id IN (SELECT run_id FROM manifests WHERE number = 0 AND path = :first)
    GROUP BY runs.id ORDER BY created_at DESC
""")

_RECHECK = text("""
    SELECT id FROM runs
    WHERE owner IS NULL AND cancelled_at IS NULL AND options - 'traceparent' = CAST(:options AS jsonb)
    ORDER BY created_at DESC LIMIT 1
""")


@contextmanager
def one_by_one(connection: Connection, subject: bytes) -> Iterator[None]:
    """Block other submits of the same subject until the end of the transaction."""
    value = {"sha256": sha256(subject).digest()}
    connection.execute(_BEGIN, value)
    yield
    connection.execute(_END, value)


def run_of(connection: Connection, paths: Sequence[Path], options: SubmitOptions) -> str | None:
    """Return the newest run of the same files, as they are now, with the same options; None without one."""
    values = {"options": json.dumps(asdict(options)), "first": str(paths[0])}
    now: list[Fingerprint] | None = None
    for run_id, stored, sha256s in connection.execute(_OF_FILES, values):
        if stored != [str(path) for path in paths]:
            continue
        now = now or [fingerprint(path) for path in paths]
        if all(print_.sha256 in known for print_, known in zip(now, sha256s, strict=True)):
            return str(run_id)
    return None


def recheck_of(connection: Connection, options: Mapping[str, object]) -> str | None:
    """Return the newest recheck with these options; None without one."""
    found = connection.scalar(_RECHECK, {"options": json.dumps(options)})
    return None if found is None else str(found)
