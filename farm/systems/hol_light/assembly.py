"""Assembly step, HOL Light: makes one call of `prove` from the dataset's goal and the model's tactic. Pure.

The program is ``prove(`GOAL`,``, the tactic on lines of its own, and ``);;``. A goal contains no backquote,
so `parts` can split the program again. The goal is always the dataset's, even if the answer states another.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from farm.assembly.answer import Span, after_key, fenced_blocks, without_thinking
from farm.assembly.challenge import Challenge
from farm.assembly.faults import StatementFault
from farm.assembly.program import AssemblyOptions, AssemblyWarning, Program
from farm.assembly.segments import Draft, Segment
from farm.lean_text.positions import line_and_column
from farm.manifest.entry import Entry

#: The tags that models write on the code block of a tactic.
_TAGS = ("ocaml", "ml", "hol", "hollight", "hol-light", "hol_light", "caml", "")
_NAME = re.compile(r"\blet\s+(?:rec\s+)?([\w'.-]+)\s*=")
_PROVE = r"prove\s*\(\s*`([^`]*)`\s*,"
#: An answer that states the goal once more, perhaps with a name; only its tactic goes into the program.
_RESTATED = re.compile(rf"\s*(?:let\s+[\w']+\s*=\s*)?{_PROVE}")
#: One step of the interactive prover, perhaps after a command that sets the goal.
_STEP = re.compile(r"\s*(?:g\s*\(?\s*`[^`]*`\s*\)?\s*;;\s*)?e\s*\(")
_PROGRAM = re.compile(rf"\s*{_PROVE}(.*)\)\s*;;\s*", re.DOTALL)


class ProgramParts(NamedTuple):
    """The parts of a program: the goal without its backquotes, the tactic, and the tactic's offset."""

    goal: str
    tactic: str
    start: int


def assemble(entry: Entry, options: AssemblyOptions) -> tuple[Program]:
    """Return the program of a manifest line. Raises StatementFault."""
    start, end = _goal(entry.header, entry.formal_statement)
    if entry.predicted_proof and not options.reassemble:
        text = entry.predicted_proof
        whole = Segment(0, len(text), "predicted_proof", 0)
        return (Program(text=text, segments=(whole,), warnings=()),)
    answer, warnings = _answer(entry.generation, options)
    draft = Draft({"formal_statement": entry.formal_statement, "generation": entry.generation})
    draft.write("prove(`")
    draft.copy("formal_statement", start, end)
    draft.write("`,\n")
    draft.copy("generation", *answer)
    draft.write("\n);;\n")
    text, segments = draft.finish()
    return (Program(text=text, segments=segments, warnings=warnings),)


def challenge(header: str, _context: str, statement: str) -> Challenge:
    """Return the challenge of a statement: the text of its only term. Raises StatementFault."""
    start, end = _goal(header, statement)
    named = _NAME.search(statement, 0, start)
    return Challenge(program=statement[start:end], name=named[1] if named else "goal")


def unproved(challenge: Challenge) -> str:
    """Return a program that states a challenge and does not prove it."""
    return f"prove(`{challenge.program}`,\nALL_TAC\n);;\n"


def parts(program: str) -> ProgramParts | None:
    """Return the goal and the tactic of a program, None for a text in another form."""
    found = _PROGRAM.fullmatch(program)
    return None if found is None else ProgramParts(found[1], found[2], found.start(2))


def _goal(header: str, statement: str) -> Span:
    """Return the span of the only term of a statement, without its backquotes. Raises StatementFault."""
    if header.strip():
        raise StatementFault(
            "HOL Light has no headers",
            "leave the header out, and name the files that lines need in `load` of the environment",
            "header",
        )
    marks = [at for at, letter in enumerate(statement) if letter == "`"]
    if len(marks) < 2:
        raise StatementFault(
            "there is no term between backquotes", "write the term to be proved, such as `!x:real. x <= x`"
        )
    if len(marks) > 2:
        raise StatementFault("there is more than one term", "write one line for each term")
    start, end = marks[0] + 1, marks[1]
    if not statement[start:end].strip():
        raise StatementFault("the term is empty", "write the term to be proved between the backquotes")
    return start, end


def _answer(text: str, options: AssemblyOptions) -> tuple[Span, tuple[AssemblyWarning, ...]]:
    """Return the span of an answer's tactic, and the warnings about the answer."""
    answer, unclosed = without_thinking(text)
    answer = after_key(text, answer, options.key)
    blocks = [block for block in fenced_blocks(text, answer)[0] if block.tag in _TAGS]
    if blocks:
        chosen = blocks[-1 if options.extract_code_mode == "last" else 0]
        answer = chosen.start, chosen.end
    start, end = _unwrapped(text, *_trimmed(text, *answer))
    found = [] if unclosed is None else [("unclosed_thinking", unclosed)]
    if start == end:
        found.append(("no_answer", start))
    return (start, end), tuple(_warning(code, text, at) for code, at in found)


def _warning(code: str, text: str, at: int) -> AssemblyWarning:
    line, column = line_and_column(text, at)
    return AssemblyWarning(code=code, origin="generation", line=line, column=column)


def _trimmed(text: str, start: int, end: int) -> Span:
    """Return the span without blanks around it, and without ``;;`` at its end."""
    piece = text[start:end].rstrip()
    while piece.endswith(";;"):
        piece = piece[:-2].rstrip()
    return start + len(piece) - len(piece.lstrip()), start + len(piece)


def _unwrapped(text: str, start: int, end: int) -> Span:
    """Return the span of the tactic inside a call of `prove` or an interactive step, else the given span."""
    wrapped = _RESTATED.match(text, start, end) or _STEP.match(text, start, end)
    if wrapped is None or text[end - 1] != ")" or ";;" in text[wrapped.end() : end]:
        return start, end
    return _trimmed(text, wrapped.end(), end - 1)
