"""Policy step: what a submitted text must not hold, whatever Lean says of it. Pure; linear in the text.

Lean accepts much that is no proof of the statement: an axiom of the submission's own, a statement after an
``#exit``, a macro that makes another statement of it. The rules below name what such texts are made of. Only
the submission's own part is looked at; the header and the statement are the dataset's.

A text that Lean may read otherwise than `farm.scanner` does (a comment straight behind a symbol can be part
of a token) gets no benefit of the doubt: there, comments and strings are looked at as if they were code.

The defaults rest on counts over 6 214 published machine proofs of benchmark problems and 2 300 harder or
human files: what none of them needs, or hardly any, is rejected; what honest provers write is reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from farm.errors import UsageError
from farm.header import header_end
from farm.scanner import Kind, Token, tokens


class Action(StrEnum):
    """What becomes of a submission that a rule hits."""

    REJECT = "reject"
    REPORT = "report"
    OFF = "off"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A rule: what is done by default, and what a text that it hits could do."""

    action: Action
    threat: str


_REJECT, _REPORT, _OFF = Action.REJECT, Action.REPORT, Action.OFF

#: Every rule by its name. `native` is a switch of its own: what it hits rests on the compiler.
RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "axiom": Rule(action=_REJECT, threat="assumes what was to be proved"),
        "opaque": Rule(action=_REJECT, threat="declares a constant whose value nobody sees"),
        "unsafe": Rule(action=_REJECT, threat="leaves what the kernel checks"),
        "run": Rule(action=_REJECT, threat="runs code while Lean reads the text"),
        "initialize": Rule(action=_REJECT, threat="runs code when the compiled text is imported"),
        "metaprogram": Rule(action=_REJECT, threat="changes what later text means"),
        "replaced_code": Rule(action=_REJECT, threat="runs other code than was proved about"),
        "option": Rule(action=_REJECT, threat="turns off a check, or hides or adds messages"),
        "stop": Rule(action=_REJECT, threat="keeps Lean from reading on"),
        "messages": Rule(action=_REJECT, threat="hides messages"),
        "imports": Rule(action=_REJECT, threat="chooses what the statement stands on"),
        "trusted_name": Rule(action=_REJECT, threat="uses an axiom that proves anything"),
        "token": Rule(
            action=_REJECT, threat="declares a token that makes text look like a comment or a string"
        ),
        "hidden": Rule(action=_REJECT, threat="may hide code in what looks like a comment or a string"),
        "native": Rule(action=_REJECT, threat="trusts the compiler"),
        "partial": Rule(action=_REPORT, threat="declares a constant whose value nobody sees"),
        "notation": Rule(action=_REPORT, threat="changes how later text is read"),
        "instance": Rule(action=_REPORT, threat="changes what later text means"),
        "attribute": Rule(action=_REPORT, threat="changes what later text means"),
        "scope": Rule(action=_REPORT, threat="changes what names in later text mean, or what is assumed"),
        "definition": Rule(action=_REPORT, threat="gives a name a meaning of its own"),
        "setting": Rule(action=_REPORT, threat="changes what later text means"),
        "query": Rule(action=_REPORT, threat="prints"),
        "search": Rule(action=_REPORT, threat="may come out otherwise with another library"),
        "limits": Rule(action=_OFF, threat="lifts Lean's own limits"),
    }
)


