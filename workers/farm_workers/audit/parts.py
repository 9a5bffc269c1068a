"""Audit step, parts: computes how each part of a statement and each declaration of a module stands.

It only adds to an audit: no finding and no verdict of a line depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from farm_workers.audit.admitted import Admitted, admitted_by, is_open_value
from farm_workers.audit.audit import Rules, parts_below, target_of
from farm_workers.audit.compiled import is_compiled
from farm_workers.audit.declarations import Constant, ConstantKind, Module, Safety
from farm_workers.audit.findings import Findings, ModuleFinding, Word
from farm_workers.audit.kernel import BELIEVING, KNOWN_AXIOMS, SORRY
from farm_workers.audit.names import shown
from farm_workers.audit.olean import MalformedOlean, Name
from farm_workers.audit.rests import Rests, Source, with_sorry
from farm_workers.audit.standing import MOST_BESIDE, Declared, Part, Standing, Standings, listed
from farm_workers.audit.statement import StatementComparison, compare
from farm_workers.audit.terms import Reading, Terms, body_of

#: The findings beside which other declarations of a module may be proved.
_APART = frozenset(
    {Word.HAS_SORRY, Word.AXIOM, Word.TARGET_MISSING, Word.NOT_A_THEOREM, Word.UNIVERSE_MISMATCH}
    | {Word.STATEMENT_MISMATCH, Word.PREREQUISITE_DIFFERS, Word.NO_THEOREM}
)


def leave_others(findings: Iterable[ModuleFinding]) -> bool:
    """Return whether the kernel can still check the other declarations of a module."""
    return all(each.word in _APART for each in findings)


def with_standings(
    findings: Findings,
    submission: Module,
    challenge: Module | None,
    rules: Rules,
    *,
    ends: tuple[int, int] | None,
    source: Module | None = None,
    lists: bool = False,
) -> Findings:
    """Return findings with the standings of the statement's parts, and of all declarations with `lists`.

    `source` is the submission's own file, which has the places of declarations. Until the caller knows that
    the kernel accepts the module, `Standings.unchecked` holds.
    """
    if submission.is_module or any(each.word is Word.BAD_CHALLENGE for each in findings.findings):
        return findings
    look = _Look.at(submission, challenge, rules, findings)
    declared, left_off = None, 0
    if lists:
        places = _places(submission if source is None else source)
        declared, left_off = listed([look.declared(name, places) for name in submission.names])
    parts = None
    if challenge is not None and not challenge.is_module:
        names = sorted(parts_below(challenge, rules.statement_from or (0, 0)), key=_by_place(challenge))
        target, _ = target_of(challenge, ends)
        parts = [look.part(name, findings.target if name == target else name) for name in names]
    found = Standings(parts=parts, declarations=declared, left_off=left_off)
    is_sound = leave_others(findings.findings)
    return replace(findings, standings=found if is_sound else found.unchecked())


def _by_place(challenge: Module) -> Callable[[Name], tuple[tuple[int, int], str]]:
    places = challenge.ends()
    return lambda name: (places.get(name, (0, 0)), shown(name))


def _places(module: Module) -> Mapping[Name, tuple[int, int]]:
    """Return where the declarations begin; nothing for a file with places that Lean does not write."""
    try:
        return module.starts()
    except MalformedOlean:
        return {}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Look:
    """A module, and the open constants and axioms below each of its constants.

    `modules` are the module and that of a context above it. `open` are its constants with a sorry, `stated`
    those of the dataset, and `faulty` the constants against which there is a finding besides a sorry.
    """

    module: Module
    modules: Sequence[Module]
    pair: StatementComparison | None
    reading: Reading
    rests: Rests
    open: set[Name]
    stated: set[Name]
    faulty: set[Name | None]

    @classmethod
    def at(cls, module: Module, challenge: Module | None, rules: Rules, findings: Findings) -> _Look:
        reading, pair = Reading(module.olean, Terms()), None
        if challenge is not None:
            parts = parts_below(challenge, rules.statement_from or (0, 0))
            pair = StatementComparison(
                module, challenge, reading, parts, rules.answers, exact_labels=rules.exact_labels
            )
        opened = with_sorry(module, module.names)
        stated = set[Name]() if challenge is None else with_sorry(challenge, challenge.names)
        sources = _Sources(module, pair, rules, frozenset(findings.believed), opened)
        return cls(
            module=module,
            modules=[module, *([] if rules.context is None else [rules.context])],
            pair=pair,
            reading=reading,
            rests=Rests(module, sources.of),
            open=opened,
            stated=stated.union(*rules.above_admitted.values()),
            faulty={each.name for each in findings.findings if each.word is not Word.HAS_SORRY},
        )

    def declared(self, name: Name, places: Mapping[Name, tuple[int, int]]) -> Declared:
        """Return a declaration with its standing."""
        below, more = self.rests.open_below(name)
        rests_on = list(islice((each for each in below if each != name), MOST_BESIDE))
        return Declared(
            name=name,
            kind=self.module.kind(name).value,
            verdict=self._standing(name, is_open=more or bool(rests_on), contains=name in self.open),
            axioms=list(islice(self.rests.axioms(name), MOST_BESIDE)),
            rests_on=rests_on,
            place=places.get(name),
        )

    def part(self, name: Name, by: Name | None) -> Part:
        """Return a part of the statement, for which the module's theorem `by` is judged."""
        constant = None if by is None else self.module.constant(by)
        if by is None or constant is None:
            return Part(name=name, by=name, verdict=Standing.MISSING)
        if not self._states(constant, name):
            return Part(name=name, by=by, verdict=Standing.OTHER_STATEMENT)
        if constant.kind is ConstantKind.AXIOM:
            return Part(name=name, by=by, verdict=Standing.AXIOM)
        below, more = self.rests.open_below(by)
        holds = admitted_by(self.reading, constant) if by in self.open else Admitted.NOTHING
        stated = self._stated_by(constant) | {by}
        rests_on = [each for each in below if each not in stated]
        rests_on += [by] if holds is Admitted.STATED else []
        is_open = more or bool(rests_on)
        verdict = self._standing(by, is_open=is_open, contains=holds is Admitted.MORE)
        return Part(name=name, by=by, verdict=verdict, rests_on=rests_on[:MOST_BESIDE])

    def _stated_by(self, constant: Constant) -> set[Name]:
        """Return the dataset's open constants of which a theorem's type speaks and its proof may, too.

        Those are values, and whatever the proof does not reach. The type may reach others by way of the
        submission's proofs.
        """
        stated = self.stated.intersection(self.rests.open_below(constant.type)[0])
        if not stated or constant.value is None:
            return stated
        used = set(self.rests.open_below(body_of(self.module.olean, constant.value))[0])
        return {each for each in stated if each not in used or is_open_value(self.modules, each)}

    def _standing(self, name: Name, *, is_open: bool, contains: bool) -> Standing:
        kind = self.module.kind(name)
        known = (
            (Standing.AXIOM, kind is ConstantKind.AXIOM),
            (Standing.REFUSED, name in self.faulty or self.rests.is_refused(name)),
            (Standing.OPEN, contains),
            (Standing.RESTS_ON_OPEN, is_open),
            (Standing.UNCHECKED, self.rests.is_doubted(name)),
            (Standing.PROVED, kind is ConstantKind.THEOREM),
        )
        return next((word for word, applies in known if applies), Standing.DEFINED)

    def _states(self, constant: Constant, asked: Name) -> bool:
        """Return whether a constant is a theorem, or an axiom, with the challenge's statement of a name."""
        differences = list[ModuleFinding]()
        if self.pair is None or constant.kind not in (ConstantKind.THEOREM, ConstantKind.AXIOM):
            return False
        compare(self.pair, constant, asked, differences)
        return not differences


