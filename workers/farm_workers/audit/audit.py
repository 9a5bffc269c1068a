"""Audit step: decides whether a compiled module proves the challenge's theorem, by comparing the two files.

It does not check proofs again: Lean itself wrote the file, so each constant is trusted to have passed Lean's
kernel. The audit looks at names, statements, axioms and kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from farm_workers.audit.admitted import Admitted, admitted_by, is_open_value
from farm_workers.audit.answer_forms import faults
from farm_workers.audit.answer_texts import answers_of
from farm_workers.audit.answers import AnswerRules
from farm_workers.audit.compiled import is_compiled
from farm_workers.audit.declarations import Constant, ConstantKind, Module, Safety
from farm_workers.audit.dependencies import NOTHING, Below
from farm_workers.audit.digest import statement_digest
from farm_workers.audit.extensions import influences
from farm_workers.audit.families import require_families
from farm_workers.audit.findings import Findings, ModuleFinding, Stated, Word, found
from farm_workers.audit.forbidden import forbidden_uses
from farm_workers.audit.kernel import BELIEVING, KNOWN_AXIOMS, PRIMITIVES, SORRY
from farm_workers.audit.names import shown
from farm_workers.audit.negation import negation_fault
from farm_workers.audit.olean import Name
from farm_workers.audit.rests import with_sorry
from farm_workers.audit.sentences import Sentences
from farm_workers.audit.standing import permits
from farm_workers.audit.statement import StatementComparison, below, compare
from farm_workers.audit.terms import Reading, Terms, Walk, body_of, mentions
from farm_workers.audit.unchecked import is_made_to_run

#: The axioms that every Lean proof may use.
STANDARD_AXIOMS: frozenset[Name] = frozenset({("propext",), ("Classical", "choice"), ("Quot", "sound")})

#: The order of a proof's trusted parts in messages.
_ORDER = {word: number for number, word in enumerate(Word)}

#: The most theorems with the target's statement that are judged for it, if none has its name.
_MOST_WITH_STATEMENT = 8

#: A predicate on names; None if the facts for it are missing.
Test = Callable[[Name], bool] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """The rules of an audit, besides the challenge.

    `native` lets a proof trust the compiler; `evaluates` means that the caller evaluates the trusted terms
    again (`Findings.believed`). `is_imported` and `is_imported_axiom` are predicates on the names that the
    imports declare. `left_out` are constants of the module that are not audited, `mentioned` all names in the
    terms of the audited ones, None if they were not collected. `dependencies` returns the axioms and sorries
    below an imported constant, None if they are unknown; `permits_library` allows proofs that rest on a sorry
    of the imports. `above` maps each constant of the context above, which is another module, to those below
    it in the imports; `above_has_sorry` means that the context has a sorry, and `above_admitted` maps
    constants to the admitted constants of the context that they rest on. With `parts_from` all theorems that
    the challenge leaves open below that line and column have to be proved. Constants that are `permitted`
    (`standing.permits`) may contain a sorry; `statement_from` is where the challenge's statement begins,
    whose open theorems are permitted in the same way. `answers` are the definitions that it leaves open and
    the module may give, None if there are none. `forbidden` are constants that the proof must not reach,
    unless its statement does. With `negates` the challenge has to state the negation of the theorem whose
    text ends at that line and column. `context` is the module of a context above, if that is another.
    """

    allowed_axioms: Collection[Name] = STANDARD_AXIOMS
    native: bool = False
    evaluates: bool = False
    is_imported: Test = None
    is_imported_axiom: Test = None
    left_out: Mapping[Name, Safety] = field(default_factory=dict)
    mentioned: Collection[Name] | None = None
    dependencies: Callable[[Name], Below] | None = None
    permits_library: bool = False
    above: Mapping[Name, Below] = field(default_factory=dict)
    above_has_sorry: bool = False
    above_admitted: Mapping[Name, Collection[Name]] = field(default_factory=dict)
    parts_from: tuple[int, int] | None = None
    permitted: Collection[str] = ()
    statement_from: tuple[int, int] | None = None
    answers: AnswerRules | None = None
    forbidden: Collection[Name] = ()
    negates: tuple[int, int] | None = None
    context: Module | None = None

    @property
    def exact_labels(self) -> bool:
        """Whether sorries have to stand where the challenge's do: a context above has others."""
        has_none = self.mentioned is not None and SORRY not in self.mentioned
        return has_none or self.above_has_sorry

    def below(self, name: Name) -> Below:
        """Return the axioms and sorries below a constant that the module does not declare.

        Raises `NotInTable` for an imported constant about which nothing is known.
        """
        if name in self.above:
            return self.above[name]
        is_axiom = self.is_imported_axiom or KNOWN_AXIOMS.__contains__
        own = Below(axioms=frozenset([name])) if is_axiom(name) else NOTHING
        if self.dependencies is None or (self.is_imported is not None and not self.is_imported(name)):
            return own
        return own | self.dependencies(name)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Case:
    """The two modules of one audit, and its rules."""

    submission: Module
    challenge: Module | None
    rules: Rules
    reading: Reading
    pair: StatementComparison | None
    own_parts: frozenset[Name] = frozenset()


