"""Metamath step, the database: a file of statements becomes frames that proofs are verified against. Pure.

A symbol is one character of a string here, and an expression a string: to compare expressions is to compare
strings, and to substitute is to join them. Which character stands for which symbol is the database's own.

Chapter and section numbers are those of the Metamath book (see `farm_workers.systems.metamath`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

#: Characters that a source may not have (4.1.1): all but printable ASCII and four kinds of white space.
_FOREIGN = re.compile(r"[^\t\n\f\r -~]")
_COMMENT_BEGINS = re.compile(r"(?<!\S)\$\((?=\s)")
_COMMENT_ENDS = re.compile(r"(?<=\s)\$\)(?!\S)")
# A symbol has no dollar sign, so a statement ends at the first one that is not its own.
_STATEMENT = re.compile(
    r"\s*+(?:(?P<scope>\$[{}])|(?:(?P<label>[A-Za-z0-9._-]+)\s+)?\$(?P<word>[cvdfeap])(?=\s)(?P<body>[^$]*)"
    r"(?:(?<=\s)\$=(?=\s)(?P<proof>[^$]*))?(?<=\s)\$\.)(?!\S)"
)
_LABEL = re.compile(r"[A-Za-z0-9._-]+")
#: Messages quote labels and symbols up to this length.
_SHOWN = 60
#: Characters that are half of a pair in other encodings stand for no symbol.
_FIRST_SYMBOL, _FIRST_HALF, _AFTER_HALVES = 0x21, 0xD800, 0xE000

Pair = tuple[str, str]


class MalformedText(Exception):
    """A text breaks the rules of Metamath's language; `offset` is the place in the text, -1 if unknown."""

    def __init__(self, what: str, offset: int = -1) -> None:
        super().__init__(what)
        self.offset = offset


class Hypothesis(NamedTuple):
    """A hypothesis: `variable` is the one that a floating one gives a type, "" of an essential one.

    `order` is its place among all hypotheses of the database.
    """

    label: str
    variable: str
    expression: str
    order: int


class Frame(NamedTuple):
    """An assertion with its mandatory hypotheses, in order, and the pairs that must be disjoint (4.2.7).

    `is_proved` is false of a theorem that has no complete proof, or rests on one that has none.
    """

    label: str
    is_axiom: bool
    hypotheses: tuple[Hypothesis, ...]
    disjoint: frozenset[Pair]
    statement: str
    is_proved: bool = True


class Theorem(NamedTuple):
    """A theorem as its proof is read: its frame and its active context.

    `proof` is its text, and `proof_at` the offset of the proof. `active` are the hypotheses that a proof may
    name, `disjoint` the pairs that it may rely on.
    """

    frame: Frame
    active: Mapping[str, Hypothesis]
    disjoint: frozenset[Pair]
    proof: str
    proof_at: int


class _Scope:
    """The active declarations of a block."""

    __slots__ = ("active", "disjoint", "essential", "floating", "variables")

    def __init__(self, outer: _Scope | None = None) -> None:
        self.variables: set[str] = set(outer.variables) if outer else set()
        self.floating: dict[str, Hypothesis] = dict(outer.floating) if outer else {}
        self.essential: list[Hypothesis] = list(outer.essential) if outer else []
        self.active: dict[str, Hypothesis] = dict(outer.active) if outer else {}
        self.disjoint: set[Pair] = set(outer.disjoint) if outer else set()


class Statement(NamedTuple):
    """One statement of a text: its keyword's letter, or a brace, and the tokens of its body."""

    word: str
    label: str | None
    symbols: list[str]
    proof: str | None
    proof_at: int
    offset: int


def statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a text in order. Raises MalformedText for a malformed one."""
    if (foreign := _FOREIGN.search(text)) is not None:
        raise MalformedText(f"U+{ord(foreign[0]):04X} is not a character of Metamath", foreign.start())
    text = _without_comments(text)
    at = 0
    while (found := _STATEMENT.match(text, at)) is not None:
        at = found.end()
        scope, label, word, body, proof = found.group("scope", "label", "word", "body", "proof")
        begins = found.start("scope") if scope else found.start("word") - 1
        if scope:
            yield Statement(scope[1], None, [], None, -1, begins)
        else:
            yield Statement(word, label, body.split(), proof, found.start("proof"), begins)
    rest = text[at:].split(maxsplit=1)
    if rest[:1] == ["$["]:
        raise MalformedText("a file that includes others is not read; write one file of them", at)
    if rest:
        raise MalformedText(
            f"no statement begins with {shown(rest[0])}, or it has no end", text.index(rest[0], at)
        )


def _without_comments(text: str) -> str:
    """Return a text with white space for its comments. Raises MalformedText for a comment in a comment."""
    pieces, at = list[str](), 0
    while (begins := _COMMENT_BEGINS.search(text, at)) is not None:
        if (ends := _COMMENT_ENDS.search(text, begins.end())) is None:
            break
        if (inner := text.find("$(", begins.end(), ends.start())) >= 0:
            raise MalformedText("a comment contains $(", inner)
        pieces += text[at : begins.start()], re.sub(r"[^\n]", " ", text[begins.start() : ends.end()])
        at = ends.end()
    return "".join(pieces) + text[at:] if pieces else text


def shown(token: str) -> str:
    """Return a token for a message."""
    return repr(token if len(token) <= _SHOWN else token[: _SHOWN - 1] + "…")


class Database:
    """The declarations of a database.

    `frames` are all assertions by label. `proofs_to`, if given, is called with each theorem as it is read,
    before another statement can name it.
    """

    def __init__(self, text: str, proofs_to: Callable[[Theorem], None] | None = None) -> None:
        """Read a text to its end. Raises MalformedText."""
        self.frames: dict[str, Frame] = {}
        self._hypotheses: dict[str, Hypothesis] = {}
        self._symbols: dict[str, str] = {}
        self._constants: set[str] = set()
        self._variables: set[str] = set()
        self._incomplete: set[str] = set()
        self._order = 0
        self._scopes = [_Scope()]
        self._proofs_to = proofs_to
        self.read(text)

    def read(self, text: str) -> None:
        """Read statements behind those that were read before. Raises MalformedText."""
        depth = len(self._scopes)
        for statement in statements(text):
            try:
                self._take(statement, depth)
            except MalformedText as error:
                raise error if error.offset >= 0 else MalformedText(str(error), statement.offset) from None
        if len(self._scopes) != depth:
            raise MalformedText("a block ${ is not closed", len(text))

    def behind(self, text: str) -> Theorem:
        """Return the last theorem of a text that is read behind this, and forget all that it declares.

        Raises MalformedText. The text may have no declarations of symbols.
        """
        outside, told = self._scopes, self._proofs_to
        labelled: tuple[dict[str, Frame] | dict[str, Hypothesis], ...] = (self.frames, self._hypotheses)
        sizes = [len(each) for each in labelled]
        found: list[Theorem] = []
        self._proofs_to = found.append
        self._scopes = [_Scope(outside[-1])]
        try:
            self.read(text)
        finally:
            self._scopes, self._proofs_to = outside, told
            for labels, before in zip(labelled, sizes, strict=True):
                # Not copied: a copy would touch, and so duplicate, pages that a fork shares with its parent.
                while len(labels) > before:
                    self._incomplete.discard(labels.popitem()[0])
        return found[-1]

    @property
    def variables(self) -> frozenset[str]:
        """The characters that stand for variables."""
        return frozenset(self._variables)

    def types(self) -> Mapping[str, Hypothesis]:
        """Return the floating hypotheses that are active behind the database, by their variables."""
        return self._scopes[-1].floating

    @property
    def counts(self) -> tuple[int, int]:
        """How many axioms and how many theorems there are."""
        axioms = sum(frame.is_axiom for frame in self.frames.values())
        return axioms, len(self.frames) - axioms

    def words(self, expression: str) -> str:
        """Return an expression as Metamath writes it."""
        names = {character: symbol for symbol, character in self._symbols.items() if character in expression}
        return " ".join(names[character] for character in expression)

    def is_hypothesis(self, label: str) -> bool:
        """Whether a label is that of a hypothesis, wherever it stands."""
        return label in self._hypotheses

    def _take(self, statement: Statement, depth: int) -> None:
        word = statement.word
        if word == "{":
            self._scopes.append(_Scope(self._scopes[-1]))
        elif word == "}":
            if len(self._scopes) <= depth:
                raise MalformedText("$} closes no block")
            self._scopes.pop()
        elif word in "cvd":
            self._declare(statement)
        else:
            self._label(statement)

    def _declare(self, statement: Statement) -> None:
        """Take a statement that has no label."""
        if statement.label is not None:
            raise MalformedText(f"${statement.word} has a label, {shown(statement.label)}")
        if statement.proof is not None or not statement.symbols:
            raise MalformedText(f"${statement.word} names no symbols, or has a proof")
        if statement.word == "c":
            self._declare_constants(statement.symbols)
        elif statement.word == "v":
            self._declare_variables(statement.symbols)
        else:
            self._set_apart(statement.symbols)

    def _declare_constants(self, symbols: Iterable[str]) -> None:
        if len(self._scopes) > 1:
            raise MalformedText("$c stands in a block")
        for symbol in symbols:
            if symbol in self._symbols:
                raise MalformedText(f"the symbol {shown(symbol)} is declared twice")
            self._constants.add(self._character(symbol))

    def _declare_variables(self, symbols: Iterable[str]) -> None:
        for symbol in symbols:
            character = self._character(symbol)
            if character in self._constants or character in self._scopes[-1].variables:
                raise MalformedText(f"the symbol {shown(symbol)} is declared twice")
            self._variables.add(character)
            self._scopes[-1].variables.add(character)

    def _character(self, symbol: str) -> str:
        """Return the character of a symbol, a new one for a new symbol."""
        if symbol in self._hypotheses or symbol in self.frames:
            raise MalformedText(f"the symbol {shown(symbol)} is a label as well")
        if symbol not in self._symbols:
            number = _FIRST_SYMBOL + len(self._symbols)
            number += (_AFTER_HALVES - _FIRST_HALF) * (number >= _FIRST_HALF)
            self._symbols[symbol] = chr(number)
        return self._symbols[symbol]

    def _set_apart(self, symbols: Iterable[str]) -> None:
        """Take a $d (4.2.4)."""
        characters = [self._active(symbol) for symbol in symbols]
        if not self._scopes[-1].variables.issuperset(characters):
            raise MalformedText("$d names a symbol that is not an active variable")
        if len(set(characters)) != len(characters) or len(characters) < 2:
            raise MalformedText("$d names a variable twice, or only one")
        pairs = self._scopes[-1].disjoint
        for number, first in enumerate(characters):
            pairs.update(pair(first, other) for other in characters[number + 1 :])

    def _active(self, symbol: str) -> str:
        character = self._symbols.get(symbol)
        if character is None or not (character in self._constants or character in self._scopes[-1].variables):
            raise MalformedText(f"the symbol {shown(symbol)} is not declared")
        return character

    def _label(self, statement: Statement) -> None:
        """Take a statement that has a label."""
        label, word = statement.label, statement.word
        if label is None:
            raise MalformedText(f"${word} has no label")
        if label in self._hypotheses or label in self.frames:
            raise MalformedText(f"the label {shown(label)} is declared twice")
        if label in self._symbols:
            raise MalformedText(f"the label {shown(label)} is a symbol as well")
        if (statement.proof is None) == (word == "p"):
            raise MalformedText(f"${word} {'has no' if word == 'p' else 'has a'} proof")
        expression = "".join([self._active(symbol) for symbol in statement.symbols])
        if expression[:1] not in self._constants:
            raise MalformedText(f"what {shown(label)} states does not begin with a constant")
        if word == "f":
            self._float(label, expression)
        elif word == "e":
            self._require_typed(label, expression)
            self._suppose(Hypothesis(label, "", expression, self._next()))
        else:
            self._assert(label, expression, statement)

    def _next(self) -> int:
        self._order += 1
        return self._order

    def _float(self, label: str, expression: str) -> None:
        scope = self._scopes[-1]
        if len(expression) != 2 or expression[1] not in scope.variables:
            raise MalformedText(f"$f {shown(label)} is not a constant and a variable")
        if expression[1] in scope.floating:
            raise MalformedText(f"$f {shown(label)} gives a variable a second type")
        hypothesis = Hypothesis(label, expression[1], expression, self._next())
        scope.floating[expression[1]] = hypothesis
        self._suppose(hypothesis)

    def _suppose(self, hypothesis: Hypothesis) -> None:
        scope = self._scopes[-1]
        self._hypotheses[hypothesis.label] = scope.active[hypothesis.label] = hypothesis
        if not hypothesis.variable:
            scope.essential.append(hypothesis)

    def _require_typed(self, label: str, expression: str) -> None:
        scope = self._scopes[-1]
        if not scope.floating.keys() >= scope.variables.intersection(expression):
            raise MalformedText(f"{shown(label)} has a variable that no active $f gives a type")

    def _assert(self, label: str, expression: str, statement: Statement) -> None:
        self._require_typed(label, expression)
        frame = self._frame(label, expression, is_axiom=statement.word == "a")
        if statement.proof is not None:
            frame = frame._replace(is_proved=self._is_complete(label, statement.proof))
            if self._proofs_to is not None:
                scope = self._scopes[-1]
                # Copied: declarations behind the theorem are not active in its proof.
                active, pairs = dict(scope.active), frozenset(scope.disjoint)
                self._proofs_to(Theorem(frame, active, pairs, statement.proof, statement.proof_at))
        self.frames[label] = frame

    def _frame(self, label: str, expression: str, *, is_axiom: bool) -> Frame:
        """Return the frame of an assertion (4.2.7)."""
        scope = self._scopes[-1]
        used = scope.variables.intersection(expression)
        for hypothesis in scope.essential:
            used |= scope.variables.intersection(hypothesis.expression)
        mandatory = [scope.floating[variable] for variable in used] + scope.essential
        mandatory.sort(key=lambda hypothesis: hypothesis.order)
        disjoint = [each for each in scope.disjoint if used.issuperset(each)]
        return Frame(label, is_axiom, tuple(mandatory), frozenset(disjoint), expression)

    def _is_complete(self, label: str, proof: str) -> bool:
        """Whether a proof has no gap, and names no theorem that has one."""
        if "?" not in proof and (not self._incomplete or self._incomplete.isdisjoint(proof.split())):
            return True
        self._incomplete.add(label)
        return False


def pair(first: str, second: str) -> Pair:
    """Return two variables in the order in which pairs have them."""
    return (first, second) if first < second else (second, first)