class _Sources:
    """Finds the meaning of a name for the constants that reach it, by the rules of an audit."""

    def __init__(
        self,
        module: Module,
        pair: StatementComparison | None,
        rules: Rules,
        believed: frozenset[Name],
        opened: set[Name],
    ) -> None:
        self._module, self._pair, self._rules = module, pair, rules
        self._believed, self._open = believed, opened

    def of(self, name: Name) -> Source:
        """Return the meaning of a name."""
        constant = self._module.constant(name)
        return self._imported(name) if constant is None else self._own(constant)

    def _own(self, constant: Constant) -> Source:
        name, is_unsafe = constant.name, constant.safety is not Safety.SAFE
        if constant.kind is not ConstantKind.AXIOM:
            return Source(open=[name] if name in self._open else (), refused=is_unsafe)
        if is_compiled(constant, self._module.olean):
            is_believed = self._rules.native and self._rules.evaluates
            return Source(
                axioms=[name], refused=not is_believed, doubted=is_believed and name not in self._believed
            )
        is_stated = self._pair is not None and self._pair.is_same(name)
        return Source(axioms=[name], refused=is_unsafe or not is_stated or not self._allows([name]))

    def _imported(self, name: Name) -> Source:
        rules, has = self._rules, self._rules.is_imported
        if name in rules.left_out or name in BELIEVING or (has is not None and not has(name)):
            return Source(axioms=[name] if name in KNOWN_AXIOMS else (), refused=True)
        below = rules.below(name)
        admitted = () if rules.permits_library or SORRY in rules.allowed_axioms else below.sorries
        return Source(
            open=sorted({*rules.above_admitted.get(name, ()), *admitted}, key=shown),
            axioms=sorted(below.axioms, key=shown),
            refused=not self._allows(below.axioms),
        )

    def _allows(self, axioms: Iterable[Name]) -> bool:
        rules = self._rules
        trusted = {SORRY} | (BELIEVING if rules.native else set())
        return all(each in rules.allowed_axioms or each in trusted for each in axioms)
