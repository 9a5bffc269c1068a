"""Header step: where a program's imports end, and what of it other programs may share.

Pure. Nothing is ever rewritten here: a header is the program's own text up to a place.
"""

from __future__ import annotations

import re

from farm.scanner import Kind, Token, tokens

_MODIFIERS = frozenset({"public", "meta"})

#: A header ends within so many characters, and what sets the scene within so many more: whoever judges a text
#: does not wait for one that is made of comments.
LONGEST_HEADER = 1 << 18


def header_end(program: str) -> int:
    """Return the offset at which the header of a program ends: after its last import.

    The grammar is that of ``Lean.Parser.Module.header``: ``module``, then ``prelude``, both optional, then
    imports, each with ``public`` and ``meta`` before it and ``all`` behind it where it has them; comments and
    white space anywhere between, but doc comments belong to what follows. 0 when there is no header. An
    import that is not whole within the first `LONGEST_HEADER` characters is none of the header's.
    """
    end = 0
    words = _Words(program)
    for first in ("module", "prelude"):
        if words.now == first:
            end = words.end
            words.go_on()
    while True:
        while words.now in _MODIFIERS:
            words.go_on()
        if words.now != "import":
            return end
        words.go_on()
        if words.now == "all":
            words.go_on()
        if not words.is_name:
            return end
        end = words.end
        words.go_on()


class _Words:
    """The tokens of a program, one at a time, comments left out."""

    def __init__(self, program: str) -> None:
        self._program = program
        read = tokens(program, 0, min(len(program), LONGEST_HEADER))
        self._tokens = (token for token in read if token.kind is not Kind.COMMENT)
        self._token: Token | None = None
        self.go_on()

    def go_on(self) -> None:
        """Take the next token; ``now`` is "" behind the last one."""
        self._token = next(self._tokens, None)

    @property
    def now(self) -> str:
        return "" if self._token is None else self._program[self._token.start : self._token.end]

    @property
    def end(self) -> int:
        return 0 if self._token is None else self._token.end

    @property
    def is_name(self) -> bool:
        return self._token is not None and self._token.kind is Kind.NAME


#: A line that opens a namespace or sets an option for all that follows (``... in`` does so for one command
#: only), an empty one or a comment of one line: what the programs of a run usually have in common.
_SETTING = re.compile(
    r"[ \t]*(?:(?:open|set_option)[ \t](?![^\n]*(?:--|/-|-/|\bin\b))[^\n]*|--[^\n]*)?\r?\n", re.ASCII
)


def prefix_end(program: str, header_end: int) -> int:
    """Return the offset behind the header and the lines that set the scene: ``open`` and ``set_option``.

    What stands before it declares nothing, so a process may keep it from one program to the next.
    """
    until = header_end + LONGEST_HEADER
    found = program.find("\n", header_end, until)
    if found < 0 or program[header_end:found].strip():
        return header_end
    position = found + 1
    end = position
    while line := _SETTING.match(program, position, until):
        position = line.end()
        if line.group().strip() and not line.group().lstrip().startswith("--"):
            end = position
    return end


#: Words with which a program brings code that runs while Lean reads it, wherever they stand: too many hits
#: cost time, one too few would let a program reach into the next one.
_CODE = re.compile(
    r"by_elab|unsafe|implemented_by|extern|csimp|foreign|dynlib|plugin"
    r"|(?:run|builtin|declare|register)_\w+"
    r"|(?:elab|macro|syntax|simproc|dsimproc|initialize|delab|app_delab|unexpand|app_unexpander"
    r"|binder_predicate|include_str|load_dynlib|code_action|widget)(?:_\w+)?"
)
_WORD = re.compile(r"\w+", re.ASCII)  # in ``x⁻¹elab`` the last word is one to Lean
_EVAL = re.compile(r"\#[ \t]*eval|eval%")
_ATTRIBUTE = re.compile(r"@\[|\battribute\b\s*(\[?)")
#: Attributes that run none of the program's own code while Lean reads it.
_HARMLESS = frozenset(
    {
        *("simp", "ext", "instance", "default_instance", "class", "local", "scoped", "deprecated", "nolint"),
        *("reducible", "irreducible", "semireducible", "inline", "noinline", "always_inline", "specialize"),
        *("refl", "symm", "trans", "congr", "gcongr", "mono", "norm_cast", "push_cast", "coe", "fun_prop"),
        *("simps", "to_additive", "elementwise", "reassoc", "elab_as_elim", "match_pattern", "grind"),
        *("nospecialize", "inherit_doc", "field_simps", "measurability", "continuity"),
    }
)
#: Longer lists are not looked through, so that a hostile text costs linear time.
_LONGEST_ATTRIBUTES = 1000
#: ``to_additive (attr := simp)`` gives further attributes.
_NESTED = re.compile(r"\(attr\s*:=\s*([\w\s,]*)\)")
_ATTRIBUTE_NAME = re.compile(r"\s*(?:(?:local|scoped)\s+|-\s*)?([A-Za-z_][\w.]*)")


def brings_code(program: str) -> bool:
    """Say whether a program may run code of its own while Lean reads it.

    Such code can do in Lean's process whatever that process can: change what every later program there sees
    as well. It gets a process of its own. The test looks at the bare text, comments and strings included, so
    no trick of writing hides a word from it; attributes are harmless only when they are known to be. A text
    longer than `LONGEST_HEADER` is not looked at.
    """
    if len(program) > LONGEST_HEADER:
        return True
    # Word by word: the same in one search, which begins anew at each character, takes five times as long.
    if any(map(_CODE.fullmatch, set(_WORD.findall(program)))) or _EVAL.search(program):
        return True
    return any(not _is_harmless(program, found) for found in _ATTRIBUTE.finditer(program))


def _is_harmless(program: str, found: re.Match[str]) -> bool:
    if found.group(1) == "":  # the word alone, which says nothing of what follows
        return False
    closed = program.find("]", found.end(), found.end() + _LONGEST_ATTRIBUTES)
    if closed < 0:
        return False
    text = program[found.end() : closed]
    attributes = ",".join([_NESTED.sub("", text), *_NESTED.findall(text)])
    return "attr" not in attributes and all(map(_is_known, attributes.split(",")))


def _is_known(attribute: str) -> bool:
    name = _ATTRIBUTE_NAME.match(attribute)
    return name is not None and name.group(1) in _HARMLESS
