"""Header step: finds the end of a program's imports."""

from __future__ import annotations

from farm.lean_text.scanner import Token, TokenKind, after_comments, tokens

_MODIFIERS = frozenset({"public", "meta"})

#: The most tokens of a header, comments left out: a text made of imports must not delay the judge.
_MOST_TOKENS = 1 << 16


def header_end(program: str) -> int:
    """Return the offset at which the header of a program ends: after its last import.

    The grammar is that of ``Lean.Parser.Module.header``: ``module``, then ``prelude``, both optional, then
    imports, each optionally with ``public`` and ``meta`` before it and ``all`` behind it; comments and white
    space anywhere between, but doc comments belong to what follows. 0 for a program without a header. An
    import behind the first `_MOST_TOKENS` tokens is not part of the header.
    """
    return _read(program)[0]


def imports(program: str) -> tuple[str, ...]:
    """Return the modules that the header of a program imports, in their order."""
    return tuple(_read(program)[1])


def imported(program: str) -> tuple[str, ...]:
    """Return the modules that Lean imports for a header: also Init, unless it has ``prelude``."""
    words = _Words(program)
    if words.now == "module":
        words.go_on()
    return imports(program) if words.now == "prelude" else ("Init", *imports(program))


def _read(program: str) -> tuple[int, list[str]]:
    end, modules, words = 0, list[str](), _Words(program)
    for first in ("module", "prelude"):
        if words.now == first:
            end = words.end
            words.go_on()
    while True:
        while words.now in _MODIFIERS:
            words.go_on()
        if words.now != "import":
            return end, modules
        words.go_on()
        if words.now == "all":
            words.go_on()
        if not words.is_name:
            return end, modules
        end = words.end
        modules.append(words.now)
        words.go_on()


class _Words:
    """The tokens of a program, one at a time, comments left out."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._left, self._at = _MOST_TOKENS, 0
        self._token: Token | None = None
        self.go_on()

    def go_on(self) -> None:
        """Take the next token; ``now`` is "" behind the last one."""
        self._at = after_comments(self._program, self._at, len(self._program), docs=False)
        self._token = next(tokens(self._program, self._at), None) if self._left else None
        self._left -= 1
        self._at = self.end

    @property
    def now(self) -> str:
        return "" if self._token is None else self._program[self._token.start : self._token.end]

    @property
    def end(self) -> int:
        return 0 if self._token is None else self._token.end

    @property
    def is_name(self) -> bool:
        return self._token is not None and self._token.kind is TokenKind.NAME
