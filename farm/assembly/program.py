"""Assembly step: makes Lean programs, with their segments, from a manifest line and the model's answer.

docs/use/manifests.md has the rules and the meaning of each warning. Two options change the result: without
`restate_formal_statement` the code, with the model's own statement, stands right after the header; without
`strip_theorem_from_proof` it stands after the restated statement. In both cases the program contains all of
the code except its own imports and repeated header lines.
"""

from __future__ import annotations

from dataclasses import dataclass

from farm.asked import BATCH, RUN, Flag, either, option, words
from farm.assembly import nemo
from farm.assembly.above import CONTEXT, Above, above
from farm.assembly.answer import Span
from farm.assembly.challenge import Challenge
from farm.assembly.hole import HOLE, drafts
from farm.assembly.lean_answer import LeanAnswer
from farm.assembly.likeness import is_same
from farm.assembly.segments import Draft, Segment
from farm.errors import UsageError
from farm.lean_text.positions import line_and_column
from farm.manifest.entry import Entry
from farm.manifest.hole import Hole

PROFILES = {"farm": "**FINAL ANSWER**", "nemo-2025-11": "", "nemo-2025-08": "**FINAL ANSWER**"}
"""Every profile with its final answer key; "" means no key."""

MODES = ("last", "first")


@dataclass(frozen=True, kw_only=True, slots=True)
class AssemblyOptions:
    """The options of the assembly, with the names of NeMo-Skills' evaluation.

    `final_answer_key`: None means the profile's own key, "" means no key.
    """

    profile: str = option(
        "farm",
        places=RUN | BATCH,
        form=words(*PROFILES, alias="Profile"),
        absent="farm",
        meaning="how answers become programs",
        flag=Flag(help=f"How answers become programs: {either(list(PROFILES))}."),
    )
    final_answer_key: str | None = option(
        None,
        places=RUN,
        meaning="the text behind which an answer begins",
        flag=Flag(
            help="The answer is the text after this key; '' turns it off. By default the profile's own.",
        ),
    )
    extract_code_mode: str = option(
        "last",
        places=RUN,
        meaning="which code block counts",
        flag=Flag(help=f"Which code block counts: {either(MODES)}."),
    )
    restate_formal_statement: bool = option(
        True,
        places=RUN,
        meaning="header and statement are put before the proof",
        flag=Flag(help="Put the manifest's header and statement before the proof."),
    )
    strip_theorem_from_proof: bool = option(
        True,
        places=RUN,
        meaning="the statement that an answer repeats is removed",
        flag=Flag(help="Remove the statement that the answer repeats."),
    )
    reassemble: bool = option(
        False,
        places=RUN,
        meaning="answers are assembled even where a line has a `predicted_proof` of its own",
        flag=Flag(help="Assemble the answer even where a line brought a predicted_proof of its own."),
    )

    def __post_init__(self) -> None:
        """Raise UsageError for an unknown profile or mode, and for nemo-2025-08 without a key."""
        if self.profile not in PROFILES:
            raise UsageError(f"unknown profile {self.profile!r}; choose one of {', '.join(PROFILES)}")
        if self.extract_code_mode not in MODES:
            raise UsageError(
                f"unknown extract_code_mode {self.extract_code_mode!r}; choose one of {', '.join(MODES)}"
            )
        if self.profile == "nemo-2025-08" and not self.key:
            raise UsageError(
                "nemo-2025-08 needs a final answer key; give one, or omit --final-answer-key to use its own"
            )

    @property
    def key(self) -> str:
        """The final answer key in force; "" means no key."""
        return PROFILES[self.profile] if self.final_answer_key is None else self.final_answer_key


@dataclass(frozen=True, kw_only=True, slots=True)
class AssemblyWarning:
    """A warning about a line, with its position; docs/use/manifests.md has the codes."""

    code: str
    origin: str
    line: int
    column: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """The exact text for Lean, with the segments that were copied from manifest fields.

    The text begins with the line's context up to `context_end`, which is 0 for a text without the context. A
    program with a `challenge` of its own is held against that, and not against the line's statement.
    """

    text: str
    segments: tuple[Segment, ...]
    warnings: tuple[AssemblyWarning, ...]
    context_end: int = 0
    challenge: Challenge | None = None

    @property
    def submitted(self) -> tuple[tuple[int, int], ...]:
        """The spans (start, end) that the submission wrote, without the dataset's text and the farm's."""
        return tuple(
            [(each.start, each.start + each.length) for each in self.segments if each.origin in _SUBMITTED]
        )


_SUBMITTED = frozenset({"generation", "predicted_proof", HOLE})


