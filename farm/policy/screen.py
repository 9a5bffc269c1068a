"""What is done about each rule, and what of a program is looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from farm.errors import UsageError
from farm.header import header_end
from farm.policy.hidden import OPAQUE, hidden
from farm.policy.reading import Reader
from farm.policy.rules import RULES, Action
from farm.policy.words import LONGEST, SKIP_KERNEL, is_suspect, plain_imports_end
from farm.scanner import Kind, Token, tokens


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


#: So many hits of one rule are told.
MOST_HITS = 20


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

    @property
    def is_weakened(self) -> bool:
        """Whether a rule that rejects by default does not here; `native`, which is a switch, apart."""
        changed = {rule for rule, action in self.actions.items() if action is not Action.REJECT}
        return any(RULES[rule].action is Action.REJECT for rule in changed - {"native"})

    def hits(self, text: str, submitted: Sequence[tuple[int, int]] | None = None) -> tuple[Hit, ...]:
        """Return what the rules find in a program, in order of place; rules that are off find nothing.

        Of each rule the first `MOST_HITS` are returned.
        `submitted`: the spans (start, end) that are the submission's own, in order; all of it by default.
        """
        own = [(0, len(text))] if submitted is None else list(submitted)
        begun = plain_imports_end(text)
        looked_at = ((max(begun, start - LONGEST), end + LONGEST) for start, end in own)
        if not any(is_suspect(text[start:end]) for start, end in looked_at):
            return ()
        code, opaque = _code_of(text)
        found = sorted({*Reader(text, code).hits(), *hidden(text, opaque)})
        left = Counter(dict.fromkeys(RULES, MOST_HITS))
        kept: list[Hit] = []
        for start, end, rule in found:
            if self.action(rule) is not Action.OFF and left[rule] and _overlaps(own, start, end):
                left[rule] -= 1
                kept.append(_hit(text, start, end, rule, self.action(rule)))
        return tuple(kept)


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

    def past_kernel(self, program: str) -> Hit | None:
        """Return where the submission names what takes constants past the kernel, in code or anywhere else.

        Nothing but a replay finds such a constant. So it is not left to any reading of the text whether the
        place is code: what stands there has to be replayed, or rejected.
        """
        own = [(0, len(program))] if self.submitted is None else self.submitted
        for start, end in own:
            at = program.find(SKIP_KERNEL, max(0, start - LONGEST), end + LONGEST)
            if at >= 0:
                action = self.policy.action("hidden")
                return _hit(program, at, at + len(SKIP_KERNEL), "hidden", action)
        return None


def _is_world_of_its_own(program: str, header: str) -> bool:
    begins_alike = header.startswith("prelude") and program.startswith(f"{header.rstrip()}\n")
    if begins_alike or "prelude" not in program:  # nearly always: to read both takes long
        return False
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


def _code_of(text: str) -> tuple[list[Token], list[Token]]:
    """Return the tokens that are code, strings included, and those that are not, strings included."""
    code: list[Token] = []
    opaque: list[Token] = []
    for token in tokens(text):
        if token.kind in OPAQUE:
            opaque.append(token)
        if token.kind not in OPAQUE or token.kind is Kind.STRING:
            code.append(token)
    return code, opaque