@dataclass(slots=True)
class _Reach:
    """The constants and axioms that a target rests on."""

    findings: list[ModuleFinding] = field(default_factory=list)
    axioms: list[Name] = field(default_factory=list)
    believed: list[Name] = field(default_factory=list)
    constants: int = 0
    compared: tuple[Name, ...] = ()
    statement_has_sorry: bool = False
    rests_on_sorry_of: Collection[Name] = ()
    permitted: list[Name] = field(default_factory=list)
    library_sorries: set[Name] = field(default_factory=set)
    trusts_compiler: bool = False


def audit(
    submission: Module,
    challenge: Module | None,
    target: Name | None,
    rules: Rules | None = None,
    *,
    ends: tuple[int, int] | None = None,
) -> Findings:
    """Decide whether a module's theorem `target` proves the challenge's, by allowed means only.

    `target` is the full name; without it, the target is the theorem that the challenge leaves open and whose
    text is the last, or ends at this line and column. If the module does not declare that name, one of its
    own theorems with the challenge's statement is judged instead. A module without findings is accepted.
    Raises `MalformedOlean` when one of the files is not in Lean's format.
    """
    case = _case(submission, challenge, rules)
    findings, reach = list(_files(submission, challenge)), _Reach()
    if not any(each.word is Word.UNSUPPORTED for each in findings):
        findings += _declared(case)
        target, sentence = (target, "") if target is not None else target_of(challenge, ends)
        if target is None:
            findings.append(found(Word.BAD_CHALLENGE, None, sentence))
        else:
            findings += _negation(case, target)
            target, reach = _proof_of(case, target)
    return _with_sentence(case, _result(case, target, [*findings, *reach.findings], reach))


def _negation(case: _Case, target: Name) -> list[ModuleFinding]:
    """Return the finding against a challenge that has to state a negation and does not, if there is one."""
    challenge, rules = case.challenge, case.rules
    if rules.negates is None or challenge is None:
        return []
    stated, _ = target_of(challenge, rules.negates)
    foreign = () if rules.context is None else rules.context.names
    fault = negation_fault(challenge, target, stated, foreign)
    return [] if fault is None else [fault]


def _with_sentence(case: _Case, findings: Findings) -> Findings:
    """Add the sentence of its theorem to the findings about a proof without a fault."""
    target = None if findings.target is None else case.submission.constant(findings.target)
    if case.challenge is None or target is None or not findings.accepted:
        return findings
    rules = case.rules
    sentence = Sentences(case.submission, rules.context).of(
        target, axioms=findings.axioms, allowed=rules.allowed_axioms, native=rules.native
    )
    return replace(findings, sentence=sentence)


def audit_all(submission: Module, rules: Rules) -> Findings:
    """Decide whether all theorems of a module are proved, by allowed means only, without a challenge."""
    case = _case(submission, None, rules)
    findings, reach = list(_files(submission, None)), _Reach()
    if not findings:
        findings += _declared(case)
        if next(submission.of_kind(ConstantKind.THEOREM), None) is None:
            findings.append(
                found(Word.NO_THEOREM, None, "There is nothing to prove: the module has no theorem.")
            )
        roots = [name for name in submission.names if not is_made_to_run(submission, name)]
        reach = _rests_on(case, roots, None)
    return _result(case, None, [*findings, *reach.findings], reach)


