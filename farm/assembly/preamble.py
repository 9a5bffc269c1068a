"""Assembly step, preamble: plans which of the model's commands above the target a program keeps.

Such commands are settings, scopes and helper lemmas.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from farm.assembly.answer import Span
from farm.assembly.commands import NOTATIONS, SCOPES, SETTINGS, LeanCommand, commands, namespaces
from farm.assembly.declaration import Declaration, Target
from farm.lean_text.scanner import words

_LONGEST_READ = 1 << 18
_END = re.compile(r"[ \t]*end\b[^\n]*")


class Kept(NamedTuple):
    """A piece of the model's text for the program, and the offset in the statement after which it goes."""

    after: int
    start: int
    end: int


class Plan(NamedTuple):
    """The pieces of the model's text that a program has above the target's own lines.

    `ins` are the spans of ``... in`` that go right before the target's lead-in, which begins at `lead` in the
    statement. `ends` counts the lines of ``end`` at the end of the code that close dropped openers.
    """

    kept: tuple[Kept, ...] = ()
    ins: tuple[Span, ...] = ()
    lead: int = 0
    ends: int = 0


class Plans(NamedTuple):
    """The two plans for the model's text above the target.

    `model` keeps the model's own commands. `farm` keeps only those that cannot change the statement, and is
    None if the plans are equal. `notes` are codes of warnings with their offsets.
    """

    model: Plan = Plan()
    farm: Plan | None = None
    notes: tuple[tuple[str, int], ...] = ()


@lru_cache(maxsize=256)
def _lines_of(header: str) -> frozenset[str]:
    return frozenset(" ".join(line.split()) for line in header.split("\n"))


class _Scope:
    """An open namespace or section, or the text around all of them."""

    def __init__(self, opener: LeanCommand | None, *, is_stated: bool) -> None:
        self.opener, self.is_stated = opener, is_stated
        self.variables: list[LeanCommand] = []


class _CommandReader:
    """Sorts the model's commands into repetitions of the dataset's and others, and tracks open scopes."""

    def __init__(
        self, text: str, stated: Stated, header: str, own_names: frozenset[str], *, is_after_header: bool
    ) -> None:
        self.kept: list[LeanCommand] = []
        self.repeated: dict[int, int] = {}  # from the start of a command to the end of the dataset's
        self.differing: list[int] = []
        self.scopes = [_Scope(None, is_stated=True)]
        self._text, self._stated = text, stated
        self._lines = _lines_of(header)
        self._own_names, self._is_after_header = own_names, is_after_header
        self._met: Counter[str] = Counter()

    def read(self, found: Sequence[LeanCommand]) -> None:
        around = namespaces(found)
        for command in found:
            if command.word == "import":
                continue
            end = self._repeats(command, command.name.removeprefix(around))
            if end is None:
                self.kept.append(command)
            else:
                self.repeated[command.start] = end
            self._follow_scope(command, is_stated=end is not None)

    def _repeats(self, command: LeanCommand, name: str) -> int | None:
        """Return the end of the dataset's command that this one repeats, None without such a command."""
        if command.names:
            if name in self._own_names:
                return 0
            known = self._stated.names.get(command.name) or self._stated.names.get(name)
            if known is None:
                return None
            if words(self._text, command.start, command.end) != known.words:
                self.differing.append(command.keyword)
            return known.end
        if command.word in self._stated.kinds:
            end = self._next_end(command)
            if end is not None:
                return end
        is_line = command.word in SETTINGS and self._line(command) in self._lines
        return 0 if is_line else None

    def _line(self, command: LeanCommand) -> str:
        return " ".join(self._text[command.start : command.end].split())

    def _next_end(self, command: LeanCommand) -> int | None:
        """Return the end of the next command of the dataset with the same tokens, None without one.

        Each opener of the dataset is repeated only once. An ``end`` repeats the dataset's only if it closes
        an opener that repeats the dataset's.
        """
        key = words(self._text, command.start, command.end)
        ends = self._stated.others.get(key, ())
        if self._is_after_header and len(ends) > 1:
            ends = tuple(end for end in ends if end != IN_HEADER) or ends
        if not ends or (command.word == "end" and not self.scopes[-1].is_stated):
            return None
        self._met[key] += 1
        if self._met[key] > len(ends):
            return None if command.opens else ends[-1]
        return ends[self._met[key] - 1]

    def _follow_scope(self, command: LeanCommand, *, is_stated: bool) -> None:
        if command.opens:
            self.scopes.append(_Scope(command, is_stated=is_stated))
        elif command.word == "end" and len(self.scopes) > 1:
            self.scopes.pop()
        elif command.word in SCOPES and not is_stated:
            self.scopes[-1].variables.append(command)

    def own_openers(self, word: str = "") -> list[LeanCommand]:
        """Return the model's openers of scopes that it leaves open: those of one word, or all of them."""
        own = [scope.opener for scope in self.scopes if scope.opener and not scope.is_stated]
        return [opener for opener in own if word in ("", opener.word)]

    def ends(self, dropped: Sequence[LeanCommand]) -> int:
        """Return the count of last ``end`` lines that includes the one of the innermost dropped opener."""
        starts = {command.start for command in dropped}
        openers = enumerate(scope.opener for scope in self.scopes)
        return max((depth for depth, opener in openers if opener and opener.start in starts), default=0)