#: Rules that hit what can change the meaning of a statement that stands behind it.
MEANING = frozenset({"partial", "notation", "instance", "attribute", "scope", "definition", "setting"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A place that a rule hits: its offsets in the program, its line from 1 and its column from 0."""

    rule: str
    action: Action
    start: int
    end: int
    line: int
    column: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """What is done about each rule; rules that are not named keep their default."""

    actions: Mapping[str, Action] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise UsageError for a rule that there is not."""
        if unknown := sorted(set(self.actions) - set(RULES)):
            raise UsageError(f"there is no rule {unknown[0]!r}; the rules are {', '.join(RULES)}")

    @classmethod
    def parse(cls, settings: Sequence[str]) -> Policy:
        """Return the policy of settings such as ``native=report``; raises UsageError."""
        actions = {}
        for setting in settings:
            rule, _, action = setting.partition("=")
            if action not in set(Action):
                raise UsageError(f"{setting!r}: write RULE=ACTION with one of {', '.join(Action)}")
            actions[rule.strip()] = Action(action)
        return cls(actions=actions)

    def action(self, rule: str) -> Action:
        """Return what is done about a rule."""
        return self.actions.get(rule, RULES[rule].action)

    def hits(self, text: str, submitted: Sequence[tuple[int, int]] | None = None) -> tuple[Hit, ...]:
        """Return what the rules find in a program, in order of place; rules that are off find nothing.

        Of each rule the first `MOST_HITS` are returned.
        `submitted`: the spans (start, end) that are the submission's own, in order; all of it by default.
        """
        own = [(0, len(text))] if submitted is None else list(submitted)
        if not any(_is_suspect(text[max(0, start - _LONGEST) : end + _LONGEST]) for start, end in own):
            return ()
        code, opaque = _sorted(text)
        found = sorted({*_Reader(text, code).hits(), *_hidden(text, opaque)})
        left = Counter(dict.fromkeys(RULES, MOST_HITS))
        kept: list[Hit] = []
        for start, end, rule in found:
            if self.action(rule) is not Action.OFF and left[rule] and _overlaps(own, start, end):
                left[rule] -= 1
                kept.append(_hit(text, start, end, rule, self.action(rule)))
        return tuple(kept)


#: So many hits of one rule are told.
MOST_HITS = 20
#: No word that a rule knows is longer; one may begin in the dataset's part and end in the submission's.
_LONGEST = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """A policy together with what of a program is the submission's own: spans (start, end), None for all."""

    policy: Policy
    submitted: tuple[tuple[int, int], ...] | None = None

    def look(self, program: str, *, header: str) -> tuple[tuple[Hit, ...], Hit | None]:
        """Return what the policy finds in the program, and the hit that rejects it, if one does.

        `header` is one that programs of the environment may begin with. Under ``prelude`` a submission that
        brings its own header has to import at least as much: it could declare what all else stands on.
        """
        hits = self.policy.hits(program, self.submitted)
        own = self.submitted is None or any(start == 0 for start, _ in self.submitted)
        action = self.policy.action("imports")
        if own and action is not Action.OFF and _is_world_of_its_own(program, header):
            hits = (_hit(program, 0, max(1, header_end(program)), "imports", action), *hits)
        return hits, refusing(hits)


def _is_world_of_its_own(program: str, header: str) -> bool:
    used, usual = _header_words(program), _header_words(header)
    return "prelude" in used and not ("prelude" in usual and usual <= used)


def _header_words(program: str) -> set[str]:
    return {
        program[token.start : token.end]
        for token in tokens(program, 0, header_end(program))
        if token.kind is Kind.NAME
    }


def refusing(hits: Sequence[Hit]) -> Hit | None:
    """Return the first hit for which a submission is rejected."""
    return next((hit for hit in hits if hit.action is Action.REJECT), None)


_Found = tuple[int, int, str]  # start, end, rule


def _overlaps(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    return any(start < span_end and span_start < end for span_start, span_end in spans)


def _hit(text: str, start: int, end: int, rule: str, action: Action) -> Hit:
    line_start = text.rfind("\n", 0, start) + 1
    return Hit(
        rule=rule,
        action=action,
        start=start,
        end=end,
        line=text.count("\n", 0, start) + 1,
        column=start - line_start,
        text=text[start : min(end, start + 80)],
    )


# Words.


def _words(rule: str, words: str) -> dict[str, str]:
    return dict.fromkeys(words.split(), rule)


_DECLARED_WORDS = """
    def theorem lemma abbrev instance structure class inductive opaque axiom example section import
    noncomputable unsafe protected private public local scoped end initialize elab macro syntax
"""


#: Words that are keywords wherever they stand as a whole name.
_KEYWORDS = (
    _words("axiom", "axiom")
    | _words("opaque", "opaque")
    | _words("run", "run_cmd run_tac run_elab run_meta run_conv by_elab")
    | _words("initialize", "initialize builtin_initialize")
    | _words(
        "metaprogram",
        "elab elab_rules macro macro_rules syntax declare_syntax_cat binder_predicate unif_hint"
        " simproc dsimproc simproc_decl dsimproc_decl builtin_simproc builtin_dsimproc",
    )
    | _words("imports", "import prelude")
    | _words("native", "native_decide nativeDecide bv_decide bv_decide? bv_check")
    | _words("notation", "notation notation3 infix infixl infixr prefix postfix")
    | _words("instance", "instance")
    | _words("attribute", "attribute")
    | _words("scope", "variable include omit universe namespace section end open export mutual seal unseal")
    | _words("definition", "def abbrev structure class inductive coinductive alias irreducible_def")
    | _words("search", "exact? apply? rw? simp? aesop? polyrith")
)
#: Words that are keywords in front of a declaration and ordinary names elsewhere.
_MODIFIERS = {"meta": "metaprogram", "partial": "partial"}
_DECLARED = frozenset(_DECLARED_WORDS.split())
#: Commands that ``register_...`` and ``declare_...`` are, bring code that an import runs.
_INITIALIZERS = re.compile(r"(?:register|declare|builtin)_\w+")

#: Commands that begin with ``#``; a set's size is written so as well.
_HASHED = (
    _words("run", "eval eval! guard guard_expr html widget")
    | _words("stop", "exit")
    | _words("messages", "guard_msgs guard_panic check_failure")
    | _words("query", "check print reduce synth help find search where simp norm_num instances lint loogle")
)

#: Attributes, by the first name in them.
_ATTRIBUTES = (
    _words("replaced_code", "implemented_by extern csimp export")
    | _words("initialize", "init builtin_init run_parser_attribute_hooks")
    | _words(
        "metaprogram",
        "macro term_elab command_elab tactic elab_rules simproc simprocAttr builtin_simproc unification_hint"
        " app_unexpander delab app_delab unexpand parenthesizer formatter combinator_parenthesizer"
        " combinator_formatter term_parser tactic_parser command_parser attr_parser prio_parser"
        " syntax_parser code_action_provider command_code_action tactic_code_action widget_module"
        " server_rpc_method positivity norm_num quot_precheck inductive_elab",
    )
)

#: Names that end so stand for axioms with which anything can be proved.
_TRUSTED = ("sorryAx", "ofReduceBool", "ofReduceNat", "trustCompiler")

#: Options of these families are not the submission's to set.
_OPTIONS = frozenset({"debug", "warn", "compiler", "interpreter", "trace", "internal", "server", "bootstrap"})
_SINGLE_OPTIONS = frozenset({"stderrAsMessages", "warningAsError"})
#: Of these families, options only say what is shown and what is good style.
_STYLE = frozenset({"linter", "pp", "profiler", "tactic"})
_LIMITS = frozenset({"maxHeartbeats", "maxRecDepth", "synthInstance.maxHeartbeats", "synthInstance.maxSize"})
_SKIP_KERNEL = "skipKernelTC"

#: A text is looked at closely only when one of these words is anywhere in it.
_WORD = re.compile(r"\w+[!?]*")
_SUSPECTS = (
    frozenset(_KEYWORDS) | frozenset(_MODIFIERS) | frozenset({"set_option", "unsafe", "native", "eval"})
)
#: Speaking of rules for aesop, in which ``unsafe`` is a word like any other.
_AESOP = frozenset({"aesop", "add", "add_aesop_rules"})
#: Names that say something by themselves, or by where they stand.
_TELLING = _SUSPECTS | frozenset(_HASHED) | _AESOP
_SUSPECT_PARTS = re.compile(
    r"(?:register|declare|builtin)_\w|sorryAx|ofReduce|trustCompiler|skipKernel|\#|@\[", re.IGNORECASE
)


def _is_suspect(text: str) -> bool:
    return not _SUSPECTS.isdisjoint(_WORD.findall(text)) or _SUSPECT_PARTS.search(text) is not None


# Code.


def _sorted(text: str) -> tuple[list[Token], list[Token]]:
    """Return the tokens that are code, strings included, and those that are not, strings included."""
    code: list[Token] = []
    opaque: list[Token] = []
    for token in tokens(text):
        if token.kind in _OPAQUE:
            opaque.append(token)
        if token.kind not in _OPAQUE or token.kind is Kind.STRING:
            code.append(token)
    return code, opaque


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


class _Reader:
    """Reads the tokens of one program and tells what the rules find."""

    def __init__(self, text: str, code: Sequence[Token]) -> None:
        self._text = text
        self._code = code
        self._header_end: int | None = None
        self._groups = [_Group()]

    def hits(self) -> Iterator[_Found]:
        """Yield what the rules find, with its place."""
        by_kind: dict[Kind, Callable[[int, Token], str | None]] = {
            Kind.NAME: self._name,
            Kind.OPEN: self._open,
            Kind.CLOSE: self._close,
            Kind.SYMBOL: self._symbol,
        }
        for place, token in enumerate(self._code):
            look = by_kind.get(token.kind)
            rule = look(place, token) if look else None
            if rule is not None:
                named = self._code[place + 1] if rule in ("option", "limits", "setting") else token
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
                of_aesop=within and around.of_aesop,
            )
        )
        return None

    def _close(self, _place: int, _token: Token) -> str | None:
        if len(self._groups) > 1:
            self._groups.pop()
        return None

    def _symbol(self, _place: int, token: Token) -> str | None:
        group = self._groups[-1]
        if group.is_attributes and self._text[token.start] == ",":
            group.at_name = True
        return None

    def _name(self, place: int, token: Token) -> str | None:
        word = self._text[token.start : token.end]
        group = self._groups[-1]
        if word not in _TELLING and not (group.is_attributes or group.within_attributes):
            return self._trusted(word)
        if self._is_field(token):
            return None
        if word in _AESOP:
            group.of_aesop = True
        if group.is_attributes or group.within_attributes:
            return self._attribute(word, group)
        return (
            self._hashed(place, token, word)
            or self._keyword(place, word)
            or self._in_context(place, token, word)
        )

    def _is_field(self, token: Token) -> bool:
        """Whether a name stands behind a dot, where words that are keywords elsewhere name fields."""
        text, start = self._text, token.start
        return text[start - 1 : start] == "." and text[start - 2 : start - 1] not in (".", "")

    def _attribute(self, word: str, group: _Group) -> str | None:
        due, group.at_name = group.at_name, group.at_name and word in ("local", "scoped")
        known = None if group.of_aesop else _ATTRIBUTES.get(_plain(word))
        return known or ("attribute" if due and not group.at_name else None)

    def _hashed(self, place: int, token: Token, word: str) -> str | None:
        if self._word(place - 1) != "#" or self._code[place - 1].end != token.start:
            return None
        return _HASHED.get(word)

    def _keyword(self, place: int, word: str) -> str | None:
        rule = _KEYWORDS.get(word)
        if rule == "imports":
            return None if self._code[place].start < self._end_of_header() else rule
        if rule == "scope":
            return "metaprogram" if self._opens_lean(place, word) else rule
        if rule == "notation":
            return "token" if self._declares_odd_token(place) else rule
        return rule

    def _in_context(self, place: int, token: Token, word: str) -> str | None:
        after = self._word(place + 1)
        if word == "set_option":
            return self._option(_plain(after))
        if word == "unsafe":
            return None if self._groups[-1].of_aesop else "unsafe"
        if word == "eval" and after == "%":
            return "run"
        if word == "native" and (self._text[token.start - 1 : token.start] == "+" or after == ":="):
            return "native"
        return _MODIFIERS.get(word) if after in _DECLARED else None

    def _option(self, name: str) -> str | None:
        name = name.removeprefix("weak.")
        if name.partition(".")[0] in _OPTIONS or name in _SINGLE_OPTIONS or _SKIP_KERNEL in name:
            return "option"
        if name in _LIMITS:
            return "limits"
        return None if not name or name.partition(".")[0] in _STYLE else "setting"

    def _trusted(self, word: str) -> str | None:
        if word.endswith(_TRUSTED) or ("«" in word and _plain(word).endswith(_TRUSTED)):
            return "trusted_name"
        return "initialize" if _INITIALIZERS.fullmatch(word) else None

    def _end_of_header(self) -> int:
        if self._header_end is None:
            self._header_end = header_end(self._text)
        return self._header_end

    def _opens_lean(self, place: int, word: str) -> bool:
        """Whether Lean's own namespace is opened or gone on with: there, its functions go by short names."""
        if word not in ("open", "namespace", "export"):
            return False
        place += 1
        while place < len(self._code) and self._code[place].kind is Kind.NAME:
            name = _plain(self._word(place))
            if name in _KEYWORDS or name in ("in", "theorem", "lemma", "example", "set_option"):
                return False
            if name.partition(".")[0] == "Lean":
                return True
            place += 1
        return False

    def _declares_odd_token(self, place: int) -> bool:
        """Whether a token that a notation declares could look like the beginning of a comment or a string."""
        place += 1
        while place < len(self._code) and self._word(place) != "=>":
            token = self._code[place]
            if token.kind is Kind.STRING and _ODD_TOKEN.search(self._word(place)[1:-1]):
                return True
            if token.kind is Kind.NAME and self._word(place) in _KEYWORDS:
                return False
            place += 1
        return False


#: In a token that a notation declares: what begins or ends a comment, a string, a character or a quoted name.
_ODD_TOKEN = re.compile(r"""["'\\«»]|--|/-|-/|[-/]\s*$""")


# What is not code, or is it?

#: Characters that no token ends behind which a comment, a string or a character may seem to begin.
_BEFORE = re.compile(r"[\s\w()\[\]{}⟨⟩,;.·«»!?]")
_OPAQUE = frozenset({Kind.COMMENT, Kind.DOC_COMMENT, Kind.STRING, Kind.CHAR})
_HIDDEN = frozenset(
    {word for word, rule in _KEYWORDS.items() if RULES[rule].action is _REJECT}
    | {"unsafe", *_TRUSTED, _SKIP_KERNEL}
)


def _any_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, words))