def audit_statement(
    module: Module, rules: Rules, *, written: Module, ends: tuple[int, int] | None = None
) -> Findings:
    """Return the facts of the statement that a challenge's own module leaves open; nothing is proved.

    The statement is the last theorem, or the one that ends at this line and column, by the places in the
    module as Lean has `written` it: a rebuilt one has none. Its sorries, its axioms and other theorems that
    the module leaves open are facts and no faults.
    """
    case = _case(module, None, rules)
    findings, stated, target = list(_files(module, None)), None, None
    if not findings:
        findings += _declared(case)
        target, sentence = target_of(written, ends)
        constant = None if target is None else module.constant(target)
        if constant is None:
            findings.append(found(Word.BAD_CHALLENGE, None, sentence))
        else:
            stated = _stated_by(case, constant)
    return replace(_result(case, target, findings, _Reach()), stated=stated)


def _stated_by(case: _Case, target: Constant) -> Stated:
    """Return the facts of a theorem's statement."""
    module, rules = case.submission, case.rules
    direct = Walk(case.reading).constants(target.type)[0]
    reached = below(module, case.reading, target.type)
    own = {name for name in reached if name in module.names}
    imported = [rules.below(name) for name in reached - own]
    axioms = {name for name in own if module.kind(name) is ConstantKind.AXIOM}
    axioms = axioms.union(*(each.axioms for each in imported))
    sorries = {name for name, _ in _admitted(case) if name in own}
    sorries = sorries.union(*(each.sorries for each in imported))
    sorries |= {target.name} if SORRY in direct else set()
    return Stated(
        type_sha256=statement_digest(module, case.reading, target, own),
        axioms=tuple(sorted(axioms - {SORRY}, key=shown)),
        sorries=tuple(sorted(sorries, key=shown)),
        constants=tuple(sorted(own, key=shown)),
        left_open=tuple(sorted({*left_open(module)} - {target.name}, key=shown)),
    )


def _case(submission: Module, challenge: Module | None, rules: Rules | None) -> _Case:
    require_families(submission)
    reading, rules = Reading(submission.olean, Terms()), rules or Rules()
    pair, own = None, frozenset[Name]()
    if challenge is not None:
        own = parts_below(challenge, rules.statement_from or (0, 0)) if rules.permitted else own
        parts = frozenset[Name]() if rules.parts_from is None else parts_below(challenge, rules.parts_from)
        pair = StatementComparison(
            submission,
            challenge,
            reading,
            parts,
            rules.answers,
            lambda name: rules.below(name).axioms,
            exact_labels=rules.exact_labels,
        )
    return _Case(
        submission=submission, challenge=challenge, rules=rules, reading=reading, pair=pair, own_parts=own
    )


def parts_below(challenge: Module, above: tuple[int, int]) -> frozenset[Name]:
    """Return the theorems that a challenge leaves open below a line and column, or without a place."""
    places = challenge.ends()
    return frozenset(name for name in left_open(challenge) if name not in places or places[name] > above)


def target_of(challenge: Module | None, ends: tuple[int, int] | None) -> tuple[Name | None, str]:
    """Return the theorem that a challenge states last and leaves open; or None and the reason.

    Other theorems that it leaves open belong to its own statement.
    """
    if challenge is None:
        return None, "No target was given, and no challenge defines one."
    found_open, places = left_open(challenge), challenge.ends()
    last = found_open
    if any(name in places for name in found_open):
        at = max(places.values()) if ends is None else ends
        last = [name for name in found_open if places.get(name) == at]
    if len(last) == 1:
        return last[0], ""
    if found_open and not last:
        return None, "The challenge's last statement is no theorem with `sorry` as its proof."
    count = "more than one" if found_open else "no"
    return None, f"The challenge has {count} theorem with `sorry` as its proof."


def challenge_fault(
    challenge: Module,
    ends: tuple[int, int],
    negates: tuple[int, int] | None = None,
    foreign: Collection[Name] = (),
) -> ModuleFinding | None:
    """Return why no module can prove a challenge whose statement ends at a line and column, None if one can.

    A challenge that states a negation has the statement itself end at `negates`. `foreign` are constants of a
    context above it. Raises `MalformedOlean`.
    """
    target, sentence = target_of(challenge, ends)
    if target is None:
        return found(Word.BAD_CHALLENGE, None, sentence)
    if negates is None:
        return None
    stated, _ = target_of(challenge, negates)
    return negation_fault(challenge, target, stated, foreign)