def read(text: str, start: int, declared: Declaration, dataset: tuple[str, str, Target]) -> Plans:
    """Return the plans for the text from `start` to the model's declaration of the target.

    `dataset` is the header, the statement and its target. The plans keep nothing of a text longer than
    `_LONGEST_READ`; the candidate that is the model's own text still has it.
    """
    header, statement, target = dataset
    if declared.start - start > _LONGEST_READ:
        return Plans()
    began, start = start, after_prefix(text, start, header.strip())
    before = text[start : declared.start].strip()
    if not before or before == statement[: target.start].strip():
        return Plans()
    found, lead = split_lead(text, start, declared.start, declared.name_end)
    stated = read_stated(header, statement, target)
    own_names = frozenset({target.name, declared.name})
    reader = _CommandReader(text, stated, header, own_names, is_after_header=start > began)
    reader.read(found)
    end = lead.start if lead else text.rfind("\n", start, declared.start) + 1
    ins = tuple(span for span in lead.ins if words(text, *span) not in stated.ins) if lead else ()
    return _Planner(text, reader, stated, found, end).preamble(ins)


class _Planner:
    """Makes the plans from the commands that a `_CommandReader` has sorted."""

    def __init__(
        self, text: str, reader: _CommandReader, stated: Stated, found: Sequence[LeanCommand], end: int
    ) -> None:
        self._text, self._reader, self._stated, self._found, self._end = text, reader, stated, found, end
        self._matched = frozenset(reader.repeated.values())

    def preamble(self, ins: tuple[Span, ...]) -> Plans:
        reader = self._reader
        openers, around = reader.own_openers(), reader.own_openers("namespace")
        model = _without(reader.kept, around)
        if all(command.word.startswith("#") for command in model):
            model = []
        reaching = [*openers, *(each for scope in reader.scopes for each in scope.variables)]
        farm = _without(model, reaching)
        if not any(command.declares for command in farm):
            farm = []
        careful = None
        if ins or len(farm) < len(model):
            careful = Plan(self._pieces(farm), ends=reader.ends(openers))
        lost = [start for start, _ in ins] + [command.start for command in _without(model, farm)]
        notes = [("declaration_differs", at) for at in reader.differing]
        notes += [("header_differs", min(lost))] if lost else []
        notes += [("scope_dropped", around[0].start)] if around else []
        plan = Plan(self._pieces(model), ins, self._stated.lead, reader.ends(around))
        return Plans(plan, careful or self._without_notations(model, plan), tuple(notes))

    def _without_notations(self, model: Sequence[LeanCommand], plan: Plan) -> Plan | None:
        """Return the plan without the model's notations, None if it has none."""
        plain = [command for command in model if command.word not in NOTATIONS]
        return None if len(plain) == len(model) else plan._replace(kept=self._pieces(plain))

    def _pieces(self, kept: Sequence[LeanCommand]) -> tuple[Kept, ...]:
        """Return the pieces of text that hold these commands, each with its place in the statement."""
        pieces: list[Kept] = []
        after, goes_on = self._extended(0), False
        wanted = frozenset(command.start for command in kept)
        for number, command in enumerate(self._found):
            if command.start not in wanted:
                goes_on = False
                after = max(after, self._extended(self._reader.repeated.get(command.start, 0)))
                continue
            is_last = number + 1 == len(self._found)
            end = self._last_end(command) if is_last else command.end
            start = pieces.pop().start if goes_on else command.start
            pieces.append(Kept(after, start, end))
            goes_on = True
        return tuple(pieces)

    def _last_end(self, command: LeanCommand) -> int:
        """Return the end of the last command, including comments after it that are not the statement's."""
        last = self._text[command.start : max(command.end, self._end)].rstrip()
        return command.start + len(last.removesuffix(self._stated.comment).rstrip())

    def _extended(self, end: int) -> int:
        """Return the end of the statement's commands after `end`, up to the next that the model repeats."""
        ends, number = self._stated.ends, bisect_right(self._stated.ends, end)
        while number < len(ends) and ends[number] not in self._matched:
            end, number = ends[number], number + 1
        return end


