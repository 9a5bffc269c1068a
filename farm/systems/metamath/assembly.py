"""Assembly step, Metamath: makes one block from the statement of a line and the proof of an answer.

A statement is a block ``${ $d .. $. LABEL $e .. $. LABEL $p .. $= ? $. $}``, or the same in a comment with
``@`` for each ``$``, as in miniF2F. The program copies only the proof's tokens from an answer, so no other
text of the answer can reach a verifier; docs/use/metamath.md has the rules. The language is that of the
Metamath book, second edition, chapter 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from farm.assembly.answer import CodeBlock, Span, after_key, fenced_blocks, without_thinking
from farm.assembly.challenge import Challenge
from farm.assembly.faults import StatementFault
from farm.assembly.program import AssemblyOptions, AssemblyWarning, Program
from farm.assembly.segments import Draft
from farm.lean_text.positions import line_and_column
from farm.manifest.entry import Entry

_TOKEN = re.compile(r"[^ \t\r\n\f]+")
_FOREIGN = re.compile(r"[^\t\n\f\r -~]")
_LABEL = re.compile(r"[A-Za-z0-9._-]+")
#: Maps the keywords in miniF2F's comments to Metamath's own.
_UNWRAPPED = {"$@": "$.", "@.": "$."} | {f"@{mark}": f"${mark}" for mark in "{}=()epd"}
#: The keywords that a block must not contain, with their meanings.
_REFUSED = {
    "$a": "an axiom",
    "$c": "a new constant",
    "$v": "a new variable",
    "$f": "a type of a variable",
    "$[": "an inclusion of a file",
    "$]": "an inclusion of a file",
}
#: A $d of an answer with more variables is ignored, because each pair of variables becomes a $d.
_MOST_SET_APART = 32
_TAGS = frozenset({"metamath", "mm"})
_ONE_BLOCK = (
    "write one block, ${ ... LABEL $p STATEMENT $= ? $. $}, that names only what the database declares"
)


class _Token(NamedTuple):
    text: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Block:
    """A theorem without its proof: its hypotheses as label and symbols, and its $d statements."""

    label: str
    symbols: tuple[str, ...]
    hypotheses: tuple[tuple[str, tuple[str, ...]], ...]
    disjoint: tuple[tuple[str, ...], ...]

    @property
    def above(self) -> str:
        """The block's text up to its proof."""
        lines = ["${", *(f"  $d {' '.join(symbols)} $." for symbols in self.disjoint)]
        lines += [f"  {label} $e {' '.join(symbols)} $." for label, symbols in self.hypotheses]
        return "\n".join([*lines, f"  {self.label} $p {' '.join(self.symbols)} $="])

    @property
    def stated(self) -> frozenset[str]:
        """Every symbol of the hypotheses and the statement."""
        return frozenset(self.symbols).union(*(symbols for _, symbols in self.hypotheses))


_BELOW = " $.\n$}\n"


def state(header: str, context: str, statement: str) -> Challenge | None:
    """Return the challenge of a line's fields, None for a blank statement; raises StatementFault."""
    for field, text in (("header", header), ("context", context)):
        if text.strip():
            raise StatementFault(
                f"a line of Metamath has no {field}: its environment is the database",
                f"remove the {field}, and declare in the database what the statement needs",
                field=field,
            )
    if not statement.strip():
        return None
    block = _read(statement)
    return Challenge(program=f"{block.above} ?{_BELOW}", name=block.label)


def assemble(entry: Entry, options: AssemblyOptions) -> tuple[Program]:
    """Return the program of a manifest line; raises StatementFault for a line without a theorem."""
    brought = bool(entry.predicted_proof) and not options.reassemble
    origin = "predicted_proof" if brought else "generation"
    text = entry.predicted_proof if brought else entry.generation
    if entry.formal_statement.strip():
        block = _read(entry.formal_statement)
    elif brought:
        block = _read(text, "predicted_proof")
    else:
        raise StatementFault("this line states no theorem", _ONE_BLOCK)
    answer = _Answer(text, block, options, whole=brought)
    draft = Draft({origin: text})
    draft.write(block.above)
    proof_at = draft.length
    answer.write(draft, origin)
    draft.write(_BELOW)
    program, segments = draft.finish()
    if answer.sets_apart:
        extra = "".join(f"  $d {' '.join(each)} $.\n" for each in answer.sets_apart)
        program = program.replace("${\n", f"${{\n{extra}", 1)
        segments = tuple(
            [each._replace(start=each.start + len(extra)) for each in segments if each.start >= proof_at]
        )
    warnings = tuple(_warning(code, origin, text, at) for code, at in answer.warnings)
    return (Program(text=program, segments=segments, warnings=warnings),)


def _warning(code: str, origin: str, text: str, offset: int) -> AssemblyWarning:
    line, column = line_and_column(text, offset)
    return AssemblyWarning(code=code, origin=origin, line=line, column=column)