def left_open(challenge: Module) -> list[Name]:
    """Return the theorems of a challenge that have `sorry` for a proof. Raises `MalformedOlean`."""
    reading = Reading(challenge.olean, Terms())
    theorems = map(challenge.constant, challenge.of_kind(ConstantKind.THEOREM))
    return [each.name for each in theorems if each and mentions(reading, each.expressions(), SORRY)]


def _proof_of(case: _Case, target: Name) -> tuple[Name, _Reach]:
    """Return the theorem that is judged for the target, the target itself if it exists; and its reach."""
    if target in case.submission.names:
        return target, _audited(case, target, target)
    judged = None
    alike = sorted(_with_statement_of(case, target), key=lambda name: name[-1:] != target[-1:])
    for name in alike[:_MOST_WITH_STATEMENT]:
        reach = _audited(case, name, target)
        if not reach.findings:
            return name, reach
        judged = judged or (name, reach)
    return judged or (target, _Reach(findings=[_missing(case, target)]))


def _with_statement_of(case: _Case, target: Name) -> Iterator[Name]:
    """Yield the module's theorems under other names that have the target's statement.

    Theorems of the challenge itself are excluded: the submission did not prove them.
    """
    if case.pair is None or target in case.rules.left_out:
        return
    asked = case.pair.challenge.constant(target)
    for name in case.submission.of_kind(ConstantKind.THEOREM):
        if asked is not None and name not in case.pair.challenge.names:
            constant = case.submission.constant(name)
            if constant is not None and case.pair.states(constant, asked):
                yield name


def _audited(case: _Case, target: Name, asked: Name) -> _Reach:
    """Return the reach of the module's theorem `target`, compared with the challenge's theorem `asked`."""
    parts = frozenset[Name]() if case.pair is None else case.pair.parts
    others = sorted(parts - {asked}, key=shown)
    wanted = [(target, asked), *zip(others, others, strict=True)]
    findings, compared = list[ModuleFinding](), list[Name]()
    for name, stated in wanted:
        constant = case.submission.constant(name)
        if constant is None:
            return _Reach(findings=[_missing(case, name)])
        compared += _stated(case, constant, stated, findings)
    if case.pair is not None and case.rules.answers is not None:
        findings += faults(case.pair, case.rules.answers, evaluates=case.rules.evaluates)
    reach = _rests_on(case, list(dict.fromkeys([target, *others, *_beside(case)])), target)
    reach.findings[:0] = findings
    reach.compared = tuple(compared)
    return reach


def _beside(case: _Case) -> list[Name]:
    """Return the constants that are judged with a target: answers, and parts that may stay open."""
    given = frozenset[Name]() if case.pair is None else case.pair.given
    parts = {name for name in case.own_parts if permits(case.rules.permitted, name)}
    return sorted(given | (parts & case.submission.names.keys()), key=shown)


def _stated(case: _Case, constant: Constant, asked: Name, findings: list[ModuleFinding]) -> tuple[Name, ...]:
    """Add the findings against a constant as the challenge's theorem of a name; return the compared names."""
    name, kind = constant.name, constant.kind
    if kind is not ConstantKind.THEOREM:
        findings.append(found(Word.NOT_A_THEOREM, name, f"{{}} is not a theorem but of kind {kind}."))
    return () if case.pair is None else compare(case.pair, constant, asked, findings)


def _missing(case: _Case, target: Name) -> ModuleFinding:
    if target in case.rules.left_out:
        safety = case.rules.left_out[target]
        return found(Word.NOT_A_THEOREM, target, f"{{}} is not a theorem but a definition that is {safety}.")
    return found(Word.TARGET_MISSING, target, "The module declares no {}.")


