"""Preparation step: blocks are what one line after the other gives, whoever prepares them."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import pickle
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from farm.assembly.program import AssemblyOptions, assemble
from farm.errors import FarmError, ManifestChanged, ManifestError, UsageError
from farm.judging.assurance import Assurance
from farm.judging.submit_options import SubmitOptions
from farm.lean_text.policy.screen import Policy
from farm.manifest import faults
from farm.manifest.entries import fingerprint, read
from farm.manifest.lines import opened
from farm.runs.children import pieces
from farm.runs.prepare.manifests import preparing
from farm.store.new_lines import Block
from tests.binary_rows import (
    CORE,
    OPTIONS,
    OTHER,
    TASK,
    Row,
    expected,
    many,
    prepared,
    rows_of,
    text_of,
    texts_of,
)
from tests.processes import CODE, Process, eventually, processes

KNOWN = (CORE, OTHER)

#: Lines of a piece, fewer than usual.
PIECE = 25
#: More lines than the process itself prepares, and than fit into three children at once.
LINES = 12 * PIECE
#: So many lines behind a wrong one are looked at for others, fewer than usual.
BEHIND = 2500
#: The same for two children.
FOR_TWO = 9 * PIECE


@pytest.fixture(scope="module", autouse=True)
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE_LINES", PIECE)
        patch.setattr(faults, "LOOKED_AT_BEHIND", BEHIND)
        yield


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest of several blocks, with lines of every sort."""
    path = tmp_path_factory.mktemp("long") / "m.jsonl"
    path.write_bytes(many(LINES))
    return path


@pytest.fixture(scope="module")
def wanted(long: Path) -> list[Row]:
    """The rows of the long manifest, one line after the other, and without what makes two checks the same."""
    return without_identity(expected(long, 3))


@pytest.fixture(scope="module")
def found(long: Path) -> list[Block]:
    """The blocks of the long manifest as two children prepare them."""
    return blocks_of(long)


def without_identity(rows: list[Row]) -> list[Row]:
    return [{**row, "identity": None} for row in rows]


@pytest.fixture(autouse=True)
def nobody_left() -> Iterator[None]:
    yield
    assert children() == []


def children(parent: int | None = None) -> list[Process]:
    """Return the children of a process, by default of this one, that prepare lines."""
    parent = os.getpid() if parent is None else parent
    return [
        each
        for each in processes()
        if each.parent == parent and "farm.runs.children.answering" in each.command
    ]


def blocks_of(path: Path, *, children: int = 2, options: SubmitOptions = OPTIONS) -> list[Block]:
    with prepared(path, 3, options, KNOWN, processes=children) as blocks:
        return list(blocks)


def error_of(path: Path, *, children: int) -> str:
    with pytest.raises(ManifestError) as caught:
        blocks_of(path, children=children)
    return str(caught.value)


def sequential_error(path: Path) -> str:
    with pytest.raises(ManifestError) as caught:
        list(read(path))
    return str(caught.value)


# --- what blocks hold


@pytest.mark.parametrize("count", [0, 1, 3])
def test_blocks_are_the_same_bytes_whoever_prepares_them(long: Path, found: list[Block], count: int) -> None:
    assert blocks_of(long, children=count) == found


def test_rows_are_those_of_one_line_after_the_other(found: list[Block], wanted: list[Row]) -> None:
    assert without_identity(rows_of(found)) == wanted


def test_texts_are_every_program_and_challenge_by_its_sha256(found: list[Block]) -> None:
    texts = texts_of(found)
    assert all(hashlib.sha256(text).digest() == sha256 for sha256, text in texts.items())
    columns = ("program_sha256", "fallback_sha256", "restated_sha256", "challenge_sha256")
    named = {row[column] for row in rows_of(found) for column in columns}
    assert set(texts) == named - {None}
    for block in found:
        assert len(dict(block.texts)) == len(block.texts)


