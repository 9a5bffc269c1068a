"""Mutated Lean programs through all that reads them: ``python -m tests.fuzz.programs --examples 100000``.

The tests' own programs are changed at random and given to the tokenizer, the header reader, the policy, the
challenge reader and the assembly. None may raise or take longer than a second, and what they say must hold
together (`Checks`). Then come the families of hostile texts, whose time must grow as their length does
(`tests.fuzz.families`).

An example is made of the seed and its number alone. One that fails is kept in a file; ``--again FILE``
repeats it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import ParamSpec, TypeVar

from farm.assembly.challenge import challenge_to
from farm.assembly.program import Program, assemble
from farm.assembly.segments import LineMap, starts_in
from farm.judging.assurance import Assurance
from farm.judging.tiers import Tier
from farm.lean_text.header import header_end
from farm.lean_text.policy.rules import RULES, Action, Hit
from farm.lean_text.policy.screen import MOST_HITS, Policy, Screen, refusing
from farm.lean_text.scanner import Token, TokenKind, opaque_spans, sorry_tokens, tokens

from .families import FAMILIES, Growth, growths
from .mutants import Example

#: The most processor time of one call, and that after which an example is given up: a hang.
SECONDS, HANG = 1.0, 20.0
#: So many examples are given to a process at a time.
_CHUNK = 250

#: What the policy rejects wherever it stands in code, with the rule that does.
PROBES = (
    ("axiom", "axiom zz : False"),
    ("axiom", "private axiom zz : False"),
    ("opaque", "opaque zz : Nat"),
    ("unsafe", "unsafe def zz := 0"),
    ("unsafe", "unsafe partial def zz := 0"),
    ("run", "run_cmd zz"),
    ("run", "#eval zz"),
    ("initialize", "initialize zz : Nat ← zz"),
    ("initialize", "@[init] def zz := 0"),
    ("metaprogram", 'macro "zz" : term => zz'),
    ("metaprogram", "open Lean in"),
    ("metaprogram", "meta def zz := 0"),
    ("replaced_code", "@[extern zz] def zz := 0"),
    ("replaced_code", "attribute [csimp] zz"),
    ("option", "set_option debug.zz true"),
    ("stop", "#exit"),
    ("messages", "#guard_msgs in"),
    ("imports", "import Zz"),
    ("trusted_name", "example := sorryAx zz"),
    ("native", "example := by native_decide"),
    ("native", "example := by decide +native"),
    ("native", "example := by\n  .native_decide"),
    ("run", "example := by iterate 2.run_tac zz"),
)
#: What the assembly may write beside white space.
_OWN_WORDS = frozenset({"exact", "fun", "{", "}", ":=", "by"})
_OPAQUE = frozenset({TokenKind.COMMENT, TokenKind.DOC_COMMENT, TokenKind.STRING, TokenKind.CHAR})
_HEADER = "import A\n"
#: As the tier carries it out that has no more than Lean's word.
_POLICY = Assurance(tier=Tier.LEAN).rules

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Hang(Exception):
    """An example that does not end."""


@dataclass
class Found:
    """What came out of a number of examples: how often what, and the slowest call."""

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str, int] = (0.0, "", -1)
    failure: tuple[int, str, str] | None = None
    done: int = 0

    def add(self, other: Found) -> None:
        """Add what came out of others."""
        self.outcomes += other.outcomes
        self.slowest = max(self.slowest, other.slowest)
        self.failure = self.failure or other.failure
        self.done += other.done


class Checks:
    """All that must hold of one example; every method but `timed` asserts something of it."""

    def __init__(self, example: Example, number: int = -1, *, most: float = HANG) -> None:
        """Keep the example; no call may take more than `most` seconds of processor time."""
        self.example, self.number, self._most = example, number, most
        self.outcomes: Counter[str] = Counter()
        self.slowest: tuple[float, str, int] = (0.0, "", number)

    def timed(self, call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call what is tested, and note how long it took."""
        begun = time.process_time()
        result = call(*args, **kwargs)
        took = time.process_time() - begun
        self.slowest = max(self.slowest, (took, call.__qualname__, self.number))
        assert took <= self._most, f"{call.__qualname__} took {took:.1f} s"
        return result

    def all(self) -> None:
        """Check everything."""
        chosen = random.Random(self.example.kept())
        text, spans = self.example.text, self.example.spans
        self.tokens(text, chosen)
        self.header(text)
        self.policy(text, spans, chosen)
        self.probed(text, chosen)
        made = self.assembly(chosen)
        self.screened(made.text, made.submitted)
        self.challenge(made)

    def tokens(self, text: str, chosen: random.Random) -> None:
        """The tokens lie in the text, one behind the other, with nothing but white space between them."""
        found = self.timed(_all_tokens, text)
        _assert_tiles(text, found, len(text))
        until = chosen.randrange(len(text) + 1)
        cut = [(start, end) for _, start, end in tokens(text, 0, until)]
        assert cut == [(start, end) for _, start, end in tokens(text[:until])], f"cut at {until}"
        reached = 0
        for start, end in self.timed(_all_opaque, text):
            assert reached <= start < end <= len(text), (start, end)
            reached = end
        names = {token.start for token in found if token.kind is TokenKind.NAME}
        assert names.issuperset(self.timed(sorry_tokens, text))

    def header(self, text: str) -> None:
        """The header is made of names and comments; it ends where it does when nothing follows."""
        end = self.timed(header_end, text)
        assert 0 <= end <= len(text)
        assert header_end(text[:end]) == end
        kinds = {token.kind for token in tokens(text, 0, end)}
        assert kinds <= {TokenKind.NAME, TokenKind.COMMENT}, kinds
        self.outcomes["with a header"] += end > 0

    def policy(self, text: str, spans: Sequence[tuple[int, int]], chosen: random.Random) -> None:
        """What is found is in order and where it says; rules that are off find nothing, others the same."""
        found = self.timed(_POLICY.hits, text)
        _assert_hits(text, found)
        off = {rule for rule in RULES if chosen.random() < 0.3}
        others = Policy(actions={**_POLICY.actions, **dict.fromkeys(off, Action.OFF)}).hits(text)
        assert others == tuple(hit for hit in found if hit.rule not in off), off
        loose = Policy().hits(text)
        assert [_place(hit) for hit in loose] == [_place(hit) for hit in found]
        assert not Policy(actions=dict.fromkeys(RULES, Action.OFF)).hits(text)
        self.outcomes["rejected"] += refusing(found) is not None
        self.screened(text, spans)

    def screened(self, text: str, spans: Sequence[tuple[int, int]]) -> None:
        """Nothing is found outside the submitted spans but a header that must not be; nothing without any."""
        policy = _POLICY
        assert Screen(policy=policy, submitted=()).look(text, header=_HEADER) == ((), None)
        screen = Screen(policy=policy, submitted=tuple(spans))
        found, rejecting = self.timed(screen.look, text, header=_HEADER)
        _assert_hits(text, found)
        for hit in found:
            is_header = hit.rule == "imports" and hit.start == 0 and any(start == 0 for start, _ in spans)
            assert is_header or any(hit.start < end and start < hit.end for start, end in spans), hit
        assert rejecting == next((hit for hit in found if hit.action is Action.REJECT), None)
        every = policy.hits(text)
        full = {rule for rule, many in Counter(hit.rule for hit in every).items() if many >= MOST_HITS}
        own = {_place(hit) for hit in found if hit.rule not in full and hit.end > hit.start}
        seen = {_place(hit) for hit in every}
        assert {place for place in own if place[2] != "imports"} <= seen
        _, refused = self.timed(
            Screen(policy=policy, submitted=None).look, f"prelude\n{text}", header="import A\n"
        )
        assert refused is not None

    def probed(self, text: str, chosen: random.Random) -> None:
        """What is rejected is found wherever it is code, and a comment behind a text takes nothing back."""
        rule, probe = chosen.choice(PROBES)
        cut = chosen.choice((len(text), chosen.randrange(len(text) + 1)))
        whole, at = f"{text[:cut]}\n{probe}\n{text[cut:]}", cut + 1
        if not _is_in_code(whole, at):
            self.outcomes["probed in a comment or a string"] += 1
        elif rule != "imports" or header_end(whole) < at:
            found = _POLICY.hits(whole, [(at, at + len(probe))])
            assert any(hit.rule == rule and hit.action is Action.REJECT for hit in found), (cut, rule, probe)
            assert refusing(_POLICY.hits(whole)) is not None, (cut, probe)
        if refusing(_POLICY.hits(text)) is not None and _is_in_code(f"{text}\nzz", len(text) + 1):
            assert refusing(_POLICY.hits(f"{text}\n-- zz")) is not None, "a comment takes a rejection back"

    def assembly(self, chosen: random.Random) -> Program:
        """A program is made of pieces of the fields, to the letter, and of white space and a few words."""
        example = self.example
        entry, options = example.entry, example.assembly
        made, *_ = self.timed(assemble, entry, options)
        sources = {each: getattr(entry, each) for each in _FIELDS}
        reached, own = 0, ""
        for segment in made.segments:
            end, origin_end = segment.start + segment.length, segment.origin_start + segment.length
            assert reached <= segment.start < end <= len(made.text), segment
            assert 0 <= segment.origin_start < origin_end <= len(sources[segment.origin]), segment
            assert (
                made.text[segment.start : end] == sources[segment.origin][segment.origin_start : origin_end]
            )
            own, reached = f"{own} {made.text[reached : segment.start]}", end
        assert set((own + made.text[reached:]).split()) <= _OWN_WORDS
        for warning in made.warnings:
            lines = sources[warning.origin].split("\n")
            assert 1 <= warning.line <= len(lines), warning
            assert 0 <= warning.column <= len(lines[warning.line - 1]), warning
        self._located(made, sources, chosen)
        self.outcomes.update({warning.code for warning in made.warnings})
        return made

    def _located(self, made: Program, sources: dict[str, str], chosen: random.Random) -> None:
        """A place in a program leads to the same character of a field."""
        offset = chosen.randrange(len(made.text) + 1)
        line = made.text.count("\n", 0, offset) + 1
        column = offset - (made.text.rfind("\n", 0, offset) + 1)
        found = self.timed(
            LineMap(made.segments, made.text, starts_in(made.segments, sources)).locate, line, column
        )
        inside = any(each.start <= offset < each.start + each.length for each in made.segments)
        assert found is not None or not inside
        if found is not None and inside:
            assert (
                sources[found.origin]
                .split("\n")[found.line - 1][found.column :]
                .split("\n")[0]
                .startswith(made.text[offset : offset + 1].strip("\n"))
            )

    def challenge(self, made: Program) -> None:
        """A challenge begins with the header and ends with the sorry that stands for the proof."""
        entry = self.example.entry
        challenge = self.timed(challenge_to, entry.header, entry.formal_statement)
        assert (challenge is None) == (not entry.formal_statement.strip())
        if challenge is None:
            return
        assert challenge.program.startswith(entry.header)
        assert challenge.program.endswith(" sorry\n")
        assert len(challenge.sha256) == 64