def _tokens(text: str, start: int = 0, end: int | None = None) -> Iterator[_Token]:
    """Yield the tokens of a text outside comments; an unclosed comment hides the rest of the text."""
    in_comment = False
    for found in _TOKEN.finditer(text, start, len(text) if end is None else end):
        if in_comment:
            in_comment = found[0] != "$)"
        elif found[0] == "$(":
            in_comment = True
        else:
            yield _Token(found[0], *found.span())


def _read(text: str, field: str = "formal_statement") -> _Block:
    """Return the block of a statement; raises StatementFault, which describes the fault."""
    if (foreign := _FOREIGN.search(text)) is not None:
        raise StatementFault(
            f"U+{ord(foreign[0]):04X} is not a character of Metamath",
            "write the statement in printable ASCII",
            field,
        )
    tokens = [token.text for token in _tokens(_unwrapped(text))]
    try:
        return _Reader(tokens).block()
    except _Malformed as error:
        raise StatementFault(str(error), error.remedy, field) from None


def _unwrapped(text: str) -> str:
    """Return the text of a statement without its comment marks if it is one comment, else unchanged."""
    words = text.split()
    if len(words) < 2 or (words[0], words[-1]) != ("$(", "$)") or not {"@p", "$p"} & set(words):
        return text
    return " ".join([_UNWRAPPED.get(word, word) for word in words[1:-1]])


class _Malformed(Exception):
    def __init__(self, problem: str, remedy: str = _ONE_BLOCK) -> None:
        super().__init__(problem)
        self.remedy = remedy


