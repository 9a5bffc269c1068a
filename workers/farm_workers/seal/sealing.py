"""Seal step, entry: rebuilds, audits and replays one module, and returns the facts for the fork to print."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from farm_workers.audit.answers import AnswerRules, AnswersAsked, Given
from farm_workers.audit.audit import STANDARD_AXIOMS, Rules, audit, audit_all, audit_statement
from farm_workers.audit.declarations import Module
from farm_workers.audit.dependencies import FAILED, BadTable, NotInTable, Table
from farm_workers.audit.extensions import influences
from farm_workers.audit.findings import (
    MOST_FINDINGS,
    Findings,
    ModuleFinding,
    Word,
    found,
    malformed,
    out_of_memory,
)
from farm_workers.audit.holes import judge_hole
from farm_workers.audit.names import dotted, parsed
from farm_workers.audit.olean import BUDGET, MalformedOlean, Olean
from farm_workers.audit.parts import leave_others, with_standings
from farm_workers.audit.unchecked import of_listed, unchecked
from farm_workers.binding.lean import Lean
from farm_workers.seal.above import Kernel
from farm_workers.seal.expected import answers_differ
from farm_workers.seal.image import ModuleImage
from farm_workers.seal.kernel import Imported, Printed, check
from farm_workers.seal.memory import reserved, room_for, word_at
from farm_workers.seal.rebuild import Rebuilt, rebuild


@dataclass(frozen=True, kw_only=True, slots=True)
class SealRequest:
    """A module to seal.

    `challenge` is the compiled statement, None for a program without one; then `imports` are the imports that
    the module must have, in their order, None if they are unknown. `target` is the theorem's full name;
    without it, the target is the open theorem of the challenge whose text `ends` at this line and column.
    `native` lets a proof trust the compiler; `forbidden` are constants that it must not reach. With
    `parts_from`, a line and column, all theorems that the challenge leaves open below must be proved.
    Constants that are `permitted` may contain a sorry; `statement_from` is the line and column at which the
    statement begins. With `lists` the facts list the module's declarations, and the kernel checks the module
    even where some of them are at fault. `answers` are the open definitions that the module may give, and the
    demands on them, None if there are none. With `accounts` the module must hold all declarations of the
    program; `declared` lists them if Lean drops some from the module, and is None otherwise. For an answer to
    one hole of several, `parent` is the compiled program with all of them, `hole` the line and column of that
    one, and a context above ends at `hole_below`. With `replay` the kernel checks the module. `dependencies`
    is the environment's table of dependencies; with `permits_library` a proof may rest on a sorry of the
    imports. With `states` there is no proof: the module is a challenge's own, and the facts are those of its
    statement. With `negates`, a line and column, the challenge states the negation of the theorem whose text
    ends there. The sealed module is written to the descriptor `into`.
    """

    module: bytes | memoryview
    challenge: bytes | memoryview | None = None
    target: str | None = None
    ends: Sequence[int] | None = None
    axioms: Sequence[str] = tuple(map(dotted, STANDARD_AXIOMS))
    forbidden: Sequence[str] = ()
    imports: Sequence[str] | None = None
    native: bool = False
    parts_from: Sequence[int] | None = None
    permitted: Sequence[str] = ()
    parent: bytes | memoryview | None = None
    hole: Sequence[int] | None = None
    hole_below: Sequence[int] | None = None
    statement_from: Sequence[int] | None = None
    lists: bool = False
    answers: AnswersAsked | None = None
    accounts: bool = False
    declared: Sequence[str] | None = None
    replay: bool = True
    states: bool = False
    negates: Sequence[int] | None = None
    dependencies: memoryview | None = None
    permits_library: bool = False
    into: int | None = None
    budget: int = BUDGET


def seal(
    lean: Lean, kernel: Kernel, request: SealRequest, *, asks: Callable[[], object] = bool
) -> dict[str, object]:
    """Return the facts of a module as a JSON object; the kernel already holds the context, if it is shared.

    `asks` is called after the audit, before the kernel begins. A file that Lean did not write is a finding,
    as in an audit. The caller has to notice if the process dies, and to limit its time.
    """
    facts: dict[str, object] = {"module_sha256": hashlib.sha256(request.module).hexdigest()}
    try:
        return facts | _sealed(lean, kernel, request, asks)
    except (BadTable, NotInTable) as error:
        return facts | {FAILED: str(error)}
    except MalformedOlean as error:
        return facts | malformed(error).facts()
    except MemoryError:
        return facts | out_of_memory().facts()


def _sealed(
    lean: Lean, kernel: Kernel, request: SealRequest, asks: Callable[[], object]
) -> dict[str, object]:
    module = Module(Olean(request.module, request.budget))
    if module.is_module:
        return _facts(audit_all(module, Rules()), request)
    with reserved(room_for(len(request.module) + len(request.challenge or b""))) as (base, memory):
        rebuilt = rebuild(lean, module, ModuleImage(lean, base, memory), native=request.native)
        sealed = Module(Olean(rebuilt.file, request.budget, rebuilt.image.placed()))
        facts: dict[str, object] = {"sealed_sha256": hashlib.sha256(rebuilt.file).hexdigest()}
        rules = _rules(lean, kernel, request, rebuilt, module)
        challenge = None if request.challenge is None else Module(Olean(request.challenge, request.budget))
        findings = _examined(sealed, module, challenge, request, rules, rebuilt)
        findings, replay, told = _replayed(lean, kernel, request, rebuilt, findings, challenge, rules, asks)
        if request.into is not None:
            _write(request.into, rebuilt.file)
        facts |= _facts(findings, request) | {"replay": replay if request.replay else None}
        if told:
            facts["answers"] = told
        del sealed, rebuilt, rules
    return facts


def _examined(
    sealed: Module,
    module: Module,
    challenge: Module | None,
    request: SealRequest,
    rules: Rules,
    rebuilt: Rebuilt,
) -> Findings:
    """Return the findings against a rebuilt module and the written one, before the kernel is asked."""
    if request.states:
        findings = audit_statement(sealed, rules, written=module, ends=_place(request.ends))
    else:
        findings = _audited(sealed, challenge, request, rules)
    findings = _with_original(findings, module, rebuilt)
    if request.parent is not None and request.hole is not None:
        parent, below = Module(Olean(request.parent, request.budget)), request.hole_below or (0, 0)
        (line, column), (from_line, from_column) = request.hole, below
        place, above = (line, column), (from_line, from_column)
        believed = findings.believed
        more = judge_hole(sealed, parent, place, above, written=module, believed=believed)
        findings = _with(findings, more)
    if request.accounts:
        findings = _with(findings, unchecked(module, rebuilt.left_out))
    if request.declared is not None:
        findings = _with(findings, of_listed(module, request.declared, rebuilt.mentioned))
    if not request.lists and not request.permitted:
        return findings
    ends = _place(request.ends)
    return with_standings(findings, sealed, challenge, rules, ends=ends, source=module, lists=request.lists)


def _replayed(
    lean: Lean,
    kernel: Kernel,
    request: SealRequest,
    rebuilt: Rebuilt,
    findings: Findings,
    challenge: Module | None,
    rules: Rules,
    asks: Callable[[], object],
) -> tuple[Findings, dict[str, object] | None, list[dict[str, object]]]:
    """Have the kernel check a module; return the findings with its own, its answer, and the printed answers.

    The kernel answers None if nothing needs it. About a module with faults it is asked for the other
    declarations alone: no finding is added.
    """
    standings = findings.standings
    answers = rules.answers
    expects = challenge is not None and answers is not None and bool(answers.expected or answers.shape)
    needs_kernel = request.replay or bool(findings.believed) or expects
    is_asked = findings.accepted or (standings is not None and leave_others(findings.findings))
    is_checked, replay, more, told = not needs_kernel, None, list[ModuleFinding](), list[dict[str, object]]()
    if is_asked and needs_kernel:
        asks()
        checked = check(lean, kernel.environment, rebuilt, findings.believed, kernel.compiled)
        replay, more = checked.replay, list(checked.findings)
        is_checked = bool(replay["accepted"]) and not more
        if findings.accepted and checked.environment:
            after = checked.environment
            if rules.answers and challenge is not None:
                names = [each.name for each in findings.answers]
                more += answers_differ(lean, after, rebuilt, challenge, rules.answers, names)
            if findings.answers:
                told = _told(kernel.printed, after, rebuilt, findings.answers[:MOST_FINDINGS])
    if standings is not None and not is_checked:
        findings = replace(findings, standings=standings.unchecked())
    return _with(findings, more if findings.accepted else []), replay, told


def _rules(lean: Lean, kernel: Kernel, request: SealRequest, rebuilt: Rebuilt, module: Module) -> Rules:
    imported = Imported(lean, kernel.environment, rebuilt)
    imports = [each.module for each in module.imports]
    table = None if request.dependencies is None else Table(request.dependencies, imports)
    return Rules(
        allowed_axioms=frozenset(map(parsed, request.axioms)),
        native=request.native,
        evaluates=True,
        is_imported=imported.has,
        is_imported_axiom=imported.is_axiom,
        dependencies=None if table is None else table.below,
        permits_library=request.permits_library,
        left_out={**kernel.left_out, **rebuilt.left_out},
        mentioned=rebuilt.mentioned,
        above=kernel.below,
        above_has_sorry=kernel.has_sorry,
        above_admitted=kernel.admitted,
        parts_from=_place(request.parts_from),
        permitted=frozenset(request.permitted),
        statement_from=_place(request.statement_from),
        answers=None if request.answers is None else AnswerRules.of(request.answers),
        forbidden=frozenset(map(parsed, request.forbidden)),
        negates=_place(request.negates),
        context=kernel.context,
    )


def _audited(sealed: Module, challenge: Module | None, request: SealRequest, rules: Rules) -> Findings:
    target = None if request.target is None else parsed(request.target)
    if challenge is not None:
        return audit(sealed, challenge, target, rules, ends=_place(request.ends))
    return _with(audit_all(sealed, rules), _imports(sealed, request.imports))


def _place(given: Sequence[int] | None) -> tuple[int, int] | None:
    return None if given is None else (given[0], given[1])


def _told(
    printed: Printed, environment: int, rebuilt: Rebuilt, answers: Sequence[Given]
) -> list[dict[str, object]]:
    """Return answers of a module with their texts, as Lean prints them."""
    definitions = [word_at(rebuilt.constants[each.name], 0) for each in answers]
    terms = [term for each in definitions for term in (word_at(each, 1), word_at(word_at(each, 0), 2))]
    texts = printed(environment, terms)
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return [
        each.facts() | {"text": text, "type": type_}
        for each, (text, type_) in zip(answers, pairs, strict=True)
    ]


def _imports(sealed: Module, asked: Sequence[str] | None) -> Iterator[ModuleFinding]:
    """Yield a finding if a module's imports differ from those of its header."""
    has = [dotted(each.module) for each in sealed.imports]
    if asked is not None and has != list(asked):
        sentence = (
            f"The module imports {', '.join(has[:20])}, but its header imports {', '.join(asked[:20])}."
        )
        yield found(Word.IMPORTS_DIFFER, None, sentence)


def _with_original(findings: Findings, module: Module, rebuilt: Rebuilt) -> Findings:
    """Add findings that only the submission's own bytes show: names declared twice, holes, extensions."""
    extensions = module.extensions()
    more = [
        found(Word.REDECLARED, name, "The module declares {} more than once.") for name in module.repeated
    ]
    if rebuilt.is_open and not any(each.word is Word.OPEN_TERM for each in findings.findings):
        more.append(found(Word.OPEN_TERM, None, "The module contains an unbound variable."))
    return replace(
        _with(findings, more), extensions=tuple(extensions.items()), influences=influences(extensions)
    )


def _with(findings: Findings, more: Sequence[ModuleFinding] | Iterator[ModuleFinding]) -> Findings:
    return replace(findings, findings=(*findings.findings, *more))


def _facts(findings: Findings, request: SealRequest) -> dict[str, object]:
    statement = "unchecked" if request.challenge is None else "compared"
    return findings.facts() | {"statement": statement, "replay": None}


def _write(descriptor: int, file: memoryview) -> None:
    while file:
        file = file[os.write(descriptor, file) :]
