"""The export step: stored verdicts, or assembled programs alone, back into manifests, atomically."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from farm import __version__
from farm.advisories import advisories
from farm.errors import ManifestError
from farm.files.splice import changed
from farm.manifest import Fingerprint, Reader, fingerprint, rewrite, with_fields, write
from farm.policy import Hit
from farm.program import AssemblyOptions, assemble, locate
from farm.queries import Judged, Queries, Run, StoredManifest, StoredVerdict
from farm.store import Store
from farm.verdict import Message, Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """What an export wrote: the file, and how many of its lines have a verdict now."""

    path: Path
    lines: int


def export(store: Store, queries: Queries, run: Run) -> Iterator[Exported]:
    """Write a run's verdicts into its own manifests, each replaced as a whole or left as it was.

    Yields what was written. Raises `ManifestChanged` for a file that is not the one that was submitted, after
    all others have been written, and `ServerDown`.
    """
    refused: ManifestError | None = None
    for manifest in queries.manifests(run.id):
        try:
            yield _export(store, queries, run, manifest)
        except ManifestError as error:
            refused = refused or error
    if refused is not None:
        raise refused


def _export(store: Store, queries: Queries, run: Run, manifest: StoredManifest) -> Exported:
    writer = _Writer(run, queries.judged(run.id, manifest.number))

    def announce(new: Fingerprint) -> None:
        store.exporting(run.id, manifest.number, sha256=new.sha256, size=new.size)

    rewrite(
        manifest.path,
        manifest.path,
        writer.edit,
        # Another export may have been there a moment ago: what the file may be is asked while nobody writes.
        expected=lambda: queries.manifests(run.id)[manifest.number].fingerprints,
        announce=announce,
        placed=lambda _: store.exported(run.id, manifest.number),
    )
    return Exported(path=manifest.path, lines=writer.lines)


def export_to(queries: Queries, run: Run, manifest: StoredManifest, target: Path) -> Exported:
    """Write one manifest with its verdicts to another file; raises `ManifestError` and `ServerDown`.

    Of a manifest that has changed since it was submitted, or is gone, what the store knows of its judged
    lines is written instead: name, line number, program and verdict.
    """
    judged = queries.judged(run.id, manifest.number)
    if not _is_as_submitted(manifest):
        verdicts = [_line(run, job, job.verdict) for job in judged if job.verdict is not None]
        write(target, verdicts)
        return Exported(path=target, lines=len(verdicts))
    writer = _Writer(run, judged)
    rewrite(manifest.path, target, writer.edit, expected=lambda: manifest.fingerprints)
    return Exported(path=target, lines=writer.lines)


def _is_as_submitted(manifest: StoredManifest) -> bool:
    try:
        return fingerprint(manifest.path) in manifest.fingerprints
    except ManifestError:
        return False


def _line(run: Run, job: Judged, verdict: StoredVerdict) -> str:
    return json.dumps({"name": job.name, "line": job.line, **fields(run, job, verdict, None)})


def assemble_to(path: Path, target: Path, options: AssemblyOptions) -> int:
    """Write a manifest with `predicted_proof` set in every line, unchecked; returns the number of lines.

    Raises `ManifestError`, and then nothing was written.
    """
    entries = iter(Reader(path, reassemble=options.reassemble))
    lines = 0

    def edit(_number: int, line: str) -> str:
        nonlocal lines
        lines += 1
        return with_fields(line, {"predicted_proof": assemble(next(entries), options).text})

    rewrite(path, target, edit)
    return lines


class _Writer:
    """Walks a manifest's lines and its stored verdicts side by side; both come in the order of lines."""

    def __init__(self, run: Run, judged: Iterator[Judged]) -> None:
        self._run, self._judged = run, judged
        self._next: Judged | None = None
        self._is_begun = False
        self.lines = 0

    def edit(self, number: int, line: str) -> str:
        """Return a manifest line with its verdict, or as it was when it has none."""
        if not self._is_begun:  # only now is the manifest this export's alone
            self._next, self._is_begun = next(self._judged, None), True
        job = self._next
        if job is None or job.line != number:
            return line
        self._next = next(self._judged, None)
        if job.verdict is None:
            return line
        verdict = job.verdict
        self.lines += 1
        return changed(line, lambda entry: fields(self._run, job, verdict, entry))


def fields(
    run: Run, job: Judged, verdict: StoredVerdict, entry: Mapping[str, Any] | None
) -> dict[str, object]:
    """Return what an export writes into one line: `predicted_proof`, `proof_status` and the object `farm`."""
    worth = Verdict(outcome=verdict.outcome, reason=verdict.reason, detail=verdict.detail)
    return {
        "predicted_proof": job.program,
        "proof_status": worth.proof_status,
        "farm": {
            "verdict": verdict.outcome,
            "reason": verdict.reason,
            "detail": verdict.detail,
            "messages": [_message(job, message, entry) for message in verdict.messages],
            "policy": [_hit(job, hit, entry) for hit in verdict.hits],
            "audit": verdict.audit,
            "warnings": [
                {"code": code, "field": origin, "line": line, "column": column}
                for code, origin, line, column in job.warnings
            ],
            "wall_seconds": round(verdict.wall_seconds, 3),
            "cpu_seconds": round(verdict.cpu_seconds, 3),
            "peak_memory_mib": round(verdict.peak_memory_kib / 1024, 1),
            "environment": job.environment,
            "environment_digest": verdict.environment_digest,
            "program_sha256": job.program_sha256,
            "profile": run.options["assembly"]["profile"],
            "tier": job.tier,
            "confirm": job.confirm,
            "accepted_first": verdict.accepted_first,
            "isolation": verdict.isolation,
            "toolchain": verdict.toolchain,
            "advisories": _known_holes(verdict.toolchain),
            "checker_version": verdict.checker_version,
            "farm_version": __version__,
            "attempts": job.attempt,
            "run_id": run.id,
        },
    }


@lru_cache(maxsize=256)  # asked for every line
def _known_holes(toolchain: str) -> tuple[str, ...]:
    return tuple(known.id for known in advisories(toolchain) or ())


def _message(job: Judged, message: Message, entry: Mapping[str, Any] | None) -> dict[str, object]:
    """Return one of Lean's messages with its place in the program and, where it has one, in a field."""
    shown: dict[str, object] = {
        "severity": message.severity,
        "text": message.text,
        "line": message.line,
        "column": message.column,
    }
    return shown | _place(job, message.line, message.column, entry)


def _hit(job: Judged, hit: Hit, entry: Mapping[str, Any] | None) -> dict[str, object]:
    """Return what the policy found at one place, with that place as in `_message`."""
    shown = {"rule": hit.rule, "action": hit.action, "text": hit.text, "line": hit.line, "column": hit.column}
    return shown | _place(job, hit.line, hit.column, entry)


def _place(job: Judged, line: int, column: int, entry: Mapping[str, Any] | None) -> dict[str, object]:
    if entry is None:  # without the answer's text its lines cannot be counted
        return {}
    place = locate(job.segments, job.program, entry, line, column)
    return (
        {} if place is None else {"in": {"field": place.origin, "line": place.line, "column": place.column}}
    )