class _Reader:
    """Reads the tokens of a block."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._disjoint: list[tuple[str, ...]] = []
        self._hypotheses: list[tuple[str, tuple[str, ...]]] = []

    def block(self) -> _Block:
        """Return the block that the tokens form. Raises _Malformed."""
        is_braced = self._tokens[:1] == ["${"]
        self._at = int(is_braced)
        theorem = None
        while theorem is None:
            theorem = self._statement()
        rest = list(self._tokens[self._at :])
        if rest != ["$}"] * is_braced:
            told = f"{_shown(rest[0])} stands behind it" if rest else "the block ${ is not closed by $}"
            raise _Malformed(f"the theorem {_shown(theorem[0])} must be the block's end: {told}")
        block = _Block(
            label=theorem[0],
            symbols=theorem[1],
            hypotheses=tuple(self._hypotheses),
            disjoint=tuple(self._disjoint),
        )
        _require_labels(block)
        return block

    def _statement(self) -> tuple[str, tuple[str, ...]] | None:
        """Take a statement; return the label and symbols of a theorem, None for any other statement."""
        first = self._take("the block ends before its $p")
        if first == "$d":
            self._disjoint.append(self._until("$."))
            return None
        self._require_allowed(first)
        if first.startswith("$") or _LABEL.fullmatch(first) is None:
            raise _Malformed(f"{_shown(first)} is no label")
        word = self._take(f"nothing follows {_shown(first)}")
        self._require_allowed(word)
        if word == "$e":
            self._hypotheses.append((first, self._until("$.")))
            return None
        if word != "$p":
            raise _Malformed(f"{_shown(first)} is followed by {_shown(word)} in place of $e or $p")
        symbols = self._until("$=")
        self._pass_proof()
        return first, symbols

    def _pass_proof(self) -> None:
        """Skip the tokens of the proof; an empty proof may lack its ``$.``."""
        if list(self._tokens[self._at :]) in ([], ["$}"]):
            return
        while (token := self._take("the proof is not closed by $.")) != "$.":
            if "$" in token:
                raise _Malformed(f"{_shown(token)} stands in the proof")

    def _require_allowed(self, word: str) -> None:
        if word in _REFUSED:
            raise _Malformed(f"a statement may not have {word}, {_REFUSED[word]}")

    def _take(self, missing: str) -> str:
        if self._at >= len(self._tokens):
            raise _Malformed(missing)
        self._at += 1
        return self._tokens[self._at - 1]

    def _until(self, end: str) -> tuple[str, ...]:
        """Return the symbols up to a keyword."""
        symbols = []
        while (token := self._take(f"a statement is not closed by {end}")) != end:
            if "$" in token:
                raise _Malformed(f"{_shown(token)} stands before {end}")
            symbols.append(token)
        if not symbols:
            raise _Malformed(f"nothing stands before {end}")
        return tuple(symbols)


def _require_labels(block: _Block) -> None:
    labels = [label for label, _ in block.hypotheses] + [block.label]
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise _Malformed(f"the label {_shown(twice[0])} stands twice", "give each statement its own label")
    if both := block.stated.intersection(labels):
        raise _Malformed(f"{_shown(min(both))} is a label and a symbol", "give the statement another label")


def _shown(token: str) -> str:
    return repr(token if len(token) <= 60 else f"{token[:59]}…")


class _Answer:
    """The proof in a text, with warnings for its author.

    `sets_apart` are the $d statements, in an answer that is a whole block, of variables that the statement
    does not have.
    """

    def __init__(self, text: str, block: _Block, options: AssemblyOptions, *, whole: bool) -> None:
        self._text, self._block = text, block
        self.warnings: list[tuple[str, int]] = []
        self.sets_apart: list[tuple[str, ...]] = []
        self._labels: dict[str, str] = {}
        span = (0, len(text)) if whole else self._code(options)
        self._proof = self._found([*_tokens(text, *span)])
        if not self._proof:
            self.warnings.append(("no_proof", span[1]))

    def write(self, draft: Draft, origin: str) -> None:
        """Write the proof's tokens with the white space between them, but without comments."""
        draft.write("\n    ")
        for number, token in enumerate(self._proof):
            before = self._proof[number - 1].end if number else token.start
            if self._text[before : token.start].strip():
                draft.write("\n")  # a comment stood there
                before = token.start
            label = self._labels.get(token.text, token.text)
            if label != token.text:
                draft.copy(origin, before, token.start)
                draft.write(label)
            else:
                draft.copy(origin, before, token.end)

    def _code(self, options: AssemblyOptions) -> Span:
        """Return the span of the answer's code."""
        answer, unclosed = without_thinking(self._text)
        if unclosed is not None:
            self.warnings.append(("unclosed_thinking", unclosed))
        answer = after_key(self._text, answer, options.key)
        blocks, _ = fenced_blocks(self._text, answer)
        chosen = [each for each in blocks if each.tag in _TAGS] or [each for each in blocks if not each.tag]
        if not chosen:
            self.warnings.append(("no_code_fence", answer[0]))
            return answer
        return self._content(chosen[-1 if options.extract_code_mode == "last" else 0])

    def _content(self, block: CodeBlock) -> Span:
        if not block.closed:
            self.warnings.append(("unclosed_fence", block.fence))
        return block.start, block.end

    def _found(self, tokens: list[_Token]) -> list[_Token]:
        """Return the tokens of the proof: those of the theorem in a whole block, or else all.

        A proof alone may stand between ``$=`` and ``$.``, as ``metamath`` prints it.
        """
        words = [token.text for token in tokens]
        theorems = [n for n in range(1, len(words)) if words[n] == "$p"]
        if not theorems:
            return tokens[words[:1] == ["$="] : len(words) - (words[-1:] == ["$."])]
        named = [n for n in theorems if words[n - 1] == self._block.label]
        theorem = named[-1] if named else theorems[-1]
        if not named:
            self.warnings.append(("name_differs", tokens[theorem - 1].start))
        begin = _index(words, "$=", theorem)
        if tuple(words[theorem + 1 : begin]) != self._block.symbols:
            self.warnings.append(("statement_differs", tokens[theorem].start))
        self._set_apart(words[:theorem])
        proof = tokens[begin + 1 : _index(words, "$.", begin)]
        self._map_hypotheses(tokens[:theorem], is_compressed=bool(proof) and proof[0].text == "(")
        return proof

    def _map_hypotheses(self, tokens: list[_Token], *, is_compressed: bool) -> None:
        """Have the proof name the statement's hypotheses where the answer's own are equal to them.

        A compressed proof numbers them by their order, so there it has to be the statement's.
        """
        left, order = list(self._block.hypotheses), list[int]()
        for at, symbols in _hypotheses([token.text for token in tokens]):
            same = [number for number, (_, stated) in enumerate(left) if stated == symbols]
            named = [number for number in same if left[number][0] == tokens[at].text]
            number = next(iter([*named, *same]), -1)
            if number < 0:
                self.warnings.append(("statement_differs", tokens[at].start))
                continue
            self._labels[tokens[at].text] = left[number][0]
            left[number] = "", ()
            order.append(number)
        if is_compressed and order != sorted(order):
            self.warnings.append(("statement_differs", tokens[0].start))

    def _set_apart(self, words: list[str]) -> None:
        """Keep each $d of two variables of which one is new, since it changes no condition of the theorem."""
        for number, word in enumerate(words):
            if word != "$d":
                continue
            symbols = words[number + 1 : _index(words, "$.", number)]
            new = [each for each in symbols if each not in self._block.stated]
            is_sound = len(set(symbols)) == len(symbols) <= _MOST_SET_APART and "$" not in "".join(symbols)
            if is_sound and tuple(symbols) not in self._block.disjoint:
                self.sets_apart += [pair for pair in _pairs(symbols) if not set(pair).isdisjoint(new)]


def _hypotheses(words: Sequence[str]) -> list[tuple[int, tuple[str, ...]]]:
    """Return the hypotheses in the blocks that are open at the end: each label's index, and its symbols."""
    scopes: list[list[tuple[int, tuple[str, ...]]]] = [[]]
    for number, word in enumerate(words):
        if word == "${":
            scopes.append([])
        elif word == "$}" and len(scopes) > 1:
            scopes.pop()
        elif word == "$e" and number:
            scopes[-1].append((number - 1, tuple(words[number + 1 : _index(words, "$.", number)])))
    return [each for scope in scopes for each in scope]


def _pairs(symbols: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return ((one, other) for n, one in enumerate(symbols) for other in symbols[n + 1 :])


def _index(words: Sequence[str], word: str, start: int) -> int:
    """Return the index of the first such word from `start` on, or the number of words without one."""
    return next((n for n in range(start, len(words)) if words[n] == word), len(words))
