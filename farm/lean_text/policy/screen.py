"""The action for each rule, and the part of a program that is examined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from farm.errors import UsageError
from farm.lean_text.header import header_end
from farm.lean_text.policy.reading import RuleReader
from farm.lean_text.policy.rules import RULES, Action, Hit
from farm.lean_text.policy.words import LONGEST, is_suspect, plain_imports_end
from farm.lean_text.positions import line_and_column
from farm.lean_text.scanner import Token, TokenKind, tokens

#: At most this many hits of one rule are returned.
MOST_HITS = 20
#: Longer texts are not read, which is a hit of the rule ``not_read``: reading one would hold others up.
LONGEST_READ = 1 << 17


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """The action for each rule; the hits of unnamed rules are reported."""

    actions: Mapping[str, Action] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise UsageError for a rule that there is not."""
        if unknown := sorted(set(self.actions) - set(RULES)):
            raise UsageError(f"no rule is called {unknown[0]!r}; choose one of {', '.join(RULES)}")

    @classmethod
    def parse(cls, settings: Sequence[str]) -> Policy:
        """Return the policy of settings such as ``limits=off``; raises UsageError."""
        actions = {}
        for setting in settings:
            rule, _, action = setting.partition("=")
            if action not in set(Action):
                raise UsageError(f"{setting!r}: write RULE=ACTION with one of {', '.join(Action)}")
            actions[rule.strip()] = Action(action)
        return cls(actions=actions)

    def action(self, rule: str) -> Action:
        """Return the action for a rule."""
        return self.actions.get(rule, Action.REPORT)

    def hits(self, text: str, submitted: Sequence[tuple[int, int]] | None = None) -> tuple[Hit, ...]:
        """Return the hits in a program, in order of place; rules that are off have none.

        Of each rule the first `MOST_HITS` are returned. `submitted`: the spans (start, end) that are the
        submission's own, in order; all of it by default.
        """
        own = [(0, len(text))] if submitted is None else list(submitted)
        if len(text) > LONGEST_READ:
            return self._not_read(text, own)
        begun = plain_imports_end(text)
        looked_at = ((max(begun, start - LONGEST), end + LONGEST) for start, end in own)
        if not any(is_suspect(text[start:end]) for start, end in looked_at):
            return ()
        found = sorted(set(RuleReader(text, _code_of(text)).hits()))
        left = Counter(dict.fromkeys(RULES, MOST_HITS))
        kept: list[Hit] = []
        for start, end, rule in found:
            if self.action(rule) is not Action.OFF and left[rule] and _overlaps(own, start, end):
                left[rule] -= 1
                kept.append(_hit(text, start, end, rule, self.action(rule)))
        return tuple(kept)

    def _not_read(self, text: str, own: Sequence[tuple[int, int]]) -> tuple[Hit, ...]:
        action = self.action("not_read")
        if action is Action.OFF or not own:
            return ()
        start, end = own[0]
        return (_hit(text, start, end, "not_read", action),)


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """A policy together with the submission's own part of a program: spans (start, end), None for all."""

    policy: Policy
    submitted: tuple[tuple[int, int], ...] | None = None

    def look(self, program: str, *, header: str) -> tuple[tuple[Hit, ...], Hit | None]:
        """Return the policy's hits in the program, and the hit that rejects it, if one does.

        `header` is one that programs of the environment may begin with. Under ``prelude`` a submission that
        brings its own header has to import at least as much: otherwise it could declare the foundations
        itself.
        """
        hits = self.policy.hits(program, self.submitted)
        own = self.submitted is None or any(start == 0 for start, _ in self.submitted)
        action = self.policy.action("imports")
        own = own and len(program) <= LONGEST_READ
        if own and action is not Action.OFF and _is_world_of_its_own(program, header):
            hits = (_hit(program, 0, max(1, header_end(program)), "imports", action), *hits)
        return hits, refusing(hits)


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
        if token.kind is TokenKind.NAME
    }


def refusing(hits: Sequence[Hit]) -> Hit | None:
    """Return the first hit for which a submission is rejected."""
    return next((hit for hit in hits if hit.action is Action.REJECT), None)


def _overlaps(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    return any(start < span_end and span_start < end for span_start, span_end in spans)


def _hit(text: str, start: int, end: int, rule: str, action: Action) -> Hit:
    line, column = line_and_column(text, start)
    return Hit(
        rule=rule,
        action=action,
        start=start,
        end=end,
        line=line,
        column=column,
        text=text[start : min(end, start + 80)],
    )


#: Tokens without code; a string may have code in its holes.
_OPAQUE = frozenset({TokenKind.COMMENT, TokenKind.DOC_COMMENT, TokenKind.CHAR})


def _code_of(text: str) -> list[Token]:
    """Return the tokens that are code, strings included."""
    return [token for token in tokens(text) if token.kind not in _OPAQUE]


#: The policy of what is no submission, such as a dataset's own text or a user's own file.
NO_POLICY = Policy(actions=dict.fromkeys(RULES, Action.OFF))
