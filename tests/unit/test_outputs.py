"""Outputs of commands: what is there already is replaced only by force."""

from __future__ import annotations

from pathlib import Path

import pytest

from farm.errors import UsageError
from farm.manifest.outputs import require_free


def test_a_file_with_content_is_replaced_only_by_force(tmp_path: Path) -> None:
    path, empty = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_text("mine")
    empty.touch()
    with pytest.raises(UsageError, match="is there already; add --force to replace it"):
        require_free(path, empty, force=False)
    require_free(path, force=True)
    for nothing in (empty, tmp_path / "new.jsonl", Path("/dev/null")):
        require_free(nothing, force=False)


def test_the_file_whose_lines_are_kept_may_be_written(tmp_path: Path) -> None:
    path, link = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_text("mine")
    link.symlink_to(path)
    require_free(link, path, force=False)
