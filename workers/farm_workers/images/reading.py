"""Image step, reading: has Lean's parser read a program in a fork that runs none of its code.

A check that forbids tactics needs to know what names are tactics of its header, and that no text of the
submission changes Lean: the process that elaborates such a text can deceive whoever asks it. The dataset's
own commands are elaborated, as are the submission's commands that only open names and set scopes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from farm_workers.audit.names import parsed
from farm_workers.binding import table
from farm_workers.binding.objects import (
    FALSE,
    NOTHING,
    LeanError,
    boxed,
    dotted,
    elements,
    field,
    shared,
    tag,
    text,
)
from farm_workers.binding.table import Ability
from farm_workers.images.frontend import Frontend
from farm_workers.images.protocol import ReadAsked
from farm_workers.images.syntax import ATOM, IDENTIFIER, NODE, kind_of, leaves, nodes

_CONSTANT = 4  # of `Lean.Expr`
_FAILED = 0  # of `Except`
_COMMAND, _TERM = "Lean.Parser.Command.", "Lean.Parser.Term."
#: Commands that open names and set scopes: they run no code, and the text behind them is read by them.
_SCOPES = frozenset(
    {
        *(_COMMAND + each for each in ("open", "namespace", "section", "end", "set_option", "universe")),
        _COMMAND + "noncomputableSection",
    }
)
#: The other commands that change neither Lean's parser nor its elaborators.
_HARMLESS = frozenset(
    {
        *(_COMMAND + each for each in ("declaration", "mutual", "in", "variable", "include", "omit")),
        *(_COMMAND + each for each in ("export", "attribute", "moduleDoc", "check", "print", "printAxioms")),
        "lemma",
    }
)
#: Attributes that give a declaration no code to run.
_ATTRIBUTES = frozenset(
    {
        *("simp", "ext", "refl", "symm", "trans", "congr", "gcongr", "norm_cast", "push_cast", "field_simps"),
        *("simps", "mono", "fun_prop", "grind", "instance", "default_instance", "class", "reducible"),
        *("semireducible", "irreducible", "inline", "always_inline", "noinline", "macro_inline"),
        *("specialize", "nospecialize", "match_pattern", "elab_as_elim", "elab_without_expected_type"),
        *("to_additive", "deprecated", "nolint"),
    }
)
#: Words that run code, or have the kernel believe something, wherever they stand.
_CODE = frozenset(
    {
        *("unsafe", "axiom", "by_elab", "run_tac", "run_conv", "run_elab", "run_meta", "run_cmd"),
        *("#eval", "#eval!", "eval%"),
    }
)
#: The first parts of options that change Lean itself.
_OPTIONS = frozenset(
    {"internal", "Elab", "compiler", "interpreter", "bootstrap", "debug", "doc", "experimental", "server"}
)
#: The types of parsers: a constant of such a type is a kind of syntax.
_PARSERS = frozenset(
    {
        *("Lean.ParserDescr", "Lean.TrailingParserDescr"),
        *("Lean.Parser.Parser", "Lean.Parser.TrailingParser"),
    }
)
#: The tactic that Lean reads where there is none of a name.
_NO_TACTIC = "unknown tactic"
#: The form of the words with which tactics begin; more than one token is none.
_WORD = re.compile(r"[^\W\d]\w*['?!]*|·")
_MOST_FAULTS = 16


def read_in(frontend: Frontend, asked: ReadAsked) -> dict[str, object]:
    """Return what the forbidden names of a check are, and the faults of its text.

    Raises LeanError where Lean cannot be asked.
    """
    if reason := frontend.lean.lacks(Ability.READING):
        raise LeanError(reason)
    for stream in (1, 2):
        os.dup2(0, stream)  # the messages of the check itself count
    frontend.elaborate(asked["program"][: asked["start"]] + "\n", None)
    return _Reading(frontend, asked).answer()


class Source:
    """A program's text as Lean has it, where places are bytes, and the submission's spans in it."""

    def __init__(self, program: str, submitted: Sequence[Sequence[int]]) -> None:
        """Convert the spans, which are offsets in code points."""
        self._program = program
        self.bytes = normal(program)
        self._spans = [(self.place(start), self.place(end)) for start, end in submitted if start < end]

    def place(self, offset: int) -> int:
        """Return the byte of an offset."""
        return len(normal(self._program[:offset]))

    def line(self, place: int) -> int:
        """Return the line of a byte, from 1."""
        return self.bytes.count(b"\n", 0, place) + 1

    def is_submitted(self, start: int, end: int) -> bool:
        """Return whether a range has text of the submission."""
        return any(start < last and first < max(end, start + 1) for first, last in self._spans)


def normal(program: str) -> bytes:
    """Return the bytes of a text as Lean reads it, see `mkInputContext`."""
    return program.replace("\r\n", "\n").encode("utf-8", "surrogatepass")


def first_token(syntax: int) -> str | None:
    """Return the first token of a syntax tree, None if it is no fixed word."""
    first = next(leaves(syntax), NOTHING)
    return None if first == NOTHING or tag(first) != ATOM else text(field(first, 1))


def has_token(token: str | None, among: Sequence[str]) -> str | None:
    """Return the forbidden word that a token is; ``simp?`` and ``simp!`` are ``simp``."""
    return next((each for each in among if token and each in (token, token.rstrip("?!"))), None)


class _Reading:
    """One reading; the state after a text that ends where the submission may begin is the frontend's last."""

    def __init__(self, frontend: Frontend, asked: ReadAsked) -> None:
        self._frontend, self._lean, self._asked = frontend, frontend.lean, asked
        self._state = frontend.last_state()
        self._source = Source(asked["program"], asked["submitted"])
        self._faults: list[str] = []

    def answer(self) -> dict[str, object]:
        """Return the answer as JSON, see `farm_workers.checking.bans.Bans`."""
        found = self._sorted_out()
        if found["tokens"] or found["kinds"]:
            self._read_commands(found)
        return {**found, "faults": self._faults[:_MOST_FAULTS]}

    # Names

    def _sorted_out(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {"constants": [], "kinds": [], "tokens": [], "unknown": []}
        kernel = self._frontend.kernel_of(self._get(table.ENVIRONMENT))
        for said in self._asked["forbid"]:
            name = said.removeprefix("_root_.")
            known = [*self._as_constant(kernel, name), *(["tokens"] if self._is_tactic(said) else [])]
            for what in known or ["unknown"]:
                found[what].append(name)
        if found["unknown"] and self._asked["challenge"]:
            self._frontend.elaborate(self._asked["challenge"], None)
            kernel = self._frontend.kernel_of(self._frontend.last_environment())
            for name in list(found["unknown"]):
                if self._as_constant(kernel, name):
                    found["unknown"].remove(name)
                    found["constants"].append(name)
        return found

    def _as_constant(self, kernel: int, name: str) -> list[str]:
        """Return the sort of a constant: a kind of syntax or another constant, empty if there is none."""
        try:
            known = self._lean.call(table.FIND, shared(kernel), self._named(name))
        except ValueError:
            return []  # it is no name of Lean's
        if known == NOTHING:
            return []
        # Of `some`, `ConstantInfo`, the value of its kind and `ConstantVal`.
        type_ = field(field(field(field(known, 0), 0), 0), 2)
        is_kind = tag(type_) == _CONSTANT and dotted(field(type_, 0)) in _PARSERS
        return ["kinds" if is_kind else "constants"]

    def _named(self, name: str) -> int:
        made = NOTHING
        for part in parsed(name):
            if isinstance(part, str):
                made = self._lean.runtime(table.NAME_STRING)(made, self._lean.string(part))
            else:
                made = self._lean.runtime(table.NAME_NUMBER)(made, boxed(part))
        return made

    def _is_tactic(self, word: str) -> bool:
        """Return whether a tactic begins with a word: Lean's parser gets to its end or further."""
        if not _WORD.fullmatch(word):
            return False
        lean, file = self._lean, "f"
        words = self._get(table.ENVIRONMENT), lean.name("tactic"), lean.string(word), lean.string(file)
        read = lean.call(table.PARSE, *words)
        if tag(read) != _FAILED:
            return first_token(field(read, 0)) == word
        place, _, said = text(field(read, 0)).removeprefix(f"{file}:1:").partition(": ")
        return place.isdigit() and int(place) >= len(word) and said != _NO_TACTIC

    # Commands

    def _read_commands(self, banned: dict[str, list[str]]) -> None:
        """Read the program command by command, behind the text of the dataset that is read already."""
        lean, source = self._lean, self._source
        given = self._frontend.input(self._asked["program"])
        at = lean.make(table.PARSER_AT, {"pos": boxed(source.place(self._asked["start"])), "recovering": 0})
        while True:
            nothing = shared(lean.constant(table.NO_MESSAGES))
            read = lean.call(table.PARSE_COMMAND, shared(given), self._scope(), at, nothing)
            syntax, rest = field(read, 0), field(read, 1)
            at = shared(field(rest, 0))
            errors = elements(lean.call(table.MESSAGE_ARRAY, shared(field(rest, 1))))
            kind = dotted(lean.call(table.SYNTAX_KIND, shared(syntax)))
            if errors and not self._faults:
                self._fault("Lean's parser refuses the text where the text has not changed Lean", syntax)
            if errors or kind in (_COMMAND + "eoi", _COMMAND + "exit"):
                return
            self._take(syntax, kind, banned)

    def _take(self, syntax: int, kind: str, banned: dict[str, list[str]]) -> None:
        start, end = self._start(syntax), self._end(syntax)
        if not self._source.is_submitted(start, end):
            self._elaborate(start, end)
            return
        faults = len(self._faults)
        self._judge_command(syntax)
        self._judge_nodes(syntax, banned)
        if kind in _SCOPES and len(self._faults) == faults:
            self._elaborate(start, end)

    def _elaborate(self, start: int, end: int) -> None:
        """Continue behind a command that runs no code of the submission."""
        lean = self._lean
        words = self._source.bytes[start:end].decode("utf-8", "surrogatepass") + "\n"
        begins = lean.make(table.PARSER_AT, {"pos": boxed(0), "recovering": 0})
        done = lean.call(table.PROCESS_COMMANDS, self._frontend.input(words), begins, shared(self._state))
        self._state = lean.get(table.DONE_STATE, done)

    def _judge_command(self, syntax: int) -> None:
        """Note a command that may change Lean; those inside of others are judged too."""
        kind = kind_of(syntax)
        if kind not in _SCOPES and kind not in _HARMLESS:
            self._changes(kind.removeprefix(_COMMAND), syntax)
        inner = {_COMMAND + "in": (0, 2), _COMMAND + "mutual": (1,)}.get(kind, ())
        for each in (elements(field(syntax, 2))[number] for number in inner):
            for command in elements(field(each, 2)) if kind_of(each) == "null" else [each]:
                self._judge_command(command)

    def _judge_nodes(self, syntax: int, banned: dict[str, list[str]]) -> None:
        """Note the faults of a command's parts, but for those in the dataset's own text."""
        for leaf in leaves(syntax):
            if tag(leaf) == ATOM and (word := text(field(leaf, 1), 64)) in _CODE and self._is_own(leaf):
                self._changes(word, leaf)
        for node in nodes(syntax):
            kind, parts = kind_of(node), elements(field(node, 2))
            if kind in banned["kinds"] and self._is_own(node):
                self._fault(f"The proof uses `{kind}`, which is forbidden", node)
            if kind in (_TERM + "attrInstance", _COMMAND + "eraseAttr") and self._is_own(node):
                self._judge_attribute(parts[1])
            if kind.endswith(".set_option") and self._is_own(node):
                self._judge_option(node)
            if ("Tactic" in kind and "Seq" in kind) or "<;>" in kind:
                self._judge_tactics(parts, banned["tokens"])

    def _is_own(self, syntax: int) -> bool:
        """Whether a part of a text is the submission's."""
        return self._source.is_submitted(self._start(syntax), self._end(syntax))

    def _judge_tactics(self, parts: Sequence[int], tokens: Sequence[str]) -> None:
        for part in parts:
            for each in elements(field(part, 2)) if not part & 1 and tag(part) == NODE else ():
                self._judge_tactic(each, tokens)
            self._judge_tactic(part, tokens)

    def _judge_tactic(self, node: int, tokens: Sequence[str]) -> None:
        if node & 1 or tag(node) != NODE:
            return
        if (word := has_token(first_token(node), tokens)) and self._is_own(node):
            self._fault(f"The proof uses the tactic `{word}`, which is forbidden", node)

    def _judge_attribute(self, syntax: int) -> None:
        first = next(leaves(syntax), NOTHING)
        if first == NOTHING:
            return
        name = text(field(first, 1), 64) if tag(first) == ATOM else dotted(field(first, 2))
        if name not in _ATTRIBUTES:
            self._changes(f"the attribute {name}", syntax)

    def _judge_option(self, node: int) -> None:
        for leaf in leaves(node):
            if tag(leaf) == IDENTIFIER:
                if (name := dotted(field(leaf, 2))).split(".")[0] in _OPTIONS:
                    self._changes(f"set_option {name}", node)
                return

    def _changes(self, what: str, syntax: int) -> None:
        sentence = f"A line that forbids tactics does not allow `{what}`, which can change how Lean runs them"
        self._fault(sentence, syntax)

    def _fault(self, sentence: str, syntax: int) -> None:
        said = f"{sentence} (line {self._source.line(self._start(syntax))} of the program)"
        if said not in self._faults:
            self._faults.append(said)

    # Lean's values

    def _get(self, part: table.StructureField) -> int:
        return shared(self._lean.get(part, self._state))

    def _scope(self) -> int:
        lean, scope = self._lean, field(self._lean.get(table.SCOPES, self._state), 0)
        parts = {
            "env": self._get(table.ENVIRONMENT),
            "options": shared(lean.get(table.SCOPE_OPTIONS, scope)),
            "currNamespace": shared(lean.get(table.SCOPE_NAMESPACE, scope)),
            "openDecls": shared(lean.get(table.SCOPE_OPEN, scope)),
        }
        return lean.make(table.PARSER_CONTEXT, parts)

    def _start(self, syntax: int) -> int:
        return self._place(table.START, syntax)

    def _end(self, syntax: int) -> int:
        return self._place(table.END, syntax)

    def _place(self, which: table.Function, syntax: int) -> int:
        found = self._lean.call(which, shared(syntax), FALSE)
        return 0 if found == NOTHING else field(found, 0) >> 1
