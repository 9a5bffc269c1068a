"""Sessions step, texts: the program that a session is opened on, and the answer that a state makes."""

from __future__ import annotations

from farm.assembly.program import AssemblyOptions, assemble
from farm.errors import UsageError
from farm.manifest.entry import Entry

#: The answer that a statement gets while nothing of its proof is known.
_UNKNOWN = "by\n  sorry\n"


def program_of(*, program: str, header: str, context: str, formal_statement: str) -> str:
    """Return the program that a session elaborates: the one given, or the statement with a sorry for proof.

    Raises UsageError if there is neither, or both.
    """
    if bool(program) == bool(formal_statement.strip()):
        raise UsageError("give a formal_statement to prove, or a program with a sorry for each open place")
    if program:
        return program
    entry = Entry(
        path="session",
        line=1,
        name="",
        header=header,
        formal_statement=formal_statement,
        generation=_UNKNOWN,
        predicted_proof="",
        context=context,
    )
    return assemble(entry, AssemblyOptions()).text