def test_a_program_is_there_to_the_last_surrogate(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(text_of({"predicted_proof": "x\0\ud800ℝ"}))
    (block,) = blocks_of(path)
    assert "x\0\ud800ℝ".encode("utf-8", "surrogatepass") in dict(block.texts).values()


def test_blocks_count_their_lines_without_blank_ones(found: list[Block]) -> None:
    assert [block.lines for block in found] == [len(rows_of([block])) for block in found]
    assert sum(block.lines for block in found) == LINES


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_compressed_manifest_gives_the_same_blocks(
    long: Path, found: list[Block], tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"m.jsonl{suffix}"
    pack = gzip.compress if suffix == ".gz" else zstandard.ZstdCompressor().compress
    path.write_bytes(pack(long.read_bytes()))
    with preparing(OPTIONS, KNOWN, processes=2) as prepare, opened(path) as lines:
        assert list(prepare(lines, 3)) == found
        assert lines.fingerprint() == fingerprint(path)


def test_one_run_prepares_several_manifests_with_the_same_children(long: Path, tmp_path: Path) -> None:
    short = tmp_path / "short.jsonl"
    short.write_bytes(text_of({}))
    with preparing(OPTIONS, KNOWN, processes=2) as prepare:
        with opened(long) as lines:
            first = rows_of(prepare(lines, 0))
        begun = children()
        assert len(begun) == 2
        with opened(short) as lines:
            assert rows_of(prepare(lines, 1)) == [row | {"manifest": 1} for row in rows_of(blocks_of(short))]
        with opened(long) as lines:
            assert rows_of(prepare(lines, 2)) == [row | {"manifest": 2} for row in first]
        assert children() == begun


def test_a_short_manifest_starts_no_child(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(many(4 * PIECE - 20))
    with prepared(path, 0, OPTIONS, KNOWN, processes=2) as blocks:
        for _ in blocks:
            assert children() == []


@pytest.mark.parametrize("mib", [1, 3])
def test_a_line_longer_than_a_piece_is_a_block_of_its_own(tmp_path: Path, mib: int) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(text_of({}, {"generation": "x" * (mib << 20)}, {}) + many(6 * PIECE))
    assert without_identity(rows_of(blocks_of(path))) == without_identity(expected(path, 3))


def test_preassembled_lines_are_assembled_again_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(text_of({"predicted_proof": "theorem x : 1 = 1 := rfl"}))
    options = replace(OPTIONS, assembly=AssemblyOptions(reassemble=True))
    (row,) = rows_of(blocks_of(path, options=options))
    (entry,) = read(path, reassemble=True)
    program, *_ = assemble(entry, options.assembly)
    assert row["program_sha256"] == hashlib.sha256(program.text.encode()).digest()


# --- how lines are cut


@given(
    lines=st.lists(st.integers(0, 12).map(lambda length: b"x" * length + b"\n"), max_size=40),
    rest=st.binary(max_size=5).map(lambda rest: rest.replace(b"\n", b" ")),
    most_lines=st.integers(1, 5),
    most_bytes=st.integers(1, 30),
)
def test_pieces_are_the_lines_several_at_a_time(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[bytes],
    rest: bytes,
    most_lines: int,
    most_bytes: int,
) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    path.write_bytes(b"".join(lines) + rest)
    with opened(path) as file:
        pieces = list(file.pieces(most_lines=most_lines, most_bytes=most_bytes))
    assert b"".join(piece for _, piece in pieces) == path.read_bytes()
    at = 1
    for number, piece in pieces:
        assert number == at
        at += piece.count(b"\n")
        several = piece.count(b"\n", 0, -1) > 0
        assert piece.count(b"\n") <= most_lines
        assert len(piece) <= most_bytes or not several
    assert all(piece.endswith(b"\n") for _, piece in pieces[:-1])


def test_pieces_that_come_in_small_parts_are_cut_in_the_same_places(tmp_path: Path) -> None:
    text = b"\n".join(random.Random(1).randbytes(n % 5000).hex().encode() for n in range(0, 400_000, 1009))
    plain, packed = tmp_path / "m.jsonl", tmp_path / "m.jsonl.zst"
    plain.write_bytes(text)
    packed.write_bytes(zstandard.ZstdCompressor().compress(text))
    found = []
    for path in (plain, packed):
        with opened(path) as lines:
            found.append(list(lines.pieces(most_lines=100, most_bytes=20_000)))
    assert found[0] == found[1]


@pytest.mark.parametrize("end", [b"", b"\n", b"\n{}\n"])
@pytest.mark.parametrize("over", [0, 1])
def test_a_line_longer_than_the_limit_is_refused_after_the_lines_before_it(
    tmp_path: Path, end: bytes, over: int
) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b"a\nb\n" + b"x" * ((16 << 20) - len(end[:1]) + over) + end)
    with opened(path) as lines:
        one_by_one, error = [], None
        try:
            one_by_one += [line for _, line in lines]
        except ManifestError as found:
            error = str(found)
    assert (error is not None) == bool(over)
    with opened(path) as lines:
        at_once, same = [], None
        try:
            at_once += [piece for _, piece in lines.pieces(most_lines=9, most_bytes=1000)]
        except ManifestError as found:
            same = str(found)
    assert same == error
    assert b"".join(at_once[: 1 if over else None]) == b"".join(one_by_one)


def test_lines_that_fill_the_pipes_both_ways_hold_nobody_up(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b"".join(text_of({"generation": f"-- {n}" + "x" * (1 << 20)}) for n in range(12)))
    assert [block.lines for block in blocks_of(path)] == [1] * 12


# --- errors

WRONG = {
    "malformed": b'{"a" 1}\n',
    "not UTF-8": b'{"a": "\xff"}\n',
    "field missing": b"{}\n",
    "field of another kind": json.dumps(TASK | {"name": 7}).encode() + b"\n",
    "too long": b'{"a": "' + b"x" * (16 << 20) + b'"}\n',
}


def ready(lines: int) -> bytes:
    """Return so many lines that cost little: nothing of them is assembled."""
    return text_of({"predicted_proof": "theorem b : 2 = 2 := rfl"}) * lines


@pytest.mark.parametrize("children", [0, 2])
@pytest.mark.parametrize("between", [10, 140, 3000])
def test_wrong_lines_of_all_sorts_are_told_together_as_by_who_reads_line_after_line(
    tmp_path: Path, children: int, between: int
) -> None:
    path = tmp_path / "m.jsonl"
    wrong = [WRONG["malformed"], WRONG["field missing"], WRONG["field of another kind"]]
    filling = many(between) if between < BEHIND else ready(between)
    path.write_bytes(many(100) + filling.join(wrong * (5 if between < BEHIND else 1)) + b"\n" + many(9))
    told = sequential_error(path)
    assert error_of(path, children=children) == told
    assert len(told.split("\n")) == {10: 11, 140: 11, 3000: 2}[between]


def test_a_line_that_no_environment_can_judge_is_told_with_the_other_wrong_ones(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(text_of({"environment": "none"}, {}, {"name": 7}, {"environment": "none"}))
    told = error_of(path, children=0).split("\n")
    assert [line.partition(";")[0] for line in told] == [
        f"{path}:1: field \"environment\": no environment is called 'none'",
        f'{path}:3: field "name": not a string but a number',
        f"{path}:4: field \"environment\": no environment is called 'none'",
    ]


@pytest.mark.parametrize(
    ("fields", "is_judged"),
    [
        ({"generation": None}, True),
        ({"generation": None, "predicted_proof": ""}, True),
        ({"generation": ""}, False),
        ({"generation": None, "predicted_proof": "theorem b : 2 = 2 := rfl"}, False),
    ],
)
def test_a_line_without_an_answer_can_be_judged_as_such(
    tmp_path: Path, fields: dict[str, object], is_judged: bool
) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(text_of(fields))
    (row,) = rows_of(blocks_of(path, children=0, options=replace(OPTIONS, no_answer="reject")))
    expected = ("rejected", "no_answer", None) if is_judged else (None, None, row["identity"])
    assert (row["verdict"], row["reason"], row["identity"]) == expected
    if is_judged:
        assert '"generation": null' in error_of(path, children=0)


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("before", [0, 2 * PIECE, pytest.param(FOR_TWO, marks=pytest.mark.whole)])
def test_a_wrong_line_is_told_as_by_who_reads_line_after_line(
    tmp_path: Path, wrong: bytes, before: int
) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(many(before) + wrong + many(PIECE))
    told = sequential_error(path)
    assert f"m.jsonl:{before + 2 * (-(-before // 97)) + 1}: " in told
    assert error_of(path, children=2) == told
    assert error_of(path, children=0) == told


def test_the_first_wrong_line_wins_when_another_process_finds_its_own_earlier(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    slow = text_of({"generation": "```lean4\n" + "theorem b : 1 = 1 := by simp\n" * 20_000})
    path.write_bytes(
        many(5 * PIECE) + slow + b'{"first": 1}\n' + many(80) + b'{"second": 1}\n' + WRONG["too long"]
    )
    assert error_of(path, children=2) == sequential_error(path)


def test_lines_before_the_wrong_one_come_as_blocks(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(many(FOR_TWO) + b"{}\n")
    lines = 0
    with prepared(path, 0, OPTIONS, KNOWN, processes=2) as blocks, pytest.raises(ManifestError):
        for block in blocks:
            lines += block.lines
    assert FOR_TWO - 2 * PIECE <= lines <= FOR_TWO


@pytest.mark.parametrize("wrong", [b"", b"{}\n"])
def test_a_file_that_is_cut_short_is_told_after_what_is_wrong_before(tmp_path: Path, wrong: bytes) -> None:
    path = tmp_path / "m.jsonl.gz"
    path.write_bytes(gzip.compress(many(4 * PIECE) + wrong + ready(12_000))[:-9])
    told = sequential_error(path)
    assert ("not a complete .gz file" in told) == (not wrong)
    assert error_of(path, children=2) == told


@pytest.mark.parametrize("text", [b"", b"\n \n", b"\n" * 9_000], ids=["empty", "blank", "long and blank"])
def test_a_manifest_without_content_is_refused(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(text)
    assert error_of(path, children=2) == sequential_error(path)


def test_a_file_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    assert "no such file" in error_of(tmp_path / "m.jsonl", children=2)


def test_an_environment_that_nobody_serves_is_refused_where_a_line_names_it(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(many(97) + text_of({"environment": "none"}))
    message = (
        f"{path}:100: field \"environment\": no environment is called 'none'; there are: core, other; "
        "`farm doctor` says what is wrong with one of this machine, "
        "`farm environments declare` makes one known beforehand"
    )
    assert error_of(path, children=2) == message


def test_an_environment_that_nobody_serves_is_refused_at_once_when_the_run_names_it() -> None:
    options = replace(OPTIONS, environment="none")
    with pytest.raises(
        UsageError, match="no environment is called 'none'; no worker has served any environment yet"
    ):
        prepared(Path("none"), 0, options, ()).__enter__()


@pytest.mark.parametrize(("children", "others"), [(0, 1), (2, FOR_TWO)])
def test_a_usual_environment_that_is_unknown_is_refused_at_the_first_line_that_needs_it(
    children: int, others: int, tmp_path: Path
) -> None:
    """FARM_ENVIRONMENT may be meant for another farm, and be named by no line."""
    options, path = replace(OPTIONS, environment="none"), tmp_path / "m.jsonl"
    path.write_bytes(text_of({"environment": "core"}))
    assert [block.lines for block in blocks_of(path, children=0, options=options)] == [1]
    path.write_bytes(text_of(*[{"environment": "core"}] * others, {}))
    with pytest.raises(UsageError, match="no environment is called 'none'; there are: core, other"):
        blocks_of(path, children=children, options=options)


def test_a_run_that_compares_needs_a_statement_of_every_line(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(many(100))
    options = replace(OPTIONS, assurance=Assurance(requires_statement=True))
    with pytest.raises(ManifestError, match=r'm.jsonl:7: field "formal_statement": this line has no state'):
        blocks_of(path, options=options)


@pytest.mark.parametrize("kind", [ManifestError, ManifestChanged])
def test_a_manifest_error_comes_whole_out_of_another_process(kind: type[ManifestError]) -> None:
    error = kind("m.jsonl", "wrong", remedy="right it", line=7, field="name")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (kind, str(error), vars(error))


# --- what makes two checks the same


def identity(tmp_path: Path, fields: dict[str, object], options: SubmitOptions = OPTIONS, known=KNOWN):
    path = tmp_path / "m.jsonl"
    path.write_bytes(text_of(fields))
    with prepared(path, 0, options, known, processes=0) as blocks:
        (row,) = rows_of(blocks)
    return row["identity"]


def test_a_check_is_the_same_whatever_its_line_is_called(tmp_path: Path) -> None:
    first = identity(tmp_path, {})
    assert isinstance(first, bytes)
    assert len(first) == 32
    assert first == identity(tmp_path, {"name": "n", "group": "g", "timeout": 30, "environment": "core"})


def test_the_order_of_axioms_and_of_the_policy_does_not_matter(tmp_path: Path) -> None:
    def ordered(*, turned: bool) -> object:
        step = -1 if turned else 1
        policy = Policy.parse(["native=report", "axiom=off"][::step])
        assurance = Assurance(policy=policy, axioms=("a", "b")[::step])
        return identity(tmp_path, {}, replace(OPTIONS, assurance=assurance))

    assert ordered(turned=False) == ordered(turned=True) != identity(tmp_path, {})


OTHER_LINES = {
    "program": {"generation": "simp"},
    "challenge": {"formal_statement": "theorem a : 2 = 2 := by\n", "predicted_proof": "x"},
    "no challenge": {"formal_statement": "", "predicted_proof": "x"},
    "program that the last two have, too": {"predicted_proof": "x"},
    "environment": {"environment": "other"},
    "timeout": {"timeout": 31},
}
OTHER_OPTIONS = {
    "wall": {"wall_seconds": 31.0, "cpu_seconds": 60.0},
    "cpu": {"cpu_seconds": 61.0},
    "memory": {"memory_mib": 4097},
    "tier": {"assurance": Assurance(tier="audit")},
    "native": {"assurance": Assurance(native=True)},
    "axioms": {"assurance": Assurance(axioms=("propext",))},
    "policy": {"assurance": Assurance(policy=Policy.parse(["native=report"]))},
}
OTHER_SERVED = {
    "digest": {"digest": "2" * 64},
    "version of the checker": {"checker_version": "2"},
}


def test_a_check_is_another_with_anything_else_about_it(tmp_path: Path) -> None:
    found = {"as it is": identity(tmp_path, {})}
    found |= {name: identity(tmp_path, fields) for name, fields in OTHER_LINES.items()}
    for name, fields in OTHER_OPTIONS.items():
        found[name] = identity(tmp_path, {}, replace(OPTIONS, **fields))
    for name, fields in OTHER_SERVED.items():
        found[name] = identity(tmp_path, {}, known=[replace(CORE, **fields)])
    assert len(set(found.values())) == len(found)


def test_a_check_is_another_when_more_of_the_same_program_is_the_models_own(tmp_path: Path) -> None:
    path = tmp_path / "parts.jsonl"
    path.write_bytes(text_of({}))
    (entry,) = read(path)
    whole = {"predicted_proof": assemble(entry, OPTIONS.assembly)[0].text}
    (parts,), (own,) = (rows_of(blocks_of(path)), rows_of(blocks_of(_written(tmp_path, whole))))
    assert parts["program_sha256"] == own["program_sha256"]
    assert parts["identity"] != own["identity"]


def _written(tmp_path: Path, fields: dict[str, object]) -> Path:
    path = tmp_path / "whole.jsonl"
    path.write_bytes(text_of(fields))
    return path


def test_a_line_that_is_judged_already_and_a_run_that_shares_nothing_have_no_identity(tmp_path: Path) -> None:
    assert identity(tmp_path, {"generation": "\0"}) is None
    assert identity(tmp_path, {}, replace(OPTIONS, share=False)) is None


# --- children, and how they end


def test_a_child_that_is_killed_is_told_and_waited_for_by_nobody(long: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(long.read_bytes() * 3)
    with prepared(path, 0, OPTIONS, KNOWN, processes=2) as blocks:
        every = iter(blocks)
        next(every)
        os.kill(children()[0].pid, signal.SIGKILL)
        with pytest.raises(FarmError, match=r"prepares manifest lines was killed \(SIGKILL\); nothing was"):
            list(every)


def test_blocks_that_nobody_asks_for_leave_no_child(long: Path) -> None:
    with prepared(long, 0, OPTIONS, KNOWN, processes=2) as blocks:
        for _ in blocks:
            assert len(children()) == 2
            break
    assert children() == []


def test_after_blocks_that_nobody_asked_for_the_next_manifest_gets_its_own(long: Path) -> None:
    with preparing(OPTIONS, KNOWN, processes=2) as prepare:
        with opened(long) as lines:
            next(prepare(lines, 0))
        with opened(long) as lines:
            assert {row["manifest"] for row in rows_of(prepare(lines, 1))} == {1}


def test_an_error_of_whoever_asks_leaves_no_child(long: Path) -> None:
    with pytest.raises(ZeroDivisionError), prepared(long, 0, OPTIONS, KNOWN, processes=2) as blocks:
        for _ in blocks:
            raise ZeroDivisionError
    assert children() == []


PARENT = f"""
import sys, time
from pathlib import Path
from tests.binary_rows import CORE, OPTIONS, OTHER, prepared
from farm.runs.children import pieces

pieces.PIECE_LINES = {PIECE}

with prepared(Path(sys.argv[1]), 0, OPTIONS, (CORE, OTHER), processes=2) as blocks:
    for block in blocks:
        print("begun", flush=True)
        time.sleep(float(sys.argv[2]))
"""


def test_a_script_that_guards_nothing_is_not_run_again_by_the_children_it_starts(
    long: Path, found: list[Block], tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(f'print("run")\n{PARENT}')
    said = subprocess.check_output(
        [sys.executable, str(script), str(long), "0"], env=os.environ | {"PYTHONPATH": CODE}, text=True
    )
    assert said.split() == ["run", *["begun"] * len(found)]


def begun_parent(path: Path, seconds: float) -> subprocess.Popen[str]:
    """Start a process that prepares a manifest, as slowly as that, and wait until it has a block."""
    environment = os.environ | {"PYTHONPATH": CODE}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(path), str(seconds)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "begun\n"
    return parent


def test_a_parent_that_is_killed_leaves_no_child(long: Path) -> None:
    parent = begun_parent(long, 60)
    begun = children(parent.pid)
    assert len(begun) == 2
    parent.kill()
    parent.communicate()
    eventually(lambda: not any(child.alive for child in begun))


def ignores_interrupts(child: Process) -> bool:
    status = Path(f"/proc/{child.pid}/status").read_text(encoding="ascii")
    found = re.search(r"^SigIgn:\s+(\w+)", status, re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> (signal.SIGINT - 1) & 1)


def test_an_interrupt_from_the_terminal_ends_the_parent_and_its_children_say_nothing(long: Path) -> None:
    parent = begun_parent(long, 60)
    begun = children(parent.pid)
    eventually(lambda: all(ignores_interrupts(child) for child in begun))
    for child in begun:  # first, for the parent kills them
        os.kill(child.pid, signal.SIGINT)
    os.killpg(parent.pid, signal.SIGINT)
    _, errors = parent.communicate(timeout=20)
    assert errors.count("Traceback") == 1
    assert "KeyboardInterrupt" in errors
    eventually(lambda: not any(child.alive for child in begun))


def open_files(pid: int) -> Iterator[str]:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it imports modules and closes them again
            yield str(link.readlink())


def test_children_have_no_sockets_and_no_heavy_imports(long: Path) -> None:
    with prepared(long, 0, OPTIONS, KNOWN, processes=2) as blocks:
        every = iter(blocks)
        next(every)
        for child in children():
            assert not [link for link in open_files(child.pid) if link.startswith("socket:")]
        list(every)
    program = "import sys, farm.runs.children.answering, farm.runs.prepare.manifests; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-P", "-c", program], text=True).split()
    assert not {"sqlalchemy", "celery", "psycopg", "typer", "rich"} & set(loaded)


@pytest.mark.whole
def test_a_long_manifest_is_prepared_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(text_of({"generation": "-" * 10_000}) * 10_000)
    program = PARENT.replace('print("begun", flush=True)', "") + 'print(open("/proc/self/status").read())'
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), "0"],
        env=os.environ | {"PYTHONPATH": CODE},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = re.search(r"^VmHWM:\s+(\d+) kB", done.stdout, re.MULTILINE)
    assert found
    assert int(found[1]) < 120 * 1024