def _without(some: Sequence[LeanCommand], others: Sequence[LeanCommand]) -> list[LeanCommand]:
    unwanted = frozenset(command.start for command in others)
    return [command for command in some if command.start not in unwanted]


def after_prefix(text: str, start: int, header: str) -> int:
    """Return the offset behind the header if the text begins with an exact copy, or else `start`."""
    first = start
    while text.startswith("\n", first):
        first += 1
    after = first + len(header)
    return after if header and text.startswith(header, first) and text.startswith("\n", after) else start


def after_header(text: str, start: int, end: int, header: str) -> int:
    """Return the start of code that declares nothing: after its imports and its copies of header lines."""
    known = _lines_of(header)
    at, end = start, min(end, start + _LONGEST_READ)
    while at < end:
        line_end = text.find("\n", at, end)
        line_end = end if line_end < 0 else line_end
        line = " ".join(text[at:line_end].split())
        if line not in known and not line.startswith("import "):
            return at if line else start
        at = min(line_end + 1, end)
        start = at if line else start
    return start


def without_ends(text: str, start: int, end: int, count: int) -> int:
    """Return the end of the code without its last `count` lines of ``end``."""
    for _ in range(count):
        line = text.rfind("\n", start, end) + 1
        if line <= start or not _END.fullmatch(text, line, end):
            return end
        end = line
        while end > start and text[end - 1].isspace():
            end -= 1
    return end


IN_HEADER = 0
"""The end of a command of the header, as an offset in the statement."""


class Known(NamedTuple):
    """A command of the dataset: its tokens, and the offset of its end in the statement, or `IN_HEADER`."""

    words: str
    end: int


class Stated(NamedTuple):
    """The commands of the dataset's text above the target.

    `lead` is the offset in the statement at which the target's own lead-in begins, and `ins` holds the
    lead-in's ``... in``, as tokens. `names` maps names to the commands that declare them; `others` maps the
    tokens of all other commands to their ends, and `kinds` holds the words of these. `ends` are the offsets
    in the statement at which its commands before the target end, and `comment` is the text between the last
    of them and the target's lead-in.
    """

    lead: int
    ins: frozenset[str]
    names: Mapping[str, Known]
    others: Mapping[str, tuple[int, ...]]
    kinds: frozenset[str]
    ends: tuple[int, ...]
    comment: str


#: The longest text whose commands are cached: contexts have hundreds of lines, and thousands of them differ.
_LONGEST_KEPT = 1 << 14


def read_stated(header: str, statement: str, target: Target) -> Stated:
    """Return the commands that a header and a statement have above this target."""
    is_long = len(header) + len(statement) > _LONGEST_KEPT
    return (_read_stated if is_long else _kept_stated)(header, statement, target)


def _read_stated(header: str, statement: str, target: Target) -> Stated:
    before, lead = split_lead(statement, 0, target.start, target.name_end)
    names: dict[str, Known] = {}
    others: dict[str, tuple[int, ...]] = {}
    kinds: set[str] = set()
    for part, is_statement in ((_read_header(header), False), (_read(statement, before), True)):
        around = namespaces([command for command, _ in part])
        for command, tokens in part:
            end = command.end if is_statement else IN_HEADER
            if command.names:
                names[command.name] = names[command.name.removeprefix(around)] = Known(tokens, end)
            else:
                others[tokens] = (*others.get(tokens, ()), end)
                kinds.add(command.word)
    ins = frozenset(words(statement, *span) for span in lead.ins) if lead else frozenset()
    start = lead.start if lead else target.start
    ends = tuple(command.end for command in before)
    comment = statement[max(ends, default=0) : start].strip()
    return Stated(start, ins, names, others, frozenset(kinds), ends, comment)


_kept_stated = lru_cache(maxsize=1024)(_read_stated)


@lru_cache(maxsize=256)
def _read_header(header: str) -> tuple[tuple[LeanCommand, str], ...]:
    return _read(header, commands(header, 0, len(header)))


def _read(text: str, found: Iterable[LeanCommand]) -> tuple[tuple[LeanCommand, str], ...]:
    """Return commands with their tokens, without imports."""
    return tuple((each, words(text, each.start, each.end)) for each in found if each.word != "import")


def split_lead(
    text: str, start: int, keyword: int, name_end: int
) -> tuple[tuple[LeanCommand, ...], LeanCommand | None]:
    """Return the commands before the declaration whose keyword stands at `keyword`, and its own command.

    The own command is None for a declaration that does not begin its line.
    """
    found = tuple(commands(text, start, name_end))
    if found and found[-1].keyword == keyword:
        return found[:-1], found[-1]
    return tuple(command for command in found if command.end <= keyword), None
