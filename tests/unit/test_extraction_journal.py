"""The journal of an extraction: units are whole or absent, whatever byte a process dies at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm.datasets.journal import Journal, Unit
from farm.errors import UsageError

UNITS = {
    "A.lean": [json.dumps({"name": "a"}).encode(), json.dumps({"name": "=3\n=0"}).encode()],
    "B.lean": [],
    "C.lean": [json.dumps({"name": "ü"}, ensure_ascii=False).encode()],
}


def unit(name: str) -> Unit:
    return Unit(file=name, digest=f"of {name}", facts={"theorems": len(UNITS[name])}, lines=iter(UNITS[name]))


def written(output: Path) -> bytes:
    with Journal(output, resume=False, force=True) as journal:
        for name in UNITS:
            journal.add(unit(name))
    return output.with_name("lines.jsonl.part").read_bytes()


def test_units_are_published_in_the_order_of_their_names(tmp_path: Path) -> None:
    output = tmp_path / "lines.jsonl"
    with Journal(output, resume=False, force=False) as journal:
        for name in reversed(UNITS):
            journal.add(unit(name))
        assert dict(journal.facts(list(UNITS))) == {name: {"theorems": len(it)} for name, it in UNITS.items()}
        assert journal.publish(list(UNITS)) == 3
    assert output.read_bytes() == b"".join(line + b"\n" for lines in UNITS.values() for line in lines)
    assert list(tmp_path.iterdir()) == [output]


@given(share=st.floats(0, 1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_a_journal_that_is_torn_at_any_byte_has_the_units_above(tmp_path: Path, share: float) -> None:
    output = tmp_path / "lines.jsonl"
    whole = written(output)
    kept = whole[: round(share * len(whole))]
    output.with_name("lines.jsonl.part").write_bytes(kept)
    with Journal(output, resume=True, force=False) as journal:
        had = [name for name in UNITS if journal.has(name, f"of {name}")]
        assert had == list(UNITS)[: len(had)]
        for name in UNITS:
            if name not in had:
                journal.add(unit(name))
        assert journal.publish(list(UNITS)) == 3
    assert output.read_bytes() == b"".join(line + b"\n" for lines in UNITS.values() for line in lines)


def test_a_unit_of_other_text_or_options_is_not_finished(tmp_path: Path) -> None:
    written(tmp_path / "lines.jsonl")
    journal = Journal(tmp_path / "lines.jsonl", resume=True, force=False)
    assert journal.has("A.lean", "of A.lean")
    assert not journal.has("A.lean", "of another text")
    assert not journal.has("D.lean", "of D.lean")


@pytest.mark.parametrize("noise", [b"[]\n", b"{}\n", b'{"file": "A"}\n', b"=3\n", b"\xff\n", b"7"])
def test_noise_ends_a_journal(tmp_path: Path, noise: bytes) -> None:
    output = tmp_path / "lines.jsonl"
    whole = written(output)
    output.with_name("lines.jsonl.part").write_bytes(whole + noise)
    journal = Journal(output, resume=True, force=False)
    assert all(journal.has(name, f"of {name}") for name in UNITS)
    assert output.with_name("lines.jsonl.part").read_bytes() == whole


def test_lines_are_written_as_they_come(tmp_path: Path) -> None:
    written_so_far = list[int]()
    journal = Journal(tmp_path / "lines.jsonl", resume=False, force=False)

    def lines() -> Iterator[bytes]:
        for _ in range(64):
            written_so_far.append((tmp_path / "lines.jsonl.part").stat().st_size)
            yield b'"' + b"x" * 100_000 + b'"'

    with journal:
        journal.add(Unit(file="A.lean", digest="", facts={}, lines=lines()))
    assert written_so_far[-1] > 60 * 100_000


def test_an_interrupted_extraction_is_not_lost_by_chance(tmp_path: Path) -> None:
    written(tmp_path / "lines.jsonl")
    with pytest.raises(UsageError, match="--resume"):
        Journal(tmp_path / "lines.jsonl", resume=False, force=False)
