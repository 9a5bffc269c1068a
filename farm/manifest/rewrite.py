"""Manifest step, writing back: sends a manifest's lines through an edit into the same file or another."""

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
"""Called with a fingerprint."""


def rewrite(
    source: Path,
    target: Path,
    rewritten: Rewritten,
    *,
    expected: Callable[[], Collection[Fingerprint]] = tuple,
    announce: Announce = lambda _: None,
    placed: Announce = lambda _: None,
) -> Fingerprint:
    """Write the edited text of `source` to `target`, and return its new fingerprint.

    Source and target may be the same file. `farm.manifest.replace` describes which attributes of an old
    target are kept, how two processes take turns, and that a failure leaves the old file whole.

    `announce` is called with the new fingerprint when all is written, just before the file is put in place,
    and `placed` afterwards. Both, and `expected`, are called while this process holds the target's lock.

    Raises ManifestChanged if the source is none of the `expected` files (any is allowed if none is named), or
    changes during the call; ManifestError if one of the two files cannot be used.
    """
    with reading(source):
        mode = source.stat().st_mode
    # The target's lock is taken first, so that the last writer's result is read.
    with replacing(target, mode=mode) as new, opened(source) as lines:
        known = expected()
        try:
            new.text.writelines(rewritten(lines))
        except ManifestError as error:
            # Any error may follow from a changed file; then the change is the error to report.
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
    """Return a function that yields the lines of a manifest, as edited by `edited`."""
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