_FIELDS = ("header", "formal_statement", "generation", "predicted_proof")


def _all_tokens(text: str) -> list[Token]:
    return list(tokens(text))


def _all_opaque(text: str) -> list[tuple[int, int]]:
    return list(opaque_spans(text, 0, len(text)))


def _assert_tiles(text: str, found: Iterable[Token], length: int) -> None:
    reached = 0
    for token in found:
        assert reached <= token.start < token.end <= length, token
        assert not text[reached : token.start].strip(), f"left out: {text[reached : token.start]!r}"
        assert not text[token.start].isspace(), token
        reached = token.end
    assert not text[reached:].strip(), f"left out: {text[reached:]!r}"


def _place(hit: Hit) -> tuple[int, int, str]:
    return hit.start, hit.end, hit.rule


def _assert_hits(text: str, found: Sequence[Hit]) -> None:
    assert [hit.start for hit in found] == sorted(hit.start for hit in found)
    for hit in found:
        assert 0 <= hit.start < hit.end <= max(1, len(text)), hit
        assert hit.action is not Action.OFF, hit
        lines = text[: hit.start].split("\n")
        assert (hit.line, hit.column) == (len(lines), len(lines[-1])), hit
        assert hit.text == text[hit.start : hit.end][:80], hit
    counts = Counter(hit.rule for hit in found)
    assert all(many <= MOST_HITS + (rule == "imports") for rule, many in counts.items()), counts


