"""Manifest step, writing back: a manifest's lines go through an edit into the same file or another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from farm.errors import ManifestChanged, ManifestError
from farm.manifest.lines import Fingerprint, Lines, opened, printable, reading, stamp, unmarked
from farm.manifest.replace import ELSEWHERE, replacing
from farm.manifest.splice import NotAnObjectError

Edit = Callable[[int, str], str]
"""Given a line's number, from 1, and its text without the line end, returns the text to write for it."""

Rewritten = Callable[[Lines], Iterable[bytes]]
"""Given the open manifest, gives the text to write for it, in order."""

Announce = Callable[[Fingerprint], None]
"""Is told a fingerprint."""


def rewrite(
    source: Path,
    target: Path,
    rewritten: Rewritten,
    *,
    expected: Callable[[], Collection[Fingerprint]] = tuple,
    announce: Announce = lambda _: None,
    placed: Announce = lambda _: None,
) -> Fingerprint:
    """Write what is made of `source` to `target`, and return its new fingerprint.

    Source and target may be the same file. `farm.manifest.replace` says what is kept of a target that is
    there, how two processes take turns, and what a failure leaves: the old file, whole.

    `announce` is told the new fingerprint when all is written, just before the file is put in place, and
    `placed` when it is. Both, and asking what is `expected`, happen while nobody else writes the target.

    Raises ManifestChanged when the source is none of the files that are `expected` (any is, where none is
    named), or changes meanwhile; ManifestError when one of the two files cannot be used.
    """
    with reading(source):
        mode = source.stat().st_mode
    # The target's lock is taken first, so that what is read is what the last writer left.
    with replacing(target, mode=mode) as new, opened(source) as lines:
        known = expected()
        try:
            new.text.writelines(rewritten(lines))
        except ManifestError as error:
            # A file that was changed may be wrong in any way; that it was changed is what to say.
            _refuse_changed(lines, known, error)
            raise
        _refuse_changed(lines, known)
        written = new.finish()
        announce(written)
        _refuse_touched(lines)
        new.put_in_place()
        placed(written)
    return written


def write(target: Path, lines: Iterable[str]) -> None:
    """Write lines of our own to `target`, whole or not at all; raises ManifestError when it cannot be."""
    with replacing(target, mode=0o644) as new:
        new.text.writelines(line.encode() + b"\n" for line in lines)
        new.finish()
        new.put_in_place()


def by_line(edit: Edit) -> Rewritten:
    """Return what makes of a manifest its lines, each as `edited` gives it."""
    return lambda lines: edited(str(lines.path), lines, edit)


def edited(path: str, lines: Iterable[tuple[int, bytes]], edit: Edit) -> Iterator[bytes]:
    """Yield numbered lines, each as `edit` returns it; raises ManifestError, which says they are of ``path``.

    Blank lines are not edited; they, line ends, and every line that the edit returns unchanged stay as they
    are, byte for byte.
    """
    for number, line in lines:
        try:
            yield _edited_line(number, line, edit) if unmarked(number, line).strip() else line
        except (UnicodeDecodeError, NotAnObjectError) as error:
            remedy = "fix or remove this line"
            raise ManifestError(
                printable(path, None), printable(error, 200), remedy=remedy, line=number
            ) from error


def _edited_line(number: int, line: bytes, edit: Edit) -> bytes:
    bare = unmarked(number, line)
    content = bare.rstrip(b"\r\n")
    text = content.decode()
    edited = edit(number, text)
    mark = line[: len(line) - len(bare)]
    return line if edited == text else mark + edited.encode() + bare[len(content) :]


def _refuse_changed(
    lines: Lines, expected: Collection[Fingerprint], cause: ManifestError | None = None
) -> None:
    if expected and lines.fingerprint() not in expected:
        raise _changed(lines.path, "has changed since it was submitted") from cause


def _refuse_touched(lines: Lines) -> None:
    try:
        now = stamp(lines.path.stat())
    except OSError as error:
        raise _changed(lines.path, "was removed while it was being read") from error
    if now != lines.stamp:
        raise _changed(lines.path, "has changed while it was being read")


def _changed(path: Path, problem: str) -> ManifestChanged:
    return ManifestChanged(printable(path, None), problem, remedy=f"to keep it, {ELSEWHERE}")
