"""Explanations of results: for a person, and for the next turn of the model that wrote the answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

#: The most characters of a marked answer and of all goals beside it.
MOST_CHARACTERS, MOST_GOAL_CHARACTERS = 12_000, 4_000
#: The lines that are shown before and behind a marked one when the answer is too long to be shown whole.
_NEAR = 3
_MOST_MARKS, _MARK_CHARACTERS = 20, 600
#: The characters of a line that are shown.
_LONGEST_LINE = 1000

MEANINGS: Mapping[str | None, str] = {
    "proved": "The answer is a proof.",
    "disproved": "The statement is false: the answer proves its negation.",
    "partial": "The answer rests on sorries that the task permits, so it is no proof yet.",
    "stated": "The statement compiles. Nothing was proved.",
    "rejected": "The answer is no proof. Correct what the detail and the messages name.",
    "timeout": "Lean did not finish in time, so this is no proof. Make it cheaper, or give it more time.",
    "memory_limit": "Lean ran out of memory, so this is no proof. Make it smaller.",
    "judge_error": "The farm failed. This says nothing about the answer; ask again.",
    None: "The farm has no verdict. This says nothing about the answer; ask again.",
}
#: Explanations of reasons that replace those of the verdict: a repeated check would have the same end.
REASONS: Mapping[str | None, str] = {
    "bad_challenge": "What you gave as formal_statement, header or context is at fault, so no answer can be "
    "judged: it is not in the language of the environment, such as Lean 4, or has an error. Correct that, or "
    "report it to the person who gave you the problem.",
    "answer_undecided": "Nothing decides whether the answer is the expected one. Do not repeat the check; "
    "report it to the person who gave you the problem.",
    "kernels_disagree": "Two kernels disagree about the answer. Report it to the operator of the farm, and "
    "do not repeat the check.",
    "contradiction": "The statement is proved and disproved: its header or context is inconsistent. Report "
    "it to the person who gave you the problem, and do not repeat the check.",
}
#: A hint for each kind of error, and for reasons that no message of Lean explains.
HINTS: Mapping[str | None, str] = {
    "syntax": "Lean cannot read the text at the mark: look for a missing word, bracket or line break.",
    "unknown_tactic": "No tactic of this name is known here: an import is missing, or the name is misspelt.",
    "unknown_identifier": "Nothing has this name here: it is misspelt, renamed, or not imported.",
    "invalid_field": "The term before the dot has no such field: look at its type.",
    "type_mismatch": "The term has another type than is needed there: compare the two types.",
    "function_expected": "Something that is no function is given an argument: look for a missing operator.",
    "missing_instance": "Lean finds no instance of this class: check the types, or provide the instance.",
    "not_inferred": "Lean cannot infer a part that was left out: write the argument or the type.",
    "unsolved_goals": "The tactics end before the goal is closed: prove the goals that are left.",
    "no_goals": "The goal was closed before this tactic: remove what follows.",
    "tactic_failed": "The tactic does not apply to the goal at the mark: look at the goal, and try another.",
    "termination": "Lean cannot see that the recursion ends: recurse on a smaller part of an argument.",
    "recursion_depth": "The term or the search is too deep: split the proof into steps.",
    "heartbeats": "One step is too expensive: split it, or give simp and nlinarith fewer lemmas.",
    "already_declared": "The name is taken: use another one, and do not repeat the statement's.",
    "has_sorry": "A part is left open: replace every sorry and admit by a proof.",
    "statement_mismatch": "The theorem is another one: repeat the given statement word by word.",
    "answer_missing": "The statement leaves a definition open: replace its sorry by the answer.",
    "answer_shape": "The answer is not in the form that is asked for: write it out, such as a number.",
    "answer_differs": "The answer is not the expected one: find another.",
    "axiom": "The proof rests on an axiom that is not allowed: prove that part.",
    "forbidden": "The proof uses a tactic or a theorem that is forbidden here: find another way.",
    "native_decide": "Compiled code is not trusted here: use decide, or a proof.",
}
#: What a result says of a verdict whose contrary somebody else proved.
CONTESTED = (
    "Somebody else proved the contrary in the same environment: the header or context is inconsistent, or "
    "the farm is wrong. The operators have been told."
)
_LACKS = {
    "audit": "no kernel checked it again; only the compiled module was audited",
    "lean": "only Lean's own messages were read",
    "unchecked": "it was compared with no statement, so it may prove anything at all",
    "sorry": "it rests on something the dataset leaves unproved, such as an earlier part of the statement",
    "answer": "it gives an answer of which nothing is demanded, so the answer may repeat the question",
    "native": "it rests on compiled code besides the kernel",
    "partial": "it rests on sorries that the task permits",
    "forgeable": "nothing walled it in on the machine that judged it, so it could have forged its verdict",
    "unrebuilt": "Lean could not be forked there, so a checker read the bytes that the program left",
    "disproof": "it proves the negation, which is worth something only to those who accept a disproof",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstError:
    """The first text that Lean names as wrong, such as a tactic, and the goal before it.

    `line`, from 1, and `column`, from 0, are its place in the whole program. `goal` is None where the check
    has no goals, or none at this place.
    """

    line: int
    column: int
    text: str
    goal: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Feedback:
    """What a model is told about its answer: the text with errors marked, and a prompt to correct it.

    These two have the names of NeMo-Gym's server `math_formal_lean`. `first_error` is None if Lean reported
    no error with a place.
    """

    error_feedback: str
    correction_prompt: str
    first_error: FirstError | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """An error to mark in a program: its line, from 1, its column, from 0, and Lean's words."""

    line: int
    column: int
    text: str


