"""Finds the hits of the rules in the code tokens of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from farm.lean_text.header import header_end
from farm.lean_text.policy import words
from farm.lean_text.scanner import Token, TokenKind

Found = tuple[int, int, str]  # start, end, rule


def _plain(name: str) -> str:
    """Return a name without its quotes: «debug».skipKernelTC is debug.skipKernelTC."""
    return name.replace("«", "").replace("»", "").removeprefix("_root_.")


@dataclass(slots=True)
class _Group:
    """An open bracket: a list of attributes, where a name may be due; within one; about aesop's rules."""

    is_attributes: bool = False
    at_name: bool = False
    within_attributes: bool = False
    of_aesop: bool = False


class RuleReader:
    """Reads the tokens of one program and yields the hits of the rules."""

    def __init__(self, text: str, code: Sequence[Token]) -> None:
        self._text = text
        self._code = code
        self._header_end: int | None = None
        self._groups = [_Group()]

    def hits(self) -> Iterator[Found]:
        """Yield the hits, with their places."""
        by_kind: dict[TokenKind, Callable[[int, Token], str | None]] = {
            TokenKind.NAME: self._name,
            TokenKind.OPEN: self._open,
            TokenKind.CLOSE: self._close,
            TokenKind.SYMBOL: self._symbol,
        }
        for place, token in enumerate(self._code):
            look = by_kind.get(token.kind)
            rule = look(place, token) if look else None
            if rule is not None:
                is_option = self._word(place) == "set_option" and place + 1 < len(self._code)
                named = self._code[place + 1] if is_option else token
                yield token.start, named.end, rule

    def _word(self, place: int) -> str:
        if not 0 <= place < len(self._code):
            return ""
        token = self._code[place]
        return self._text[token.start : token.end]

    def _open(self, place: int, token: Token) -> str | None:
        around = self._groups[-1]
        within = around.within_attributes or around.is_attributes
        before = self._word(place - 1)
        listed = self._text[token.start] == "[" and (
            before == "attribute" or (before == "@" and self._code[place - 1].end == token.start)
        )
        self._groups.append(
            _Group(
                is_attributes=listed,
                at_name=listed,
                within_attributes=within,
                of_aesop=within and around.of_aesop and not listed,
            )
        )
        return None

    def _close(self, _place: int, _token: Token) -> str | None:
        if len(self._groups) > 1:
            self._groups.pop()
        return None

    def _symbol(self, _place: int, token: Token) -> str | None:
        group, mark = self._groups[-1], self._text[token.start]
        if group.is_attributes and mark == ",":
            group.at_name, group.of_aesop = True, False
        return None

    def _name(self, place: int, token: Token) -> str | None:
        word = self._text[token.start : token.end]
        group = self._groups[-1]
        listed = group.is_attributes or group.within_attributes
        if word not in words.TELLING and (not listed or self._is_field(place)):
            return self._trusted(word)
        if self._is_field(place):
            return None
        if word in words.AESOP and (group.at_name or (not listed and self._word(place - 1) == "(")):
            group.of_aesop = True
        return self._attribute(place, token, word) if listed else self._anywhere(place, token, word)

    def _anywhere(self, place: int, token: Token, word: str) -> str | None:
        return (
            self._hashed(place, token, word)
            or self._keyword(place, word)
            or self._in_context(place, token, word)
            or self._trusted(word)
        )

    def _is_field(self, place: int) -> bool:
        """Whether a name stands behind a value's dot, where words that are keywords elsewhere name fields.

        Without a value straight before it, a dot may begin a tactic, as in ``by .native_decide``.
        """
        if place < 2 or self._word(place - 1) != ".":
            return False
        value, dot = self._code[place - 2], self._code[place - 1]
        if dot.end != self._code[place].start or value.end != dot.start:
            return False
        if value.kind is TokenKind.NUMBER:  # of a projection: ``h.1.symm``, not ``iterate 1.skip``
            return self._word(place - 3) == "."
        return value.kind in _VALUES or self._text[dot.start - 2 : dot.start] == "|>"

    def _attribute(self, place: int, token: Token, word: str) -> str | None:
        group = self._groups[-1]
        group.at_name = group.at_name and word in ("local", "scoped")
        if not group.of_aesop and (known := words.ATTRIBUTES.get(_plain(word))):
            return known
        if words.CODE_ATTRIBUTE.fullmatch(_plain(word)):
            return "metaprogram"
        # No list of attributes, perhaps: ``x@[...]`` is a pattern, and a notation's token can end in ``@[``.
        return self._anywhere(place, token, word)

    def _hashed(self, place: int, token: Token, word: str) -> str | None:
        if self._word(place - 1) != "#" or self._code[place - 1].end != token.start:
            return None
        return words.HASHED.get(word)

    def _keyword(self, place: int, word: str) -> str | None:
        rule = words.KEYWORDS.get(word)
        if rule == "imports":
            return None if self._code[place].start < self._end_of_header() else rule
        return "metaprogram" if word in words.OPENING and self._opens_lean(place) else rule

    def _in_context(self, place: int, token: Token, word: str) -> str | None:
        after = self._word(place + 1)
        if word == "set_option":
            return self._option(_plain(after))
        if word == "unsafe":
            return None if self._is_of_aesop(place) else "unsafe"
        if word == "eval" and after == "%":
            return "run"
        if word == "native" and (
            self._text[token.start - 1 : token.start] == "+" or after in (":=", ",", "}")
        ):
            return "native"
        if word == "config" and after == ":=":
            return "native" if self._configures_decide(place) else None
        return words.MODIFIERS.get(word) if after in words.DECLARED else None

    def _is_of_aesop(self, place: int) -> bool:
        """Whether an ``unsafe`` says of a rule for aesop how sure it is, and does not begin a declaration."""
        if self._word(place + 1) in words.DECLARED or self._word(place + 1) in words.MODIFIERS:
            return False
        return self._groups[-1].of_aesop or self._word(place - 1) == "add_aesop_rules"

    def _configures_decide(self, place: int) -> bool:
        """Whether a configuration without its fields' names may let `decide` trust the compiler."""
        if "decide" not in map(self._word, range(max(0, place - _FAR), place)):
            return False
        opening, name, sign = map(self._word, range(place + 2, place + 5))
        return opening != "{" or not (name == "}" or sign == ":=")

    def _option(self, name: str) -> str | None:
        name = name.removeprefix("weak.")
        family = name.partition(".")[0]
        if family in words.OPTION_FAMILIES or name in words.SINGLE_OPTIONS or words.SKIP_KERNEL in name:
            return "option"
        return None

    def _trusted(self, word: str) -> str | None:
        if words.SKIP_KERNEL in word:
            return "option"
        if word.endswith(words.TRUSTED) or ("«" in word and _plain(word).endswith(words.TRUSTED)):
            return "trusted_name"
        if _plain(word).startswith(_OWN) or _plain(word) == "IO":
            return "metaprogram"
        return "initialize" if words.INITIALIZERS.fullmatch(word) else None

    def _end_of_header(self) -> int:
        if self._header_end is None:
            self._header_end = header_end(self._text)
        return self._header_end

    def _opens_lean(self, place: int) -> bool:
        """Whether Lean's own namespace is opened or gone on with: there, its functions go by short names."""
        place += 1
        while place < len(self._code) and self._code[place].kind is TokenKind.NAME:
            word = self._word(place)
            if word in words.KEYWORDS or word in words.COMMANDS:
                return False
            if _plain(word).partition(".")[0] in words.LEAN_S_OWN:
                return True
            place += 1
        return False


_OWN = tuple(f"{name}." for name in words.LEAN_S_OWN)
#: The tokens before which a dot means a field.
_VALUES = frozenset({TokenKind.NAME, TokenKind.CLOSE, TokenKind.STRING})
#: At most this many words stand between a tactic and its configuration.
_FAR = 12
