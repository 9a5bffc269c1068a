"""Audit step, the result: the findings against a module, and the extent of the audit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from farm_workers.audit.answers import Given
from farm_workers.audit.names import dotted, shown
from farm_workers.audit.olean import MalformedOlean, Name
from farm_workers.audit.sentences import Sentence
from farm_workers.audit.standing import Standings

#: The most findings that are listed; the others are counted.
MOST_FINDINGS = 100
#: The most names of a kind in a result: a hostile module may have any number.
MOST_NAMES = 500
#: The trusted parts of a proof besides the kernel, with the words of `farm.judging.audit`.
COMPILER, ADMITTED = "the compiler", "a sorry of the dataset"
ANSWERED = "an answer that was not compared"
LIBRARY = "a sorry of the library"


class Word(StrEnum):
    """The kinds of findings, for machines."""

    UNSUPPORTED = "unsupported"
    TOOLCHAIN_DIFFERS = "toolchain_differs"
    IMPORTS_DIFFER = "imports_differ"
    BAD_CHALLENGE = "bad_challenge"
    TARGET_MISSING = "target_missing"
    NOT_A_THEOREM = "not_a_theorem"
    UNIVERSE_MISMATCH = "universe_mismatch"
    STATEMENT_MISMATCH = "statement_mismatch"
    PREREQUISITE_DIFFERS = "prerequisite_differs"
    ANSWER_MISSING = "answer_missing"
    ANSWER_SHAPE = "answer_shape"
    ANSWER_DIFFERS = "answer_differs"
    ANSWER_UNDECIDED = "answer_undecided"
    NO_THEOREM = "no_theorem"
    FORBIDDEN = "forbidden"
    HAS_SORRY = "has_sorry"
    NATIVE_DECIDE = "native_decide"
    AXIOM = "axiom"
    UNSAFE = "unsafe"
    PARTIAL = "partial"
    FORGOTTEN = "forgotten"
    DANGLING = "dangling"
    OPEN_TERM = "open_term"
    REDECLARED = "redeclared"
    KERNEL_PRIMITIVE = "kernel_primitive"
    KERNEL = "kernel"
    KERNEL_LIMIT = "kernel_limit"
    KERNEL_TIME = "kernel_time"
    KERNEL_MEMORY = "kernel_memory"
    MALFORMED_OLEAN = "malformed_olean"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModuleFinding:
    """A finding against a module: a word, its constant if any, and a sentence."""

    word: Word
    name: Name | None
    sentence: str

    def facts(self) -> dict[str, str | None]:
        """Return the finding as a report has it."""
        return {
            "word": self.word.value,
            "name": None if self.name is None else shown(self.name),
            "sentence": self.sentence,
        }


def found(word: Word, name: Name | None, sentence: str) -> ModuleFinding:
    """Return a finding; the first ``{}`` in its sentence stands for the constant's name, if there is one."""
    return ModuleFinding(
        word=word, name=name, sentence=sentence if name is None else sentence.replace("{}", shown(name), 1)
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Stated:
    """The facts of a statement alone.

    `axioms` and `sorries` are those that its type reaches, `constants` those of the module among what it
    reaches, and `left_open` other theorems that the module leaves open.
    """

    type_sha256: str
    axioms: tuple[Name, ...] = ()
    sorries: tuple[Name, ...] = ()
    constants: tuple[Name, ...] = ()
    left_open: tuple[Name, ...] = ()

    def facts(self) -> dict[str, object]:
        """Return as JSON the fields of `farm.judging.audit.Stated` that the module decides."""
        return {
            "type_sha256": self.type_sha256,
            "axioms": _all_shown(self.axioms[:MOST_NAMES]),
            "sorries": _all_shown(self.sorries[:MOST_NAMES]),
            "constants": _all_shown(self.constants[:MOST_NAMES]),
            "left_open": _all_shown(self.left_open[:MOST_FINDINGS]),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """The findings of an audit, and its extent.

    `axioms` are all that the target rests on, allowed or not. `believed` are those of them that state results
    of Lean's compiled code: the audit allows them, and its caller evaluates the terms again. `reached` counts
    the module's constants that the target rests on; `compared` are those of them that its statement rests on,
    the target first. `rests_on_sorry_of` are the admitted constants that the proof rests on and the statement
    does not mention. `permitted` are the constants with a sorry that the task permits, and `standings` those
    of parts and declarations. `library_sorries` are the imported constants with a sorry that the proof rests
    on. `answers` are the definitions that the challenge leaves open and the module
    gives; `believes_answer` means that nothing was demanded of them. `not_checked` has a sentence for each
    property that could not be checked because the facts for it were missing. `stated` are the facts of a
    statement that was examined alone. `sentence` is the statement of an accepted proof, for comparisons.
    """

    target: Name | None
    findings: tuple[ModuleFinding, ...]
    axioms: tuple[Name, ...] = ()
    believed: tuple[Name, ...] = ()
    reached: int = 0
    compared: tuple[Name, ...] = ()
    not_checked: tuple[str, ...] = ()
    lean_version: str = ""
    git_hash: str = ""
    imports: tuple[Name, ...] = ()
    constants: int = 0
    extensions: tuple[tuple[Name, int], ...] = ()
    influences: tuple[tuple[Name, str, int], ...] = ()
    statement_has_sorry: bool = False
    rests_on_sorry_of: tuple[Name, ...] = ()
    permitted: tuple[Name, ...] = ()
    library_sorries: tuple[Name, ...] = ()
    standings: Standings | None = None
    trusts_compiler: bool = False
    answers: tuple[Given, ...] = ()
    believes_answer: bool = False
    stated: Stated | None = None
    sentence: Sentence | None = None

    @property
    def accepted(self) -> bool:
        """Whether there is no finding."""
        return not self.findings

    def facts(self) -> dict[str, object]:
        """Return as JSON the fields of `farm.judging.audit.Audit` that the module decides."""
        return {
            "accepted": self.accepted,
            "target": None if self.target is None else dotted(self.target),
            "findings": [each.facts() for each in self.findings[:MOST_FINDINGS]],
            "findings_left_off": max(0, len(self.findings) - MOST_FINDINGS),
            "axioms": _all_shown(self.axioms[:MOST_NAMES]),
            "reached": self.reached,
            "compared": _all_shown(self.compared[:MOST_FINDINGS]),
            "compared_constants": len(self.compared),
            "not_checked": list(self.not_checked),
            "lean_version": self.lean_version,
            "git_hash": self.git_hash,
            "imports": _all_shown(self.imports[:MOST_NAMES]),
            "constants": self.constants,
            "extensions": {shown(name): count for name, count in self.extensions[:MOST_NAMES]},
            "influences": {
                shown(name): {"changes": what, "entries": count}
                for name, what, count in self.influences[:MOST_NAMES]
            },
            "statement_has_sorry": self.statement_has_sorry,
            "rests_on_sorry_of": _all_shown(self.rests_on_sorry_of[:MOST_NAMES]),
            "trusts": [
                *([COMPILER] if self.trusts_compiler else []),
                *([ADMITTED] if self.rests_on_sorry_of else []),
                *([LIBRARY] if self.library_sorries else []),
                *([ANSWERED] if self.believes_answer else []),
            ],
            "permitted": _all_shown(self.permitted[:MOST_NAMES]),
            "library_sorries": _all_shown(self.library_sorries[:MOST_NAMES]),
            **({} if self.standings is None else self.standings.facts()),
            "answers": [each.facts() for each in self.answers[:MOST_FINDINGS]],
            "stated": None if self.stated is None else self.stated.facts(),
            "sentence": None if self.sentence is None else self.sentence.facts(),
        }


def malformed(error: MalformedOlean) -> Findings:
    """Return what is found against a file that Lean did not write."""
    sentence = f"The compiled module is not what Lean writes: {error.what} (at byte {error.offset})."
    return Findings(target=None, findings=(found(Word.MALFORMED_OLEAN, None, sentence),))


def out_of_memory() -> Findings:
    """Return the finding of an audit or a seal that lacks memory: a limit, no fault of the module's form."""
    sentence = "The memory that the line allows does not suffice to read its compiled module."
    return Findings(target=None, findings=(found(Word.KERNEL_MEMORY, None, sentence),))


def _all_shown(names: Iterable[Name]) -> list[str]:
    return [shown(name) for name in names]
