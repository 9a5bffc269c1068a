"""Verdict step, audit: the findings against a compiled module, or against another system's proof."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

#: The audit compared the proof with the line's statement; or it did not, as for a line without one.
COMPARED, UNCHECKED = "compared", "unchecked"
#: A proof can rest on these besides the kernel.
COMPILER, ADMITTED = "the compiler", "a sorry of the dataset"
#: A proof that gives an answer of which the dataset demands nothing may restate the question.
ANSWERED = "an answer that was not compared"
#: Where Lean cannot be forked, a checker maps the module that the submission's process wrote.
UNREBUILT = "a module that the farm did not rebuild"
#: A proof can rest on a sorry of an imported module, where the environment's table permits that.
LIBRARY = "a sorry of the library"
#: The finding against a module that is not in Lean's format, and the finding against the statement itself.
MALFORMED, BAD_CHALLENGE = "malformed_olean", "bad_challenge"
#: The verdict on a part, or a theorem, that is proved.
PART_PROVED = "proved"
#: The axiom of choice, and the most axioms that an audit lists.
CHOICE, _MOST_AXIOMS = "Classical.choice", 500
#: The finding against a proof that uses a tactic or constant that its task forbids.
FORBIDDEN = "forbidden"
#: The findings against a proof of another statement than the challenge's.
MISMATCHES = frozenset(
    {"statement_mismatch", "universe_mismatch", "target_missing", "not_a_theorem", "prerequisite_differs"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One finding against a proof: a word for machines, a sentence, and the constant if there is one."""

    word: str
    sentence: str
    name: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay:
    """The answer of a kernel: whether it accepts, and its output.

    `checker` names another kernel than the environment's own. `constants` counts what the kernel checked.
    """

    accepted: bool
    said: str = ""
    checker: str | None = None
    constants: int | None = None

    @property
    def words(self) -> str:
        """The answer in words."""
        worth = "accepted" if self.accepted else "rejected"
        return f"{worth} by {self.checker or 'the kernel'}{': ' * bool(self.said)}{self.said}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A definition that the statement leaves open and the submission gives: its value and its type.

    Both are texts that Lean prints, None where nothing could print them. With `text_by_submission` Lean does
    not read the text below the statement as the value, because declarations or instances of the submission
    give it its meaning. Then it is the value in full, without any notation.
    """

    name: str
    text: str | None = None
    type: str | None = None
    text_by_submission: bool = False

    @property
    def words(self) -> str:
        """The answer in one line, as a definition."""
        whose = " (text by the submission's own declarations)" if self.text_by_submission else ""
        return " ".join(f"{self.name} : {self.type or '?'} := {self.text or '?'}{whose}".split())


@dataclass(frozen=True, kw_only=True, slots=True)
class Influence:
    """An extension of Lean by which a module changes how later text is read, and how often it does."""

    changes: str
    entries: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A theorem that the statement leaves open, and its own verdict.

    `verdict` is a word of `farm_workers.audit.standing`; `by` is the theorem that is judged for it, if that
    has another name; `rests_on` are the open constants that it rests on.
    """

    name: str
    verdict: str
    by: str | None = None
    rests_on: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The name with the verdict."""
        return f"{self.name}: {self.verdict}{_below(self.rests_on)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Declaration:
    """A declaration of the module, and its own verdict.

    `axioms` and open constants (`rests_on`) are those that it rests on. The place is the module's own claim:
    line, from 1, and column, from 0, of the program.
    """

    name: str
    kind: str
    verdict: str
    axioms: tuple[str, ...] = ()
    rests_on: tuple[str, ...] = ()
    line: int | None = None
    column: int | None = None

    @property
    def words(self) -> str:
        """The name with the verdict."""
        return f"{self.name}: {self.verdict}{_below(self.rests_on)}"


def _below(names: tuple[str, ...]) -> str:
    return f" (it rests on {', '.join(names)})" if names else ""


_Standing = TypeVar("_Standing", Part, Declaration)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stated:
    """The facts of a statement alone.

    `type_sha256` is the digest of its type (docs/use/tasks.md). `axioms` and `sorries` are those that its
    type reaches, whatever way; `constants` are those of the module that it reaches, the first 500;
    `left_open` are other theorems that the text leaves open. `closed_by` is the first tactic that proves it
    alone, `negation_closed_by` the first that proves its negation; `tried` are those that had enough time for
    an answer about both, and `cut_short` says that some had not.
    """

    type_sha256: str
    axioms: tuple[str, ...] = ()
    sorries: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    left_open: tuple[str, ...] = ()
    closed_by: str | None = None
    negation_closed_by: str | None = None
    tried: tuple[str, ...] = ()
    cut_short: bool = False

    @property
    def sentence(self) -> str:
        """The facts in words."""
        said = [
            f"it rests on {what} {', '.join(names[:3])}{' and more' if len(names) > 3 else ''}"
            for what, names in (("the axioms", self.axioms), ("the sorry of", self.sorries))
            if names
        ]
        said += [f"{self.closed_by} proves it"] if self.closed_by else []
        said += [f"{self.negation_closed_by} proves its negation"] if self.negation_closed_by else []
        return "; ".join(["The statement compiles", *said]) + "."


@dataclass(frozen=True, kw_only=True, slots=True)
class Sentence:
    """What a proved theorem states, and by which axioms; made by `farm_workers.audit.sentences`.

    Two theorems with one `key` state the same, and one of them the contrary if only one is `negated`. `uses`
    are the axioms that the proof rests on, `allows` those beside Lean's own three that it might have used.
    """

    key: str
    negated: bool = False
    uses: tuple[str, ...] = ()
    allows: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """An audit's findings against a proof, the facts that it read, and the kernels' answers.

    `farm_workers.audit` makes it from a compiled module, in a process that imports nothing of this package
    and prints the fields as JSON; `docs/why/trust.md` explains them.

    - `statement` is `COMPARED` with a challenge, `UNCHECKED` without one, None if the audit compared nothing.
    - `findings` are the first findings; `findings_left_off` counts the others.
    - `axioms` are all axioms that the target rests on; `reached` counts the constants of the module that it
      rests on; `compared` names the first of the `compared_constants` that its statement rests on.
    - `not_checked` has a sentence for each fact that the audit could not check.
    - `statement_has_sorry`: header or statement contain a sorry of their own; `rests_on_sorry_of` are the
      admitted constants of the dataset that the proof rests on.
    - `answers` are the definitions that the statement leaves open and the submission gives.
    - `permitted` are the constants with a sorry that the line permits: the module is no whole proof.
    - `library_sorries` are the imported constants with a sorry that the proof rests on.
    - `parts` and `declarations` are there if the line asks about them; `declarations_left_off` counts others.
    - `trusts`: the proof rests on these besides the kernel, such as `COMPILER`, `ADMITTED` or `ANSWERED`.
    - `module_sha256` is the digest of the module that Lean wrote, and `sealed_sha256` that of the module that
      the kernel replayed, in hex.
    - `replay` is the kernel's answer, None if the kernel did not run. If Lean cannot be forked, it is the
      answer of the environment's first checker. `second` is the answer of the next kernel, and `further` are
      those of the kernels after it; none is asked after one that rejects.
    - `stated` are the facts of a statement that was examined alone.
    - `sentence` is what the theorem states, None if nothing can be compared with it. No verdict is told it.
    """

    accepted: bool
    statement: str | None = None
    target: str | None = None
    findings: tuple[Finding, ...] = ()
    findings_left_off: int = 0
    axioms: tuple[str, ...] = ()
    reached: int = 0
    compared: tuple[str, ...] = ()
    compared_constants: int = 0
    not_checked: tuple[str, ...] = ()
    lean_version: str = ""
    git_hash: str = ""
    imports: tuple[str, ...] = ()
    constants: int = 0
    extensions: dict[str, int] = field(default_factory=dict)
    influences: dict[str, Influence] = field(default_factory=dict)
    statement_has_sorry: bool = False
    rests_on_sorry_of: tuple[str, ...] = ()
    permitted: tuple[str, ...] = ()
    library_sorries: tuple[str, ...] = ()
    parts: tuple[Part, ...] | None = None
    declarations: tuple[Declaration, ...] | None = None
    declarations_left_off: int = 0
    answers: tuple[Answer, ...] = ()
    trusts: tuple[str, ...] = ()
    module_sha256: str | None = None
    sealed_sha256: str | None = None
    replay: Replay | None = None
    second: Replay | None = None
    further: tuple[Replay, ...] = ()
    stated: Stated | None = None
    sentence: Sentence | None = None

    @property
    def others(self) -> tuple[Replay, ...]:
        """The answers of all kernels after the first."""
        return () if self.second is None else (self.second, *self.further)

    @property
    def uses_choice(self) -> bool | None:
        """Whether an accepted proof in Lean rests on the axiom of choice; None if that is not known."""
        if not self.accepted or not self.lean_version:
            return None
        return CHOICE in self.axioms or (None if len(self.axioms) >= _MOST_AXIOMS else False)

    @property
    def of_challenge(self) -> Finding | None:
        """The first finding against the statement itself."""
        return self.first(BAD_CHALLENGE)

    @property
    def decisive(self) -> Finding | None:
        """The finding that the verdict names: one against the statement itself, else the first."""
        return self.of_challenge or next(iter(self.findings), None)

    @property
    def is_of_another_statement(self) -> bool:
        """Whether the proof is rejected because it proves another statement than the challenge's."""
        return self.decisive is not None and self.decisive.word in MISMATCHES

    def first(self, word: str) -> Finding | None:
        """Return the first finding of this word."""
        return next((each for each in self.findings if each.word == word), None)

    @property
    def parts_proved(self) -> tuple[int, int]:
        """The number of the statement's parts that are proved, and that of all."""
        parts = self.parts or ()
        return sum(each.verdict == PART_PROVED for each in parts), len(parts)

    @property
    def share_proved(self) -> float:
        """The share of the statement's parts that are proved, from 0.0 to 1.0; 0.0 without parts."""
        proved, parts = self.parts_proved
        return proved / parts if parts else 0.0

    @property
    def unchecked(self) -> Audit:
        """The audit of a module that a kernel has rejected: nothing of it is proved."""

        def doubted(each: _Standing) -> _Standing:
            return replace(each, verdict="unchecked") if each.verdict in (PART_PROVED, "defined") else each

        return replace(
            self,
            parts=self.parts and tuple(map(doubted, self.parts)),
            declarations=self.declarations and tuple(map(doubted, self.declarations)),
        )

    @property
    def words(self) -> Iterator[str]:
        """A sentence for each finding, each unchecked fact, the audit's result and each kernel's answer."""
        yield from (f"audit: {each.word}: {each.sentence}" for each in self.findings)
        yield from (f"not checked: {sentence}" for sentence in self.not_checked)
        worth = "accepted" if self.accepted else "rejected"
        axioms = ", ".join(self.axioms) or "none"
        yield f"audit: {worth} {self.target or 'the module'}; axioms: {axioms}"
        if self.rests_on_sorry_of:
            yield f"rests on the sorry of: {', '.join(self.rests_on_sorry_of)}"
        if self.library_sorries:
            yield f"sorries of the library: {', '.join(self.library_sorries)}"
        if self.permitted:
            yield f"permitted sorries: {', '.join(self.permitted)}"
        yield from (f"part {each.words}" for each in self.parts or ())
        yield from (f"{each.kind} {each.words}" for each in self.declarations or ())
        yield from (f"answer: {each.words}" for each in self.answers)
        yield from (f"replay: {each.words}" for each in (self.replay, *self.others) if each is not None)


def against(word: str, sentence: str, name: str | None = None) -> Audit:
    """Return an audit with one finding and no other facts."""
    return Audit(accepted=False, findings=(Finding(word=word, sentence=sentence, name=name),))
