"""The export step: stored verdicts, or assembled programs alone, back into manifests, atomically."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path

from farm import tracing
from farm.assembly.program import AssemblyOptions, assemble
from farm.errors import ManifestError, NotExported
from farm.manifest.entries import fingerprint, read
from farm.manifest.lines import Fingerprint
from farm.manifest.replace import require_replaceable
from farm.manifest.rewrite import by_line, rewrite, write
from farm.manifest.splice import with_fields
from farm.runs.writeback.fields import Marking, fields
from farm.runs.writeback.writing import Writing, writing
from farm.store.queries import Queries, StoredManifest, StoredRun
from farm.store.transitions import Store
from farm.tracing.span import Span


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """The result of an export: the file, and the number of its lines with a verdict.

    With `is_partial` the manifest could not be read, and the lines have only the store's fields.
    """

    path: Path
    lines: int
    is_partial: bool = False


def export(
    store: Store, queries: Queries, run: StoredRun, *, processes: int | None = None
) -> Iterator[Exported]:
    """Write a run's verdicts into its own manifests, each replaced as a whole or left as it was.

    ``processes`` are those of `farm.runs.children.pool`. Yields the results. Raises `NotExported`, which
    names every manifest that could not be written or is not the file that was submitted, after all others
    have been written; `FarmError` when a child dies, and `ServerDown`.
    """
    refused: list[str] = []
    manifests = queries.manifests(run.id)
    with writing(queries.engine, marking(run), processes=processes) as verdicts:
        for manifest in manifests:
            try:
                yield _export(store, queries, run, manifest, verdicts)
            except ManifestError as error:
                which = f" --manifest {manifest.number}" if len(manifests) > 1 else ""
                refused.append(f"{error.where}: {error.problem}; {_ways_out(run, which)}")
    if refused:
        raise NotExported("\n".join(refused))


def _ways_out(run: StoredRun, which: str) -> str:
    return (
        f"its verdicts are stored: `farm export {run.id}` writes them when that is mended, "
        f"`farm export {run.id}{which} -o OTHER.jsonl` writes them elsewhere; if the manifest was moved, add "
        "--source ITS-NEW-PLACE for whole lines"
    )


def parted(paths: Iterable[Path]) -> Iterator[str]:
    """Yield a message, with a remedy, for each manifest that an export takes away from its other names.

    A replaced file is a new one, so hard links to the old one keep the old content.
    """
    for path in paths:
        others = path.stat().st_nlink - 1
        if others > 0:
            yield (
                f"{path} is one of {others + 1} names of a file (hard links); the export makes a new file of "
                "this name, and the others keep the old one. Link them again afterwards, or add --no-export"
            )


def require_exportable(paths: Iterable[Path]) -> None:
    """Raise `ManifestError` when verdicts could not be written into one of these manifests now."""
    for path in paths:
        try:
            require_replaceable(path)
        except ManifestError as error:
            remedy = (
                "nothing was begun; mend that, or add --no-export and write the verdicts elsewhere "
                "at the end: `farm export RUN -o OTHER.jsonl`"
            )
            raise ManifestError(error.path, error.problem, remedy=remedy) from error


def marking(run: StoredRun) -> Marking:
    """Return the values of a run that are written into every line."""
    return Marking(run_id=run.id, profile=run.options["assembly"]["profile"])


def _export(
    store: Store, queries: Queries, run: StoredRun, manifest: StoredManifest, verdicts: Writing
) -> Exported:
    began = queries.recorded_until()

    def announce(new: Fingerprint) -> None:
        store.exporting(run.id, manifest.number, sha256=new.sha256, size=new.size)

    with _traced(run, manifest) as span:
        rewrite(
            manifest.path,
            manifest.path,
            verdicts.manifest(manifest.number),
            # Another export may have replaced the file a moment ago: it is read under the lock.
            expected=lambda: queries.manifest(run.id, manifest.number).fingerprints,
            announce=announce,
            placed=lambda _: store.exported(run.id, manifest.number, began=began),
        )
        span.set_attributes(lines=verdicts.lines)
    return Exported(path=manifest.path, lines=verdicts.lines)


def _traced(run: StoredRun, manifest: StoredManifest) -> AbstractContextManager[Span]:
    told = {"run_id": run.id, "manifest": manifest.number}
    return tracing.child("farm.export", run.options.get("traceparent"), told)


def export_to(
    queries: Queries, run: StoredRun, manifest: StoredManifest, target: Path, *, source: Path | None = None
) -> Exported:
    """Write one manifest with its verdicts to another file; raises `ManifestError` and `ServerDown`.

    `source` is where the manifest is now, if it was moved. Of a manifest that has changed since it was
    submitted, or is gone, the store's fields of its judged lines are written instead: name, line number,
    program and verdict.
    """
    if source is None and not _is_as_submitted(manifest):
        lines = _known_lines(queries, run, manifest)
        write(target, lines)
        return Exported(path=target, lines=len(lines), is_partial=True)
    with _traced(run, manifest) as span, writing(queries.engine, marking(run)) as verdicts:
        texts = verdicts.manifest(manifest.number)
        rewrite(
            source or manifest.path,
            target,
            texts,
            expected=lambda: manifest.fingerprints,
            announce=lambda _: queries.require_there(run.id),
        )
        span.set_attributes(lines=verdicts.lines)
    return Exported(path=target, lines=verdicts.lines)


def _is_as_submitted(manifest: StoredManifest) -> bool:
    try:
        return fingerprint(manifest.path) in manifest.fingerprints
    except ManifestError:
        return False


def _known_lines(queries: Queries, run: StoredRun, manifest: StoredManifest) -> list[str]:
    marked = marking(run)
    with closing(queries.judged(run.id, manifest.number)) as every:
        return [
            json.dumps({"name": job.name, "line": job.line, **fields(job, job.verdict, None, marked)})
            for job in every
            if job.verdict is not None
        ]


def assemble_to(path: Path, target: Path, options: AssemblyOptions) -> int:
    """Write a manifest with `predicted_proof` set in every line, unchecked; returns the number of lines.

    Raises `ManifestError`, and then nothing was written.
    """
    entries = read(path, reassemble=options.reassemble)
    lines = 0

    def edit(_number: int, line: str) -> str:
        nonlocal lines
        lines += 1
        return with_fields(line, {"predicted_proof": assemble(next(entries), options)[0].text})

    rewrite(path, target, by_line(edit))
    return lines
