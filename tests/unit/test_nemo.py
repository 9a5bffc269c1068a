"""The two published profiles: recorded runs of the originals, and the rules restated as patterns."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.assembly.nemo import extract_code, strip_theorem
from farm.assembly.program import AssemblyOptions, assemble
from farm.errors import ManifestError, UsageError
from farm.manifest.entries import read
from farm.manifest.entry import Entry

VECTORS = Path(__file__).parents[1] / "vectors" / "nemo_assembly.jsonl"


def vectors() -> list[Any]:
    rows = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]
    return [
        pytest.param(row["line"], row["options"], profile, expected, id=f"{profile}: {row['name']}")
        for row in rows
        for profile, expected in row["expected"].items()
    ]


def assembled(line: dict[str, Any], options: dict[str, Any], profile: str) -> str:
    made = Entry(
        path="manifest.jsonl",
        line=1,
        name="",
        header=line["header"],
        formal_statement=line.get("formal_statement", ""),
        generation=line["generation"],
        predicted_proof=line.get("predicted_proof", ""),
    )
    return assemble(made, AssemblyOptions(profile=profile, reassemble=True, **options))[0].text


@pytest.mark.parametrize(("line", "options", "profile", "expected"), vectors())
def test_a_profile_does_what_the_original_did(
    line: dict[str, Any], options: dict[str, Any], profile: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    if "program" in expected:
        assert assembled(line, options, profile) == expected["program"]
    elif line.get("header") is None or "formal_statement" not in line:
        manifest = tmp_path / "manifest.jsonl"
        manifest.write_text(json.dumps(line) + "\n", encoding="utf-8")
        with pytest.raises(ManifestError):
            list(read(manifest))
    else:
        with pytest.raises(UsageError):
            assembled(line, options, profile)


PIECES = (
    *(
        "```",
        "```lean4",
        "```lean3\n",
        "```lean",
        "\n```\n",
        "`",
        "theorem t",
        "example",
        "theoremx",
        ":=",
        " by ",
    ),
    *("by", "by\n", "\n", "\r\n", "\x0b", "\x1c", "\u2028", "  ", "\t", "simp", "KEY", "x", "\u00a0", "\x85"),
)
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=20).map("".join)


def plainly_extracted(text: str, key: str, *, last: bool) -> str:
    answer = text.partition(key)[2].strip() if key and key in text else text
    for tag in ("lean4", "lean3", "lean", ""):
        blocks = re.findall(f"```{tag}(.*?)```", answer, re.DOTALL)
        if blocks:
            code: str = blocks[-1 if last else 0].strip()
            if code:
                return code
            break
    head = re.sub(r"\A\s*```(lean4|lean3|lean)?", "", answer)
    return re.sub(r"```\s*\Z", "", head).strip()


@given(text=TEXTS, key=st.sampled_from(["", "KEY"]), last=st.booleans())
def test_extraction_equals_the_rules_as_patterns(text: str, key: str, last: bool) -> None:
    start, end = extract_code(text, key, last=last)
    assert text[start:end] == plainly_extracted(text, key, last=last)


def plainly_stripped(code: str) -> str:
    lines = code.splitlines()
    heads = [n for n, line in enumerate(lines) if re.match(r"\s*(theorem|example)\b", line)]
    ends = [n for n, line in enumerate(lines) if heads and n >= heads[0] and ":=" in line]
    if not ends:
        return code
    first = lines[ends[0]].partition(":=")[2].strip()
    proof = ([first] if first else []) + lines[ends[0] + 1 :]
    if proof and proof[0].lstrip() == "by":
        proof = proof[1:]
    elif proof and proof[0].lstrip().startswith("by "):
        proof[0] = proof[0].lstrip().removeprefix("by ")
    return "\n".join(proof).rstrip()


@given(text=TEXTS)
def test_stripping_equals_the_rules_as_patterns(text: str) -> None:
    code = text.strip()
    spans = strip_theorem(code, (0, len(code)))
    assert "\n".join(code[start:end] for start, end in spans) == plainly_stripped(code)


@given(text=TEXTS)
def test_a_program_of_a_profile_is_the_sum_of_its_parts(text: str) -> None:
    line = {"header": "import A\n", "formal_statement": "theorem t := by\n", "generation": text}
    proof = plainly_stripped(plainly_extracted(text, "", last=True))
    assert assembled(line, {}, "nemo-2025-11") == "import A\ntheorem t := by\n" + proof