#: Words that say something only in their place, which in a comment is most often that of plain English.
_HIDDEN_FORM = re.compile(
    rf"\#[ \t]*(?:{_any_of(word for word, rule in _HASHED.items() if RULES[rule].action is _REJECT)})\b"
    rf"|(?:@\[|\battribute\b)[^\]]{{0,200}}?\b(?:{_any_of(_ATTRIBUTES)})\b"
    r"|\+native\b|\bnative\s*:="
    rf"|\b(?:{_any_of(_OPTIONS)})\.\w"
)


def _hidden(text: str, opaque: Sequence[Token]) -> Iterator[_Found]:
    """Yield words in comments and strings that Lean may read as code, if the text is of that sort."""
    if not any(is_doubtful(text, token) for token in opaque):
        return
    for token in opaque:
        for found in _WORD.finditer(text, token.start, token.end):
            if found.group() in _HIDDEN or _INITIALIZERS.fullmatch(found.group()):
                yield found.start(), found.end(), "hidden"
        for found in _HIDDEN_FORM.finditer(text, token.start, token.end):
            yield found.start(), found.end(), "hidden"


def is_doubtful(text: str, token: Token) -> bool:
    """Whether Lean may see something else than a comment, a string or a character that this token is.

    The character before can belong to one token with this (``//-``, ``⁻¹'"'``). Whether the text in a
    string's braces is code depends on what the string is given to, which only Lean knows.
    """
    if token.kind not in _OPAQUE:
        return False
    if token.kind is Kind.STRING and "{" in text[token.start : token.end]:
        return True
    before = text[token.start - 1 : token.start]
    return bool(before) and not _BEFORE.fullmatch(before)
