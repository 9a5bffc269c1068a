"""Assembly step, choice: chooses the part of an answer that is the code for the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from farm.assembly.answer import CodeBlock, Span, fenced_blocks
from farm.assembly.declaration import Declaration, Target, find, find_like, is_proof, signature
from farm.assembly.vocabulary import COMMAND_LINE, looks_like_prose


class Code(NamedTuple):
    """The span of the code, whether a fence opens it, and the code and offset of a warning, if any."""

    start: int
    end: int
    fenced: bool
    warning: str = ""
    warning_at: int = 0


def choose(text: str, answer: Span, target: Target, *, last: bool) -> Code:
    """Return the code of an answer.

    If blocks are tagged as Lean, the code is the last closed block that proves the target without a sorry; if
    no block contains the target, the last one that proves a theorem of another name; or else the last block.
    With `last` false it is the first block. Without such tags the code is the text before a closing fence
    whose opening fence was in the prompt; or else, by the same rules, a block without a foreign tag; or else
    the whole answer.
    """
    blocks, first_mark = fenced_blocks(text, answer)
    if first_mark < 0 and not blocks:
        return _unfenced(text, answer, target)
    inked = [b for b in blocks if b.end > b.start and not text[b.start : b.end].isspace()]
    lean = [b for b in inked if b.is_lean]
    if lean:
        block = _best(text, lean, target, last=last)
        if block is lean[-1]:
            return _after_echo(text, answer, block, blocks, target)
        code = _code(block)
        return code._replace(warning="earlier_block", warning_at=block.fence) if last else code
    if first_mark >= 0 and _is_completion(text, answer, first_mark, inked):
        return Code(answer[0], first_mark, False)
    useful = [b for b in inked if not b.is_foreign] or inked
    if useful:
        return _code(_best(text, useful, target, last=last))
    return _unfenced(text, (answer[0], max(first_mark, answer[0])), target)


def _code(block: CodeBlock) -> Code:
    if block.closed:
        return Code(block.start, block.end, True)
    return Code(block.start, block.end, True, "unclosed_fence", block.fence)


def _best(text: str, blocks: Sequence[CodeBlock], target: Target, *, last: bool) -> CodeBlock:
    if not last or len(blocks) == 1:
        return blocks[0]
    has_target = False
    for block in reversed(blocks):
        found = find(text, block.start, block.end, target)
        if found is not None and _is_proved(text, block, found):
            return block
        has_target |= found is not None
    return (None if has_target else _last_proved(text, blocks, target)) or blocks[-1]


def _last_proved(text: str, blocks: Sequence[CodeBlock], target: Target) -> CodeBlock | None:
    """Return the last block that proves a theorem of any name, None if the last block may be a bare proof.

    A block that begins with ``#`` is no bare proof, because no tactic and no term begins so.
    """
    for block in reversed(blocks):
        found = find_like(text, block.start, block.end, target.keyword)
        if found is None and block is blocks[-1] and text[block.start : block.end].lstrip()[:1] != "#":
            return None
        if found is not None and _is_proved(text, block, found):
            return block
    return None


def _is_proved(text: str, block: CodeBlock, declaration: Declaration) -> bool:
    """Return whether a block is closed and has a proof without a sorry."""
    return block.closed and is_proof(text[signature(text, declaration, block.end).body : block.end])


def _after_echo(
    text: str, answer: Span, block: CodeBlock, blocks: Sequence[CodeBlock], target: Target
) -> Code:
    """Return the code of a block, or the text after a block that only repeats the prompt."""
    if not block.closed or "sorry" not in text[block.start : block.end] or not _is_echo(text, block, target):
        return _code(block)
    start = text.find("\n", block.end + 1, answer[1]) + 1
    end = next((later.fence for later in blocks if later.fence > block.end), answer[1])
    declared = find(text, start, end, target)
    if start and (declared or _may_be_lean(text, start, end)):
        return Code(start, end, False, "no_code_fence", start)
    return _code(block)


def _is_echo(text: str, block: CodeBlock, target: Target) -> bool:
    declaration = find(text, block.start, block.end, target)
    if declaration is None:
        return False
    ends = signature(text, declaration, block.end)
    return text[ends.body : block.end].split() in (["by", "sorry"], ["sorry"])


def _is_completion(text: str, answer: Span, mark: int, blocks: Sequence[CodeBlock]) -> bool:
    """Return whether the first fence closes a block that the prompt opened."""
    before = text[answer[0] : mark]
    if not before or before.isspace() or (blocks and blocks[0].fence == mark and blocks[0].tag):
        return False
    opens = bool(blocks) and blocks[0].fence == mark
    if _may_be_lean(text, answer[0], mark):
        return True
    return not (opens and _may_be_lean(text, blocks[0].start, blocks[0].end))


def _unfenced(text: str, answer: Span, target: Target) -> Code:
    start, end = answer
    if target.name and looks_like_prose(text, start, end):
        declared = find(text, start, end, target)
        command = COMMAND_LINE.search(text, start, declared.start) if declared else None
        start = command.start() if command else declared.start if declared else start
    return Code(start, end, False, "no_code_fence", start)


def _may_be_lean(text: str, start: int, end: int) -> bool:
    """Return whether a text has code, as far as its first line shows."""
    return bool(text[start:end].strip()) and not looks_like_prose(text, start, end)
