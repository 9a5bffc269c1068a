"""Audit step: whether a compiled module proves what a challenge asks, judged by what the two files hold.

What is not done here is to check proofs again: that each constant went through Lean's kernel is believed of a
file that Lean itself wrote, and the names, statements, axioms and kinds in it are what is audited.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from workers.audit.challenge import target_of
from workers.audit.declarations import Constant, Kind, Module, Safety
from workers.audit.extensions import influence
from workers.audit.findings import Finding, Findings, Word, found
from workers.audit.kernel import BELIEVING, KNOWN_AXIOMS, NATIVE, PRIMITIVES, SORRY, TRUST_COMPILER
from workers.audit.names import shown
from workers.audit.olean import Name
from workers.audit.statement import Comparison, compare
from workers.audit.terms import Reading, Terms, Walk

#: The axioms that every Lean proof may use.
STANDARD_AXIOMS: frozenset[Name] = frozenset({("propext",), ("Classical", "choice"), ("Quot", "sound")})

#: Tells something of a name; None where there is nothing to tell it from.
Test = Callable[[Name], bool] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Case:
    """What is audited, against what."""

    submission: Module
    challenge: Module | None
    allowed_axioms: Collection[Name]
    is_imported_axiom: Test
    is_imported: Test


@dataclass(slots=True)
class _Reach:
    """What a target rests on."""

    findings: list[Finding] = field(default_factory=list)
    axioms: list[Name] = field(default_factory=list)
    constants: int = 0
    statement_has_sorry: bool = False


def audit(
    submission: Module,
    challenge: Module | None,
    target: Name | None,
    *,
    allowed_axioms: Collection[Name] = STANDARD_AXIOMS,
    is_imported_axiom: Test = None,
    is_imported: Test = None,
) -> Findings:
    """Judge whether a module's theorem `target` proves what the challenge's does, by allowed means only.

    `target` is the full name; without it, it is the one theorem that the challenge leaves open. With neither,
    all constants of the module are judged, and one of them has to be a theorem. Accepted is
    what nothing was found against. Raises `MalformedOlean` when one of the files is not what Lean writes.
    """
    case = _Case(
        submission=submission,
        challenge=challenge,
        allowed_axioms=allowed_axioms,
        is_imported_axiom=is_imported_axiom,
        is_imported=is_imported,
    )
    findings = list(_files(case))
    if any(each.word is Word.UNSUPPORTED for each in findings):
        return _result(case, target, findings, _Reach(), ())
    findings += _declared(case)
    if target is not None:
        return _audited(case, target, findings)
    if challenge is None:
        return _all_audited(case, findings)
    chosen = target_of(challenge, None)
    if chosen.name is None:
        findings.append(found(Word.BAD_CHALLENGE, None, chosen.sentence))
        return _result(case, None, findings, _Reach(), ())
    return _audited(case, chosen.name, findings)


def _all_audited(case: _Case, findings: list[Finding]) -> Findings:
    constants = [constant for name in case.submission.names if (constant := case.submission.constant(name))]
    if not any(constant.kind is Kind.THEOREM for constant in constants):
        findings.append(found(Word.NO_THEOREM, None, "The module holds no theorem."))
    # What is unsafe or partial is rejected where something that is neither rests on it.
    roots = [constant.name for constant in constants if constant.safety is Safety.SAFE]
    reading = Reading(case.submission.olean, Terms())
    return _result(case, None, findings, _rests_on(case, reading, None, roots), ())


def _audited(case: _Case, target: Name, findings: list[Finding]) -> Findings:
    reading, pair = Reading(case.submission.olean, Terms()), None
    compared: tuple[Name, ...] = ()
    constant = case.submission.constant(target)
    if constant is None:
        findings.append(found(Word.TARGET_MISSING, target, "The module declares no {}."))
        return _result(case, target, findings, _Reach(), ())
    if constant.kind is not Kind.THEOREM:
        findings.append(found(Word.NOT_A_THEOREM, target, f"{{}} is no theorem but of kind {constant.kind}."))
    if case.challenge is not None:
        pair = Comparison(case.submission, case.challenge, reading)
        compared = compare(pair, constant, findings)
    reach = _rests_on(case, reading, pair, [target])
    return _result(case, target, findings, reach, compared)


def _result(
    case: _Case, target: Name | None, findings: list[Finding], reach: _Reach, compared: tuple[Name, ...]
) -> Findings:
    module = case.submission
    extensions = {} if module.is_module else module.extensions()
    influences = [(name, influence(name), count) for name, count in extensions.items()]
    return Findings(
        target=target,
        findings=(*findings, *reach.findings),
        has_challenge=case.challenge is not None,
        statement_has_sorry=reach.statement_has_sorry,
        axioms=tuple(reach.axioms),
        reached=reach.constants,
        compared=compared,
        not_checked=tuple(_not_checked(case)),
        lean_version=module.lean_version,
        git_hash=module.git_hash,
        imports=tuple(each.module for each in module.imports),
        constants=len(module.names),
        extensions=tuple(extensions.items()),
        influences=tuple((name, what, count) for name, what, count in influences if what is not None),
    )


def _not_checked(case: _Case) -> Iterator[str]:
    if case.challenge is None:
        yield "Statement, imports and toolchain were compared with nothing: there is no challenge."
    if case.is_imported is None:
        yield "Whether names are imported ones was not checked: nothing says what the imports declare."
    if case.is_imported_axiom is None:
        yield "Of imported constants, only well-known axioms were recognised: nothing says which are axioms."


# The two files


def _files(case: _Case) -> Iterator[Finding]:
    modules: dict[str, Module | None] = {"module": case.submission, "challenge": case.challenge}
    for what, module in modules.items():
        if module is not None and module.is_module:
            yield found(
                Word.UNSUPPORTED,
                None,
                f"The {what} is one of Lean's module system, whose files come in parts.",
            )
    if case.challenge is None:
        return
    ours, theirs = case.submission, case.challenge
    if (ours.lean_version, ours.git_hash) != (theirs.lean_version, theirs.git_hash):
        yield found(
            Word.TOOLCHAIN_DIFFERS,
            None,
            f"The module was compiled by Lean {ours.lean_version} ({ours.git_hash}), "
            f"the challenge by Lean {theirs.lean_version} ({theirs.git_hash}).",
        )
    if ours.imports != theirs.imports:
        yield found(
            Word.IMPORTS_DIFFER,
            None,
            f"The module imports {_listed(ours)}, the challenge {_listed(theirs)}, marks and order counted.",
        )


def _listed(module: Module) -> str:
    names = [shown(each.module) for each in module.imports[:20]]
    return (", ".join(names) or "nothing") + (" and more" if len(module.imports) > len(names) else "")


def _declared(case: _Case) -> Iterator[Finding]:
    module = case.submission
    for name in module.repeated:
        yield found(Word.REDECLARED, name, "The module declares {} more than once.")
    for name in sorted(module.names.keys() & PRIMITIVES):
        yield found(Word.KERNEL_PRIMITIVE, name, "The module declares {}, which is the kernel's own name.")
    if case.is_imported is not None:
        for name in filter(case.is_imported, module.names):
            yield found(Word.REDECLARED, name, "The module declares {}, which one of its imports declares.")


# What it rests on


def _rests_on(case: _Case, reading: Reading, pair: Comparison | None, roots: Collection[Name]) -> _Reach:
    """Follow constants through all they refer to, within the module."""
    reach, walk = _Reach(), Walk(reading)
    seen, todo = set(roots), list(roots)
    while todo:
        name = todo.pop()
        constant = case.submission.constant(name)
        if constant is None:
            _judge_imported(case, name, reach)
            continue
        reach.constants += 1
        _judge(case, pair, constant, reach)
        names, is_open = set(constant.relatives()), False
        for place in constant.expressions():
            found_there, unbound = walk.constants(place)
            names |= found_there
            is_open |= unbound
        if is_open:
            reach.findings.append(
                found(Word.OPEN_TERM, name, "{} has a variable in it that stands for nothing.")
            )
        if SORRY in names and name not in roots and _is_challenges(pair, name):
            reach.statement_has_sorry = True
            names.discard(SORRY)
        new = names - seen
        seen |= new
        todo += new
    if pair is not None:
        _judge_rest(case, pair, walk, seen, reach)
    reach.axioms.sort(key=shown)
    reach.findings.sort(key=lambda each: (each.word, each.sentence))
    return reach


def _is_challenges(pair: Comparison | None, name: Name) -> bool:
    return pair is not None and pair.difference(name) is None


def _judge_rest(case: _Case, pair: Comparison, walk: Walk, seen: Collection[Name], reach: _Reach) -> None:
    """Find what is admitted in the module and is nothing that its target rests on."""
    for name in case.submission.names:
        constant = None if name in seen else case.submission.constant(name)
        places = () if constant is None else constant.expressions()
        if any(SORRY in walk.constants(place)[0] for place in places):
            if _is_challenges(pair, name):
                reach.statement_has_sorry = True
            else:
                reach.findings.append(found(Word.SORRY, name, "{} is admitted, not proved."))


def _judge(case: _Case, pair: Comparison | None, constant: Constant, reach: _Reach) -> None:
    if constant.kind is Kind.AXIOM:
        # An axiom of the module's own can state anything under an allowed name, unless the challenge has it
        # too.
        asked = pair is not None and pair.difference(constant.name) is None
        _judge_axiom(case, constant.name, reach, "which the module declares", allowed=asked)
    if constant.safety is Safety.UNSAFE:
        reach.findings.append(found(Word.UNSAFE, constant.name, "The proof rests on {}, which is unsafe."))
    if constant.safety is Safety.PARTIAL:
        reach.findings.append(found(Word.PARTIAL, constant.name, "The proof rests on {}, which is partial."))


def _judge_imported(case: _Case, name: Name, reach: _Reach) -> None:
    test = case.is_imported_axiom
    if name in NATIVE:
        _judge_axiom(case, TRUST_COMPILER, reach, f"for it rests on {shown(name)}")
    if name in KNOWN_AXIOMS if test is None else test(name):
        _judge_axiom(case, name, reach, "which is imported")
    if case.is_imported is not None and not case.is_imported(name):
        reach.findings.append(
            found(
                Word.DANGLING, name, "The proof rests on {}, which neither the module nor an import declares."
            )
        )


def _judge_axiom(case: _Case, name: Name, reach: _Reach, whose: str, *, allowed: bool = True) -> None:
    reach.axioms.append(name)
    if not allowed or name not in case.allowed_axioms:
        word = Word.NATIVE_DECIDE if name in BELIEVING else Word.AXIOM
        word = Word.SORRY if name == SORRY else word
        reach.findings.append(found(word, name, f"The proof rests on the axiom {{}}, {whose}."))
