"""Assembly step, holes: puts an answer into the open place of a program. Pure.

The answer is tactics, whatever is missing there: a term is written as `exact` and the term. Parentheses hold
the tactics together and let them have any columns, so the answer's lines keep theirs. Nothing rests on how
the farm reads them: the whole program is compiled and sealed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from farm.assembly.answer import after_key, without_thinking
from farm.assembly.choice import choose
from farm.assembly.declaration import read_target
from farm.assembly.proof import Joint
from farm.assembly.segments import Draft
from farm.manifest.hole import Hole

#: The origin of the text around a hole.
HOLE = "hole"


#: Codes of warnings about an answer, with their offsets in it.
Warnings = list[tuple[str, int]]


def drafts(hole: Hole, generation: str, key: str, *, last: bool) -> Iterator[tuple[Draft, Warnings]]:
    """Yield the drafts of a program with its hole filled, and the warnings about the answer.

    There is a second one where Lean may read the answer's lines in another way.
    """
    answer, unclosed = without_thinking(generation)
    code = choose(generation, after_key(generation, answer, key), read_target(""), last=last)
    end = code.start + len(generation[code.start : code.end].rstrip())
    warnings: Warnings = [] if unclosed is None else [("unclosed_thinking", unclosed)]
    if end == code.start:
        warnings.append(("no_answer", code.start))
    elif code.warning:
        warnings.append((code.warning, code.warning_at))
    for otherwise in (False, True):
        draft = Draft({HOLE: hole.program, "generation": generation})
        draft.copy(HOLE, 0, hole.start)
        draft.write("(by" if hole.is_term else "(")
        joint = Joint(draft, generation, end, "by")
        if not joint.write_bare(code.start, lost=not code.fenced, otherwise=otherwise) and otherwise:
            return
        draft.write("\n)")
        draft.copy(HOLE, hole.end, len(hole.program))
        yield draft, warnings


def filled(program: str, answers: Mapping[tuple[int, int], str]) -> str:
    """Return a program with texts in the place of its holes, which are given by start and end."""
    for start, end in sorted(answers, reverse=True):
        program = program[:start] + answers[start, end] + program[end:]
    return program


def piece(hole: Hole, program: str) -> str | None:
    """Return the text that a filled program has in the place of a hole, None for a program of another."""
    before, behind = hole.program[: hole.start], hole.program[hole.end :]
    if len(program) < len(before) + len(behind) or not program.startswith(before):
        return None
    return program[len(before) : len(program) - len(behind)] if program.endswith(behind) else None