def _result(case: _Case, target: Name | None, findings: list[ModuleFinding], reach: _Reach) -> Findings:
    module = case.submission
    extensions = {} if module.is_module else module.extensions()
    given = () if case.pair is None else tuple(answers_of(case.pair))
    return Findings(
        target=target,
        findings=tuple(findings),
        axioms=tuple(reach.axioms),
        believed=tuple(reach.believed),
        reached=reach.constants,
        compared=reach.compared,
        not_checked=tuple(_not_checked(case)),
        lean_version=module.lean_version,
        git_hash=module.git_hash,
        imports=tuple(each.module for each in module.imports),
        constants=len(module.names),
        extensions=tuple(extensions.items()),
        influences=influences(extensions),
        statement_has_sorry=reach.statement_has_sorry,
        rests_on_sorry_of=tuple(sorted(set(reach.rests_on_sorry_of).difference(reach.permitted), key=shown)),
        permitted=tuple(sorted(reach.permitted, key=shown)),
        trusts_compiler=reach.trusts_compiler,
        library_sorries=tuple(sorted(reach.library_sorries, key=shown)),
        answers=given,
        believes_answer=any(case.rules.answers.is_free(each.name) for each in given)
        if case.rules.answers
        else False,
    )


def _not_checked(case: _Case) -> Iterator[str]:
    if case.challenge is None:
        yield "Statement, imports and toolchain were not compared: there is no challenge."
    if case.rules.is_imported is None:
        yield "Clashes with imported names were not checked: no list of imported names was given."
    if case.rules.is_imported_axiom is None:
        yield "Among imported constants only well-known axioms were recognised: no list of axioms was given."
    if case.rules.dependencies is None and case.submission.imports:
        yield "Axioms and sorries below imported theorems were not found: no table of dependencies was given."


# The two files


def _files(ours: Module, theirs: Module | None) -> Iterator[ModuleFinding]:
    modules: dict[str, Module | None] = {"module": ours, "challenge": theirs}
    for what, module in modules.items():
        if module is not None and module.is_module:
            yield found(
                Word.UNSUPPORTED,
                None,
                f"The {what} belongs to Lean's module system, whose files come in several parts.",
            )
    if theirs is None:
        return
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
            f"The module imports {_listed(ours)}, the challenge {_listed(theirs)}; "
            "modifiers and order count.",
        )


def _listed(module: Module) -> str:
    names = [shown(each.module) for each in module.imports[:20]]
    return (", ".join(names) or "nothing") + (" and more" if len(module.imports) > len(names) else "")


def _declared(case: _Case) -> Iterator[ModuleFinding]:
    module, is_imported = case.submission, case.rules.is_imported
    for name in module.repeated:
        yield found(Word.REDECLARED, name, "The module declares {} more than once.")
    for name in sorted(module.names.keys() & PRIMITIVES):
        yield found(Word.KERNEL_PRIMITIVE, name, "The module declares {}, a name reserved for the kernel.")
    for name in module.of_kind(ConstantKind.QUOTIENT):
        if name not in PRIMITIVES:
            sentence = "The module declares {} of the kind quotient, which only Lean's own `Quot` is."
            yield found(Word.KERNEL_PRIMITIVE, name, sentence)
    if is_imported is not None:
        for name in filter(is_imported, module.names):
            yield found(Word.REDECLARED, name, "The module declares {}, which one of its imports declares.")


# Dependencies


def _rests_on(case: _Case, roots: list[Name], target: Name | None) -> _Reach:
    """Follow constants through all they refer to, within the module."""
    reach, walk = _Reach(), Walk(case.reading)
    admitted = _judge_sorry(case, target, reach)
    _judge_compiled(case, reach)
    seen, todo = set(roots), list(roots)
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
            reach.findings.append(found(Word.OPEN_TERM, name, "{} contains an unbound variable."))
        new = names - seen
        seen |= new
        todo += new
    _judge_library(case, roots, reach)
    reach.rests_on_sorry_of = _open_below(case, target, seen, admitted)
    reach.findings += _forbidden(case, roots, seen)
    reach.axioms.sort(key=shown)
    reach.findings.sort(key=lambda each: (_ORDER[each.word], each.sentence))
    return reach


def _forbidden(case: _Case, roots: list[Name], reached: set[Name]) -> Iterator[ModuleFinding]:
    """Yield a finding for each forbidden constant that the proofs of the roots use.

    A forbidden axiom is also found below imported constants; those below a context are the dataset's.
    """
    forbidden = frozenset(case.rules.forbidden)
    if not forbidden:
        return

    def behind(name: Name) -> Collection[Name]:
        return () if name in case.rules.above else forbidden & case.rules.below(name).axioms

    own = case.submission.names
    if names := (forbidden & reached).union(*(behind(name) for name in reached if name not in own)):
        yield from forbidden_uses(case.submission, case.reading, case.pair, roots, names, behind)