def assemble(entry: Entry, options: AssemblyOptions) -> tuple[Program, ...]:
    """Return the candidate programs of a manifest line, in the order in which a worker tries them.

    If Lean refuses one for an error above its proof, or if it proves another statement, the worker tries the
    next. Of three the first is the header with the model's own text, the second has the dataset's statement
    with the model's preamble, and the last has it with the farm's own preamble.
    """
    if entry.hole is not None:
        return _assemble_hole(entry, entry.hole, options)
    if entry.predicted_proof and not options.reassemble:
        return (_preassembled(entry),)
    if options.profile == "farm":
        return _assemble_farm(entry, options)
    return (_assemble_nemo(entry, options),)


def _preassembled(entry: Entry) -> Program:
    text = entry.predicted_proof
    whole = Segment(start=0, length=len(text), origin="predicted_proof", origin_start=0)
    return Program(text=text, segments=(whole,), warnings=(), context_end=_above(entry).context_end(text))


def _assemble_hole(entry: Entry, hole: Hole, options: AssemblyOptions) -> tuple[Program, ...]:
    dataset = _above(entry)
    found = drafts(hole, entry.generation, options.key, last=options.extract_code_mode == "last")
    return _different(
        [
            _program(draft, dataset, tuple(_warning(entry, code, "generation", at) for code, at in warnings))
            for draft, warnings in found
        ]
    )


def _above(entry: Entry) -> Above:
    return above(entry.header, entry.context, entry.formal_statement)


def _assemble_farm(entry: Entry, options: AssemblyOptions) -> tuple[Program, ...]:
    dataset = _above(entry)
    sources = _sources(entry, dataset)
    answer = LeanAnswer(dataset, entry.generation, options.key, last=options.extract_code_mode == "last")
    draft = Draft(sources)
    answer.write(draft, restate=options.restate_formal_statement, strip=options.strip_theorem_from_proof)
    warnings = tuple(
        _warning(entry, code, *dataset.place(origin, at)) for code, origin, at in answer.warnings
    )
    found = [_program(draft, dataset, warnings)]
    if options.restate_formal_statement and options.strip_theorem_from_proof:
        own, other = Draft(sources), Draft(sources)
        if answer.write_own(own) and not is_same(own.text, draft.text, len(dataset.written)):
            found.insert(0, _program(own, dataset, warnings))
        if len(found) > 1 and not dataset.statement.strip():
            return (found[0],)  # there is nothing to restate
        if answer.write_otherwise(other):
            found.append(_program(other, dataset))
    return _different(found)


def _different(found: list[Program]) -> tuple[Program, ...]:
    """Return the programs without those that equal an earlier one."""
    texts = [each.text for each in found]
    return tuple(each for number, each in enumerate(found) if each.text not in texts[:number])


def _program(draft: Draft, dataset: Above, warnings: tuple[AssemblyWarning, ...] = ()) -> Program:
    text, segments = draft.finish()
    if dataset.moved:
        segments = tuple(placed for segment in segments for placed in dataset.placed(segment))
    end = dataset.context_end(text)
    return Program(text=text, segments=segments, warnings=warnings, context_end=end)


def _warning(entry: Entry, code: str, origin: str, offset: int) -> AssemblyWarning:
    line, column = line_and_column(getattr(entry, origin), offset)
    return AssemblyWarning(code=code, origin=origin, line=line, column=column)


def _assemble_nemo(entry: Entry, options: AssemblyOptions) -> Program:
    august = options.profile == "nemo-2025-08"
    last = not august and options.extract_code_mode == "last"
    code = nemo.extract_code(entry.generation, options.key, last=last)
    proof = nemo.strip_theorem(entry.generation, code) if options.strip_theorem_from_proof else [code]
    dataset = _above(entry)
    draft = Draft(_sources(entry, dataset))
    # August's operator precedence: code that is not stripped is the whole program.
    if options.strip_theorem_from_proof or not august:
        draft.copy(dataset.origin, 0, len(dataset.text))
        if dataset.origin == CONTEXT and dataset.ends_line:
            draft.write("\n")
        if options.restate_formal_statement:
            draft.copy("formal_statement", 0, len(dataset.statement))
    _copy_lines(draft, entry.generation, proof)
    return _program(draft, dataset)


def _copy_lines(draft: Draft, text: str, lines: list[Span]) -> None:
    for number, (start, end) in enumerate(lines):
        before = lines[number - 1][1]
        if number and start == before + 1 and text[before] == "\n":
            draft.copy("generation", before, end)
            continue
        if number:
            draft.write("\n")
        draft.copy("generation", start, end)


def _sources(entry: Entry, dataset: Above) -> dict[str, str]:
    return {
        dataset.origin: dataset.text,
        "formal_statement": dataset.statement,
        "generation": entry.generation,
    }