def correction_prompt(detail: str, shown: str, goals: Sequence[str], hint: str) -> str:
    """Return the prompt for the next turn of the model that wrote the answer, `shown` with marks."""
    parts = [
        f"Your proof was not accepted: {detail}",
        f"Here it is, with Lean's errors under the lines that they are about:\n\n```lean4\n{shown}\n```",
        *goals,
        *([f"Hint: {hint}"] if hint else []),
        "Write the whole corrected proof, without sorry, in one ```lean4 block.",
    ]
    return "\n\n".join(parts)


def meaning(verdict: str | None, reason: str | None) -> str:
    """Return the meaning of a verdict, or of a reason that needs a sentence of its own."""
    return REASONS.get(reason) or MEANINGS[verdict]


def hint(error_kind: str | None, reason: str | None) -> str:
    """Return a hint for the kind of an error, or for a reason; "" for others."""
    return HINTS.get(error_kind) or HINTS.get(reason) or ""


def lack(word: str) -> str:
    """Return what a weakness of a proof means."""
    return f"It is weaker than a full proof: {_LACKS.get(word, word)}."


def marked(program: str, errors: Sequence[Mark], first: int = 1) -> str:
    """Return a program from its line `first` on, with errors as comments below their lines.

    Of a long program only the lines near errors are shown, and of a long line its beginning.
    """
    lines = program.split("\n")
    marks: dict[int, list[str]] = {}
    for each in errors[:_MOST_MARKS]:
        if 0 < each.line <= len(lines):
            marks.setdefault(each.line, []).append(_comment(each))
    begins = min([first, *marks])
    numbers: Iterable[int] = range(begins, len(lines) + 1)
    if sum(len(text) + 1 for text in lines[begins - 1 :]) > MOST_CHARACTERS:
        numbers = _near(marks, begins, len(lines))
    shown, before, left = list[str](), first - 1, MOST_CHARACTERS
    for number in numbers:
        if number > before + 1:
            shown.append("-- ...")
        text = _cut(lines[number - 1])
        shown += [text, *marks.get(number, ())]
        before, left = number, left - len(text) - 1
        if left < 0:
            break
    if before < len(lines):
        shown.append("-- ...")
    return "\n".join(shown)[: 2 * MOST_CHARACTERS].rstrip("\n")


def cut_out(program: str, start: tuple[int, int], end: tuple[int, int] | None) -> str:
    """Return the beginning of the text between two places, without an end the rest of the line.

    Lines of places count from 1 and columns from 0. A place outside the program gives "".
    """
    lines, (first, column) = program.split("\n"), start
    last, last_column = end or (first, len(program))
    text = "\n".join(lines[first - 1 : min(last, first + _MOST_MARKS)])
    ends = sum(len(each) + 1 for each in lines[first - 1 : last - 1]) + last_column
    return text[column:ends][:_MARK_CHARACTERS]


def _near(marks: Iterable[int], first: int, last: int) -> Iterable[int]:
    """Return the numbers of the lines near marks, or of the first ones without any, in order."""
    around = {near for each in marks for near in range(each - _NEAR, each + _NEAR + 1)}
    return sorted(each for each in around if first <= each <= last) or range(first, last + 1)


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} ..."


def _comment(error: Mark) -> str:
    first, *rest = error.text[:_MARK_CHARACTERS].strip().split("\n")
    spaces = " " * min(max(0, error.column - 2), _LONGEST_LINE)
    return "\n".join([f"--{spaces}^ error: {first}", *(f"--   {line}" for line in rest)])
