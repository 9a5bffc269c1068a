"""Sessions step, texts: the program that a session is opened on, and the answer that a state makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from farm.assembly import tasked
from farm.assembly.program import AssemblyOptions, assemble
from farm.client.states import State
from farm.errors import UsageError
from farm.manifest.entry import Entry
from farm.sessions.front import Source
from farm.sessions.states import filled, proof_of
from farm.task import Kind, Task

#: The answer that a statement gets while nothing of its proof is known.
_UNKNOWN = "by\n  sorry\n"


def program_of(
    *, program: str, header: str, context: str, formal_statement: str, task: str = Kind.PROVE
) -> str:
    """Return the program that a session elaborates: the one given, or the statement with a sorry for proof.

    With the task ``disprove`` it is the statement's negation. Raises UsageError if there is neither program
    nor statement, or both, and for a statement of which this cannot be asked.
    """
    if bool(program) == bool(formal_statement.strip()):
        raise UsageError("give a formal_statement to prove, or a program with a sorry for each open place")
    if task not in (Kind.PROVE, Kind.DISPROVE) or (program and task != Kind.PROVE):
        raise UsageError(f"a session on a {'program' if program else 'statement'} has no task {task}")
    if program:
        return program
    item = {"header": header, "context": context, "formal_statement": formal_statement}
    entry = entry_of(item, "")
    assembled = partial(assemble, options=AssemblyOptions())
    if task == Kind.PROVE:
        return assembled(entry)[0].text
    try:
        return tasked.programs_of(entry, Kind.DISPROVE, assembled)[0].text
    except tasked.NoTask as fault:
        raise UsageError(f"{fault.field}: {fault}; {fault.remedy}") from fault


def entry_of(item: Mapping[str, Any], program: str) -> Entry:
    """Return the line that a session is on before its first tactic: nothing of the proof is known.

    That is the statement of the `item`, or the `program` where that has none.
    """
    statement = item.get("formal_statement") or ""
    return Entry(
        path="session",
        line=1,
        name="",
        header=item.get("header", "") if statement else "",
        formal_statement=statement,
        generation=_UNKNOWN if statement else "",
        predicted_proof="" if statement else program,
        context=item.get("context", "") if statement else "",
        task=Task.of({name: item.get(name) for name in ("task", "negates")}) if statement else Task(),
    )


def item_of(source: Source, states: Sequence[State]) -> dict[str, Any]:
    """Return the item that is checked to have states proved: the statement with its proof, or the program.

    Raises UsageError for states that do not fit the session.
    """
    if sorted(each.root for each in states) != sorted(each.root for each in source.roots):
        raise UsageError(
            f"give one state for each of the session's {len(source.roots)} roots, not {len(states)}"
        )
    if source.item.get("formal_statement"):
        given = {name: source.item.get(name, "") for name in ("header", "context", "formal_statement")}
        asked = {name: source.item[name] for name in ("task", "negates") if source.item.get(name)}
        return {**given, **asked, "proof": proof_of(states[0].tactics)}
    holes = [(source.roots[each.root], each.tactics) for each in states]
    try:
        return {"program": filled(source.program, holes)}
    except ValueError as error:
        raise UsageError(f"the sorries of this program cannot be filled: {error}") from error
