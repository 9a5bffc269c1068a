"""Manifests with several names: which of them an export parts from the others."""

from __future__ import annotations

from pathlib import Path

from farm.runs.export import parted


def test_a_manifest_with_hard_links_is_named_with_the_remedy(tmp_path: Path) -> None:
    alone, linked, symbolic = (tmp_path / name for name in ("alone.jsonl", "linked.jsonl", "symbolic.jsonl"))
    alone.write_text("{}\n")
    linked.write_text("{}\n")
    symbolic.symlink_to(linked)
    assert list(parted([alone, linked, symbolic])) == []
    (tmp_path / "other.jsonl").hardlink_to(linked)
    words = list(parted([alone, linked, symbolic]))
    assert [each.partition(" is one of 2 names")[0] for each in words] == [str(linked), str(symbolic)]
    assert all("Link them again afterwards, or add --no-export" in each for each in words)