def _judge(case: _Case, constant: Constant, reach: _Reach) -> None:
    if is_compiled(constant, case.reading.olean):
        _judge_believed(case, constant.name, reach)
    elif constant.kind is ConstantKind.AXIOM:
        # An axiom of the module's own can state anything under an allowed name, unless the challenge has it
        # too, and all that it speaks of.
        asked = case.pair is not None and case.pair.is_same(constant.name)
        _judge_axiom(case, constant.name, reach, "which the module declares", allowed=asked)
    if constant.safety is not Safety.SAFE:
        reach.findings.append(_unsafe(constant.name, constant.safety))


def _judge_believed(case: _Case, name: Name, reach: _Reach) -> None:
    """Judge an axiom about the result of compiled code; `_judge_compiled` finds it if none is allowed."""
    reach.axioms.append(name)
    if case.rules.evaluates:
        reach.believed.append(name)
    elif case.rules.native:
        sentence = "The proof rests on the axiom {}, whose term cannot be evaluated again here."
        reach.findings.append(found(Word.AXIOM, name, sentence))


def _unsafe(name: Name, safety: Safety) -> ModuleFinding:
    word = Word.PARTIAL if safety is Safety.PARTIAL else Word.UNSAFE
    return found(word, name, f"The proof rests on {{}}, which is {safety}.")


def _judge_imported(case: _Case, name: Name, reach: _Reach) -> None:
    rules = case.rules
    if name in rules.left_out:
        reach.findings.append(_unsafe(name, rules.left_out[name]))
        return
    if name in BELIEVING:
        sentence = "The proof trusts the compiler: it rests on {}."
        reach.findings.append(found(Word.NATIVE_DECIDE, name, sentence))
        return
    below = rules.below(name)
    reach.library_sorries |= below.sorries
    for axiom in sorted(below.axioms.difference(reach.axioms), key=shown):
        if axiom in BELIEVING:
            _judge_library_belief(case, axiom, reach)
        else:
            _judge_axiom(case, axiom, reach, "which is imported")
    if rules.is_imported is not None and not rules.is_imported(name):
        reach.findings.append(
            found(
                Word.DANGLING, name, "The proof rests on {}, which neither the module nor an import declares."
            )
        )


def _judge_library_belief(case: _Case, name: Name, reach: _Reach) -> None:
    """Judge an axiom about compiled code that a theorem of the imports rests on."""
    reach.axioms.append(name)
    reach.trusts_compiler = True
    if not case.rules.native:
        sentence = "The proof trusts the compiler: it rests on {}, by way of an imported theorem."
        reach.findings.append(found(Word.NATIVE_DECIDE, name, sentence))


def _judge_library(case: _Case, roots: list[Name], reach: _Reach) -> None:
    """Judge the sorries of the imports that a proof rests on, in its statement too."""
    if SORRY in case.rules.allowed_axioms:
        reach.library_sorries = set()
    if not reach.library_sorries:
        return
    for root in filter(None, map(case.submission.constant, roots if case.pair is not None else [])):
        for name in below(case.submission, case.reading, root.type) - case.submission.names.keys():
            reach.statement_has_sorry |= bool(case.rules.below(name).sorries)
    if not case.rules.permits_library:
        sentence = "The proof rests on {}, which is imported and contains a sorry."
        reach.findings += (found(Word.HAS_SORRY, name, sentence) for name in reach.library_sorries)


def _judge_axiom(case: _Case, name: Name, reach: _Reach, whose: str, *, allowed: bool = True) -> None:
    reach.axioms.append(name)
    if name == SORRY and allowed:
        return  # Its holders were judged: a sorry in the statement belongs to the statement.
    if not allowed or name not in case.rules.allowed_axioms:
        reach.findings.append(found(Word.AXIOM, name, f"The proof rests on the axiom {{}}, {whose}."))


