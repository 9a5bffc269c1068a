"""Where a program's header ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.lean_text.header import header_end
from tests.counted import assert_linear


@pytest.mark.parametrize(
    ("header", "rest"),
    [
        ("", ""),
        ("", "theorem t : True := trivial"),
        ("import Mathlib", "\ntheorem t : True := trivial"),
        ("import Mathlib.Data.Nat.Basic", "\n\nopen Nat"),
        ("import A import B\nimport C.D", " theorem"),
        ("prelude\nimport Core", "\n"),
        ("prelude", "\naxiom a : Prop"),
        ("module", "\ndef x := 1"),
        (
            "module\n\nprelude\npublic import A\nmeta import B\npublic meta import C\nimport all D",
            "\n#check A",
        ),
        ("/- a /- nested -/ import X -/ -- import Y\nimport\n  Z", " -- behind\ntheorem t"),
        ("import A\r\nimport B", "\r\ntheorem t"),
        ("import «A-B».«import»", "\ntheorem t"),
        ("import A", "\n/-- import B -/ theorem t"),
        ("import A", "\n/-! text -/\nimport B"),
        ("import A", "; import B"),
        ("import A", "\npublic theorem t"),
        ("", "/-- doc -/ import A"),
        ("", "import"),
        ("", "public import"),
        ("", "theorem t : x := y\nimport A"),
        ("  \n\timport A", "\t\n"),
        ("import module", "\nprelude"),
    ],
)
def test_the_header_ends_after_the_last_import(header: str, rest: str) -> None:
    assert header_end(header + rest) == len(header)


@given(st.text("import Ab.«» prelude\n-/!\r all"))
def test_any_text_has_a_header_that_ends_inside_it(text: str) -> None:
    assert 0 <= header_end(text) <= len(text)


@pytest.mark.parametrize(
    "piece", ["import A ", "/-", "-- x\n", "prelude ", "import «", "public ", "import A.B\n"]
)
def test_hostile_texts_take_work_that_grows_with_their_length(piece: str) -> None:
    def reading(size: int) -> Callable[[], object]:
        return partial(header_end, piece * (size // len(piece)))

    assert_linear(reading, 8000, timed=800_000)