def _is_in_code(whole: str, at: int) -> bool:
    """Whether what begins at an offset is code, as the tokens have it."""
    for token in tokens(whole):
        if token.end > at:
            return token.start == at and token.kind not in _OPAQUE
    return False


def checked(seed: int, number: int, *, most: float = HANG) -> tuple[Checks, str | None]:
    """Check one example; return what is wrong as well, None if nothing is."""
    checks = Checks(Example.of(random.Random(f"{seed}/{number}")), number, most=most)
    return checks, wrong_with(checks)


def wrong_with(checks: Checks) -> str | None:
    """Return what is wrong with an example, None if nothing is."""
    before = signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, HANG)
    try:
        checks.all()
    except Exception:  # noqa: BLE001 - whatever escapes is what is looked for
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return None


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    raise Hang(f"no end after {HANG:.0f} s")


def run(seed: int, numbers: range, *, most: float = HANG) -> Found:
    """Check some examples, up to the first that fails."""
    found = Found()
    for number in numbers:
        checks, wrong = checked(seed, number, most=most)
        found.outcomes += checks.outcomes
        found.slowest = max(found.slowest, checks.slowest)
        found.done += 1
        if wrong is not None:
            found.failure = number, wrong, checks.example.kept()
            break
    return found


def main() -> None:
    """Change programs until there are enough examples or the time is up; then the families."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--largest", type=int, default=256_000, help="the longest text of a family")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-program.json"), help="where a failure is put")
    parser.add_argument("--again", type=Path, help="check nothing but a failure that was kept")
    arguments = parser.parse_args()
    begun = time.monotonic()
    if arguments.again:
        wrong = wrong_with(Checks(Example.read(arguments.again.read_text(encoding="utf-8")), most=SECONDS))
        print(wrong or "nothing is wrong")  # noqa: T201 - it prints what came out
        sys.exit(wrong is not None)
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        found = _ran(arguments, pool.imap_unordered)
        if found.failure is not None:
            sys.exit(_told(found.failure, arguments))
        print(  # noqa: T201 - it prints what came out
            f"{found.done} examples in {time.monotonic() - begun:.0f} s,"
            f" slowest {found.slowest[0] * 1000:.0f} ms ({found.slowest[1]} of {found.slowest[2]}),"
            f" {dict(found.outcomes.most_common())}"
        )
        sys.exit(_grown(pool.imap(partial(worst, largest=arguments.largest), FAMILIES)))


_Map = Callable[[Callable[[range], Found], Iterable[range]], Iterator[Found]]


def _ran(arguments: argparse.Namespace, mapped: _Map) -> Found:
    end, found = time.monotonic() + arguments.seconds, Found()
    many = arguments.examples
    chunks = (range(first, min(first + _CHUNK, many)) for first in range(0, many, _CHUNK))
    for some in mapped(partial(run, arguments.seed, most=SECONDS), chunks):
        found.add(some)
        if found.failure is not None or time.monotonic() > end:
            break
    return found


def _told(failure: tuple[int, str, str], arguments: argparse.Namespace) -> int:
    number, wrong, kept = failure
    arguments.keep.write_text(kept, encoding="utf-8")
    print(f"example {number} of seed {arguments.seed}, kept in {arguments.keep}: {wrong}")  # noqa: T201 - as above
    return 1


def worst(family: str, largest: int) -> tuple[str, Growth | None]:
    """Return the greatest growth of a family's steps, None when none takes long enough to tell."""
    return family, max(growths(family, largest), key=lambda growth: growth.factor, default=None)


def _grown(found: Iterable[tuple[str, Growth | None]]) -> int:
    """Print how the families grow; return 1 if one grows too much."""
    all_linear = True
    for family, growth in found:
        if growth is not None:
            all_linear = all_linear and growth.is_linear
            print(  # noqa: T201 - as above
                f"{family}: at most {growth.factor:.1f} times as long for twice the text"
                f" ({growth.step}, {growth.size} characters, {growth.seconds * 1000:.0f} ms)"
                f"{'' if growth.is_linear else ': NOT LINEAR'}"
            )
    return 0 if all_linear else 1


if __name__ == "__main__":
    main()