def _judge_sorry(case: _Case, target: Name | None, reach: _Reach) -> set[Name]:
    """Find all admitted constants, and separate those that the statement itself leaves open.

    A constant of the challenge belongs to the statement if all its dependencies do. For the target, and for
    other parts of the statement, only the type belongs to the statement; the proof may repeat
    parts of that type, and then rests on their sorries. An answer may not, but its type can have one, too.
    Return the constants that rest on a sorry of theirs.
    """
    is_allowed, admitted = SORRY in case.rules.allowed_axioms, set[Name]()
    reach.statement_has_sorry = not is_allowed and case.rules.above_has_sorry and case.pair is not None
    given = frozenset[Name]() if case.pair is None else case.pair.given
    found_there = list(_admitted(case))
    asked = {target, *given, *_parts_among(case, found_there)} if case.pair else set[Name]()
    for name, constant in found_there:
        is_stated = case.pair is not None and name not in asked and case.pair.is_same(name)
        holds = admitted_by(case.reading, constant) if name in asked else Admitted.MORE
        is_proved = holds is Admitted.NOTHING or (holds is Admitted.STATED and name not in given)
        admitted |= set() if holds is Admitted.NOTHING else {name}
        if is_allowed:
            continue
        is_named = name in asked and mentions(case.reading, [constant.type], SORRY)
        reach.statement_has_sorry |= is_stated or is_named
        is_open = not is_proved and (not is_stated or name in case.own_parts)
        if is_open and permits(case.rules.permitted, name):
            reach.permitted.append(name)
        elif not is_stated and not is_proved:
            reach.findings.append(
                found(Word.HAS_SORRY, name, "{} contains a sorry: it is admitted, not proved.")
            )
    return admitted


def _parts_among(case: _Case, admitted: Sequence[tuple[Name, Constant]]) -> Iterator[Name]:
    """Yield those of some constants that are theorems which the challenge states and leaves open."""
    if case.pair is None or not admitted:
        return
    left = {*left_open(case.pair.challenge)}
    for name, constant in admitted:
        differences = list[ModuleFinding]()
        if name in case.pair.parts:
            yield name
        elif name in left and constant.kind is ConstantKind.THEOREM:
            compare(case.pair, constant, name, differences)
            if not differences and not case.pair.is_same(name):
                yield name


def _open_below(case: _Case, target: Name | None, reached: set[Name], admitted: set[Name]) -> set[Name]:
    """Return the admitted constants that are reached, without values that the target's statement leaves open.

    Other constants that the statement reaches are left out only if the proof does not reach them.
    """

    def open_in(names: set[Name]) -> set[Name]:
        return (names & admitted).union(*(case.rules.above_admitted.get(name, ()) for name in names))

    found_open = open_in(reached)
    constant = None if target is None else case.submission.constant(target)
    if not found_open or constant is None or constant.value is None:
        return found_open
    stated = open_in(below(case.submission, case.reading, constant.type))
    modules = [each for each in (case.submission, case.rules.context) if each is not None]
    claims = {name for name in stated if not is_open_value(modules, name)}
    if claims:
        body = body_of(case.reading.olean, constant.value)
        stated -= claims & open_in(below(case.submission, case.reading, body))
    return found_open - stated


def _admitted(case: _Case) -> Iterator[tuple[Name, Constant]]:
    """Yield the constants of the module in which there is a sorry."""
    if case.rules.mentioned is not None and SORRY not in case.rules.mentioned:
        return
    found = with_sorry(case.submission, case.submission.names)
    for name in case.submission.names:
        constant = case.submission.constant(name)
        if constant is not None and name in found:
            yield name, constant


def _judge_compiled(case: _Case, reach: _Reach) -> None:
    """Find axioms that trust the compiler, whether the target needs them or not."""
    for name in case.submission.of_kind(ConstantKind.AXIOM):
        constant = case.submission.constant(name)
        if constant is None or not is_compiled(constant, case.reading.olean):
            continue
        reach.trusts_compiler = True
        if not case.rules.native:
            sentence = "The axiom {} trusts the compiler, as native_decide does."
            reach.findings.append(found(Word.NATIVE_DECIDE, name, sentence))
    for name in sorted(BELIEVING.intersection(case.rules.mentioned or ())):
        sentence = "The module trusts the compiler, as native_decide does: it rests on {}."
        reach.findings.append(found(Word.NATIVE_DECIDE, name, sentence))
