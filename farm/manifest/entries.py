"""Manifest step: turns the lines of a user's JSON Lines files into entries, or raises one clear error."""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from farm.characters import encoded
from farm.errors import ManifestError
from farm.limits import LONGEST_TIMEOUT
from farm.manifest.context import fault_of
from farm.manifest.entry import Entry
from farm.manifest.faults import Faults
from farm.manifest.hole import Hole, HoleFault
from farm.manifest.lines import Fingerprint, Lines, encoding_of, opened, printable, unmarked, unusable
from farm.task import TASK_FIELDS, Task, TaskFault
from farm.task import Kind as Asks

FIELDS = frozenset(
    {
        *("name", "header", "context", "formal_statement", "generation", "predicted_proof"),
        *("environment", "timeout", "group", "proof_status", "farm", "hole"),
        *TASK_FIELDS,
    }
)
"""Every field the farm reads or writes."""

# Objects are decoded as tuples of pairs and arrays as lists: so the two differ, and a repeated key is
# visible. `timeout` is the only number that the farm reads, and float, unlike int, has no limit on digits.
_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_int=float)


class _LineError(Exception):
    """The fault of one line; the reader adds the line's number."""

    def __init__(self, problem: str, remedy: str, field: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.remedy, self.field = problem, remedy, field


def read(path: Path, *, reassemble: bool = False, may_lack_answer: bool = False) -> Iterator[Entry]:
    """Yield the entries of one manifest, in bounded memory: `.jsonl`, `.jsonl.gz` or `.jsonl.zst`.

    At the first line that is wrong no more come, and ManifestError is raised when others have been looked
    for. With `reassemble`, a line needs its `formal_statement` and `generation` even when it has a
    `predicted_proof`; with `may_lack_answer` it may lack its `generation`.
    """
    found, faults = None, Faults()
    with opened(path) as lines:
        looked_at = _looked_at(lines, faults)
        for found in entries(str(path), looked_at, reassemble=reassemble, may_lack_answer=may_lack_answer):
            if isinstance(found, ManifestError):
                faults.add(found)
            elif not faults:
                yield found
    if faults:
        raise faults.error()
    if found is None:
        raise empty(path)


def entries(
    path: str,
    lines: Iterable[tuple[int, bytes]],
    *,
    reassemble: bool = False,
    may_lack_answer: bool = False,
) -> Iterator[Entry | ManifestError]:
    """Yield the entries of numbered lines, blank ones left out, and an error in place of a wrong one.

    ``path`` is named in errors; nothing is read from there. With `may_lack_answer` a line may lack its
    `generation`. See `read`.
    """
    for number, marked in lines:
        line = unmarked(number, marked)
        if not line.strip():
            continue
        try:
            found = _entry(
                path, number, _fields(line), reassemble=reassemble, may_lack_answer=may_lack_answer
            )
        except _LineError as fault:
            yield ManifestError(
                printable(path, None), fault.problem, remedy=fault.remedy, line=number, field=fault.field
            )
            if number == 1 and encoding_of(line) is not None:
                return  # so is every other line
        else:
            yield found


def _looked_at(lines: Lines, faults: Faults) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are to be looked at; an error of reading is one fault more behind others."""
    try:
        for number, line in lines:
            if faults.ends_before(number):
                return
            yield number, line
    except ManifestError as error:
        if not faults:
            raise
        faults.add(error)


def fingerprint(path: Path) -> Fingerprint:
    """Return the fingerprint of a file as it is stored now; raises ManifestError when it cannot be read."""
    with opened(path) as lines:
        return lines.fingerprint()


def expand(patterns: Sequence[str]) -> tuple[Path, ...]:
    """Return the manifests that files and globs name: absolute, in the order given, sorted within a glob.

    `**` stands for any depth of folders. A file is taken once, however often it is named, symbolic links
    included. Folders that a glob matches are passed over. A name that is a file is that file, `*` and all.

    Raises ManifestError for a name without a file, a glob without a match, a folder, and a file that cannot
    be read or has no line with content.
    """
    found: dict[str, Path] = {}
    for pattern in patterns:
        for name in _matches(pattern):
            found.setdefault(os.path.realpath(name), Path(name).absolute())
    for path in found.values():
        _refuse_unusable(path)
    return tuple(found.values())


def _matches(pattern: str) -> list[str]:
    if os.path.lexists(pattern) or not glob.has_magic(pattern):
        return [pattern]
    # Not Path.glob, which takes no absolute patterns.
    found = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    names = [name for name in found if not Path(name).is_dir()]
    if not names:
        raise unusable(Path(pattern), "no file matches", "check the pattern and the folder")
    return names


def _refuse_unusable(path: Path) -> None:
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise unusable(path, "the file's name is not UTF-8", "rename the file") from error
    with opened(path) as lines:
        if lines.is_blank():
            raise empty(path)
    with opened(path) as lines:
        # All other lines have the same encoding: one message is enough, before any server is used.
        _, line = next(iter(lines))
        if (wrong := encoding_of(unmarked(1, line))) is not None:
            raise ManifestError(printable(path, None), wrong.problem, remedy=wrong.remedy, line=1)


def empty(path: Path) -> ManifestError:
    """Return the error that says that a manifest has no line with content."""
    return unusable(path, "has no line with content", "write one JSON object per line, or leave the file out")


def _fields(line: bytes) -> dict[str, object]:
    """Return the fields of a line; raises _LineError when it is not one object with each field once."""
    try:
        value = _DECODER.decode(line.rstrip(b"\r\n").decode())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise _unreadable(line, error) from error
    except RecursionError as error:
        raise _LineError("JSON nested too deeply", "flatten the nested fields of this line") from error
    if not isinstance(value, tuple):
        remedy = 'write each line as one object, {"header": ..., "formal_statement": ..., "generation": ...}'
        raise _LineError(f"not an object but {_kind(value)}", remedy)
    fields = dict(value)
    if len(fields) != len(value):
        _refuse_doubles(value)
    return fields


def _unreadable(line: bytes, error: UnicodeDecodeError | json.JSONDecodeError) -> _LineError:
    if (wrong := encoding_of(line)) is not None:
        return _LineError(wrong.problem, wrong.remedy)
    if isinstance(error, json.JSONDecodeError):
        problem = f"malformed JSON at column {error.colno}: {error.msg}"
        return _LineError(problem, "write one complete JSON object per line")
    problem = f"invalid UTF-8 at byte {error.start + 1}"
    return _LineError(problem, "save the file as UTF-8 (a compressed file must be named .gz or .zst)")


def _refuse_doubles(pairs: tuple[tuple[str, object], ...]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen and key in FIELDS:
            raise _LineError("given twice", "keep one of the two", key)
        seen.add(key)


def _entry(
    path: str, line: int, fields: Mapping[str, object], *, reassemble: bool, may_lack_answer: bool
) -> Entry:
    proof, hole, task = _brought(fields), _hole(fields), _task(fields)
    if proof and hole is not None:
        raise _LineError(
            "stands beside a hole", "give the answer for the hole as generation", "predicted_proof"
        )
    may_lack_answer = may_lack_answer or task.kind is Asks.STATEMENT
    needed = reassemble or not proof
    context = _text(fields, "context") or ""
    if (fault := fault_of(context, _text(fields, "header") or "")) is not None:
        raise _LineError(fault.problem, fault.remedy, "context")
    return Entry(
        path=path,
        line=line,
        name=_text(fields, "name") or "",
        header=_part(fields, "header", needed=needed and "header" in fields and not context),
        formal_statement=_part(fields, "formal_statement", needed=needed and hole is None),
        generation=_part(fields, "generation", needed=needed and not may_lack_answer),
        predicted_proof=proof,
        context=context,
        lacks_answer=needed and fields.get("generation") is None,
        environment=_text(fields, "environment"),
        timeout=_timeout(fields),
        group=_text(fields, "group"),
        task=task,
        hole=hole,
    )


def _brought(fields: Mapping[str, object]) -> str:
    """Return the `predicted_proof` that a user brought, `""` for none.

    An export writes its program into this field, and that program's sha256 beside it. If the two still agree,
    the program is only a copy made from the other fields. It must not win over an answer that was edited
    since.
    """
    proof = _text(fields, "predicted_proof") or ""
    return "" if proof and _is_the_farms_own(proof, fields) else proof


def _is_the_farms_own(proof: str, fields: Mapping[str, object]) -> bool:
    told = fields.get("farm")
    written = dict(told) if isinstance(told, tuple) else {}
    if written.get("program_sha256") != hashlib.sha256(encoded(proof)).hexdigest():
        return False
    # An export of a program that a user brought says that it is none of the farm's. Exports of early farms do
    # not say either; there, and where an export left nothing but the program, the other fields decide.
    assembled = written.get("assembled")
    if assembled is False:
        return False
    return "generation" in fields or (assembled is True and "formal_statement" in fields)


def _text(fields: Mapping[str, object], field: str) -> str | None:
    value = fields.get(field)
    if value is None or isinstance(value, str):
        return value
    raise _LineError(f"not a string but {_kind(value)}", "write it as a string", field)


def _part(fields: Mapping[str, object], field: str, *, needed: bool) -> str:
    text = _text(fields, field)
    if text is None and needed:
        raise _LineError("null" if field in fields else "missing", _remedy_without(fields), field)
    return text or ""


def _remedy_without(fields: Mapping[str, object]) -> str:
    if fields.get("predicted_proof") and not _brought(fields):
        return 'give it as a string; to have the predicted_proof checked, take "farm" out of the line'
    return "give it as a string, or the whole program as predicted_proof"


def _timeout(fields: Mapping[str, object]) -> float | None:
    value = fields.get("timeout")
    if value is None:
        return None
    remedy = f"give seconds, above 0 and at most {LONGEST_TIMEOUT:.0f}, or leave it out"
    if not isinstance(value, float):
        raise _LineError(f"not a number but {_kind(value)}", remedy, "timeout")
    if not 0 < value <= LONGEST_TIMEOUT:
        raise _LineError(f"{value:g} is out of range", remedy, "timeout")
    return value


def _task(fields: Mapping[str, object]) -> Task:
    try:
        return Task.of({name: _object(value) for name, value in fields.items() if name in TASK_FIELDS})
    except TaskFault as fault:
        raise _LineError(fault.problem, fault.remedy, fault.field) from fault


def _object(value: object) -> object:
    """Return a JSON object, which the reading has made a tuple of pairs, as a dictionary."""
    return dict(value) if isinstance(value, tuple) else value


def _hole(fields: Mapping[str, object]) -> Hole | None:
    said = fields.get("hole")
    if said is None:
        return None
    if not isinstance(said, tuple):
        raise _LineError(f"not an object but {_kind(said)}", "take it as `farm holes` wrote it", "hole")
    words = dict(said)
    if isinstance(of := words.get("of"), tuple):
        words["of"] = dict(of)
    try:
        return Hole.of(words)
    except HoleFault as fault:
        raise _LineError(fault.problem, fault.remedy, fault.field) from fault


def _kind(value: object) -> str:
    """Return JSON's name for the type of a value, in words."""
    if isinstance(value, str):
        return "a string"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return "a number"
    if value is None:
        return "null"
    return "an object" if isinstance(value, tuple) else "an array"
