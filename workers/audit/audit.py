"""Audit step: whether a compiled module proves what a challenge asks, judged by what the two files hold.

What is not done here is to check proofs again: that each constant went through Lean's kernel is believed of a
file that Lean itself wrote, and the names, statements, axioms and kinds in it are what is audited.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from workers.audit.auxiliary import Auxiliaries
from workers.audit.challenge import target_of
from workers.audit.declarations import Constant, Kind, Module, Safety
from workers.audit.extensions import influence
from workers.audit.findings import Finding, Findings, Word, found
from workers.audit.kernel import KNOWN_AXIOMS, PRIMITIVES
from workers.audit.names import shown
from workers.audit.olean import Name
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

    `target` is the full name; without it, it is the one theorem that the challenge leaves open. Accepted is
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
    if target is None:
        target, sentence = _target(case)
        if target is None:
            findings.append(found(Word.BAD_CHALLENGE, None, sentence))
            return _result(case, None, findings, _Reach(), ())
    return _audited(case, target, findings)


def _target(case: _Case) -> tuple[Name | None, str]:
    if case.challenge is None:
        return None, "There is neither a target nor a challenge that has one."
    chosen = target_of(case.challenge, None)
    return chosen.name, chosen.sentence


def _audited(case: _Case, target: Name, findings: list[Finding]) -> Findings:
    terms = Terms()
    reading = Reading(case.submission.olean, terms)
    compared: tuple[Name, ...] = ()
    constant = case.submission.constant(target)
    if constant is None:
        findings.append(found(Word.TARGET_MISSING, target, "The module declares no {}."))
        return _result(case, target, findings, _Reach(), ())
    if constant.kind is not Kind.THEOREM:
        findings.append(found(Word.NOT_A_THEOREM, target, f"{{}} is no theorem but of kind {constant.kind}."))
    if case.challenge is not None:
        compared = _compare(
            _Comparison(case.submission, case.challenge, reading, Reading(case.challenge.olean, terms)),
            constant,
            findings,
        )
    reach = _rests_on(case, reading, target)
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


# The statement


class _Comparison:
    """The module and the challenge, their terms numbered alike."""

    def __init__(self, submission: Module, challenge: Module, ours: Reading, theirs: Reading) -> None:
        self.submission, self.challenge = submission, challenge
        self.ours, self.theirs = ours, theirs
        self.auxiliaries = Auxiliaries(submission, ours)
        Auxiliaries(challenge, theirs)
        self.kin = _Kin(submission, challenge)

    def declared(self, name: Name) -> bool:
        return name in self.submission.names or name in self.challenge.names

    def difference(self, name: Name) -> str | None:
        """Return what tells the two constants of a name apart, None if nothing does."""
        mine, other = self.submission.constant(name), self.challenge.constant(name)
        if self.auxiliaries.has(name):
            return None  # It was compared as a part of what it occurs in.
        if mine is None or other is None:
            return f"is declared only in the {'challenge' if mine is None else 'module'}"
        if mine.kind is not other.kind:
            return f"is of kind {mine.kind} and not {other.kind}"
        if mine.parameters != other.parameters:
            return "has other universe parameters than the challenge's"
        if self.ours.expression(mine.type) != self.theirs.expression(other.type):
            return "has another type than the challenge's"
        if _content(mine, self.ours) != _content(other, self.theirs):
            return "has another content than the challenge's"
        return self.kin.difference(name)


def _compare(pair: _Comparison, target: Constant, findings: list[Finding]) -> tuple[Name, ...]:
    """Compare the target's statement, and all of the module that it rests on, with the challenge's."""
    asked = pair.challenge.constant(target.name)
    if asked is None or asked.kind is not Kind.THEOREM:
        findings.append(found(Word.BAD_CHALLENGE, target.name, "The challenge has no theorem {}."))
        return ()
    if target.parameters != asked.parameters:
        findings.append(
            found(
                Word.UNIVERSE_MISMATCH, target.name, "{} has other universe parameters than the challenge's."
            )
        )
    if pair.ours.expression(target.type) != pair.theirs.expression(asked.type):
        findings.append(
            found(Word.STATEMENT_MISMATCH, target.name, "{} does not state what the challenge's does.")
        )
    differing, compared = _prerequisites(pair, target)
    findings += differing
    return (target.name, *compared)


def _prerequisites(pair: _Comparison, target: Constant) -> tuple[list[Finding], list[Name]]:
    walk = Walk(pair.ours)
    todo = list(walk.constants(target.type)[0])
    seen, findings, compared = {target.name}, list[Finding](), list[Name]()
    while todo:
        name = todo.pop()
        if name in seen or not pair.declared(name):
            continue
        seen.add(name)
        compared.append(name)
        difference, mine = pair.difference(name), pair.submission.constant(name)
        if mine is None or difference is not None:
            findings.append(
                found(Word.PREREQUISITE_DIFFERS, name, f"{{}}, part of the statement, {difference}.")
            )
            continue
        for place in mine.expressions():
            todo += walk.constants(place)[0]
        todo += (*mine.relatives(), *pair.kin.recursors(name))
    return sorted(findings, key=lambda each: each.sentence), compared


def _content(constant: Constant, reading: Reading) -> tuple[object, ...]:
    value = None if constant.value is None else reading.expression(constant.value)
    rules = tuple((rule.constructor, rule.fields, reading.expression(rule.value)) for rule in constant.rules)
    return (
        constant.safety,
        constant.numbers,
        constant.family,
        constant.constructors,
        constant.parent,
        value,
        rules,
    )


class _Kin:
    """The recursors of inductive types, in two modules."""

    def __init__(self, submission: Module, challenge: Module) -> None:
        self._modules = submission, challenge
        self._recursors: tuple[dict[Name, set[Name]], dict[Name, set[Name]]] | None = None

    def difference(self, name: Name) -> str | None:
        """Return what tells the recursors of a constant in the two modules apart."""
        ours, theirs = self._both(name)
        return None if ours == theirs else "has other recursors than the challenge's"

    def recursors(self, name: Name) -> set[Name]:
        """Return the recursors of a constant, if it is an inductive type."""
        return self._both(name)[0]

    def _both(self, name: Name) -> tuple[set[Name], set[Name]]:
        module = self._modules[0]
        if name not in module.names or module.kind(name) is not Kind.INDUCTIVE:
            return set(), set()
        if self._recursors is None:
            self._recursors = _recursors(self._modules[0]), _recursors(self._modules[1])
        ours, theirs = self._recursors
        return ours.get(name, set()), theirs.get(name, set())


def _recursors(module: Module) -> dict[Name, set[Name]]:
    by_type: dict[Name, set[Name]] = {}
    for name in module.of_kind(Kind.RECURSOR):
        constant = module.constant(name)
        for family in () if constant is None else constant.family:
            by_type.setdefault(family, set()).add(name)
    return by_type


# What it rests on


def _rests_on(case: _Case, reading: Reading, target: Name) -> _Reach:
    """Follow a target through all it refers to, within the module."""
    reach, walk = _Reach(), Walk(reading)
    seen, todo = {target}, [target]
    while todo:
        name = todo.pop()
        constant = case.submission.constant(name)
        if constant is None:
            _judge_imported(case, name, reach)
            continue
        reach.constants += 1
        _judge(case, constant, reach)
        names, is_open = set(constant.relatives()), False
        for place in constant.expressions():
            found_there, unbound = walk.constants(place)
            names |= found_there
            is_open |= unbound
        if is_open:
            reach.findings.append(
                found(Word.OPEN_TERM, name, "{} has a variable in it that stands for nothing.")
            )
        new = names - seen
        seen |= new
        todo += new
    reach.axioms.sort(key=shown)
    reach.findings.sort(key=lambda each: (each.word, each.sentence))
    return reach


def _judge(case: _Case, constant: Constant, reach: _Reach) -> None:
    if constant.kind is Kind.AXIOM:
        _judge_axiom(case, constant.name, reach, "which the module declares")
    if constant.safety is Safety.UNSAFE:
        reach.findings.append(found(Word.UNSAFE, constant.name, "The proof rests on {}, which is unsafe."))
    if constant.safety is Safety.PARTIAL:
        reach.findings.append(found(Word.PARTIAL, constant.name, "The proof rests on {}, which is partial."))


def _judge_imported(case: _Case, name: Name, reach: _Reach) -> None:
    test = case.is_imported_axiom
    if name in KNOWN_AXIOMS if test is None else test(name):
        _judge_axiom(case, name, reach, "which is imported")
    if case.is_imported is not None and not case.is_imported(name):
        reach.findings.append(
            found(
                Word.DANGLING, name, "The proof rests on {}, which neither the module nor an import declares."
            )
        )


def _judge_axiom(case: _Case, name: Name, reach: _Reach, whose: str) -> None:
    reach.axioms.append(name)
    if name not in case.allowed_axioms:
        reach.findings.append(found(Word.AXIOM, name, f"The proof rests on the axiom {{}}, {whose}."))
