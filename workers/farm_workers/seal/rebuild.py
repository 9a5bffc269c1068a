"""Seal step, rebuild: writes the parsed constants of a submission's module into a new one for the kernel.

The new module has the imports, the names and the constants, in the submission's order, and nothing else: no
extension entries, no metadata, and no unsafe or partial constants, which no kernel checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from farm_workers.audit.declarations import (
    CONSTANT,
    HINTS,
    IMPORT,
    MODULE,
    OLDER_MODULE,
    RULE,
    VALUES,
    ConstantKind,
    Module,
    Safety,
    safety_of,
)
from farm_workers.audit.olean import MalformedOlean, Name, header_of
from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import NOTHING
from farm_workers.seal.image import ModuleImage
from farm_workers.seal.native import Axiom, Trusted, require_free
from farm_workers.seal.terms import TermWriter

#: The largest count in a constant: of parameters, fields or constructors.
_MOST = 1 << 16
_HEADER, _TERM, _NAME, _NAMES, _COUNT, _HINTS, _RULES = range(7)
#: The pointers of each kind of constant, and the number of values of each of its marks (truth values and
#: enumerations).
_FIELDS: dict[ConstantKind, tuple[tuple[int, ...], tuple[int, ...]]] = {
    ConstantKind.AXIOM: ((_HEADER,), (2,)),
    ConstantKind.DEFINITION: ((_HEADER, _TERM, _HINTS, _NAMES), (3,)),
    ConstantKind.THEOREM: ((_HEADER, _TERM, _NAMES), ()),
    ConstantKind.OPAQUE: ((_HEADER, _TERM, _NAMES), (2,)),
    ConstantKind.QUOTIENT: ((_HEADER,), (4,)),
    ConstantKind.INDUCTIVE: ((_HEADER, _COUNT, _COUNT, _NAMES, _NAMES, _COUNT), (2, 2, 2)),
    ConstantKind.CONSTRUCTOR: ((_HEADER, _NAME, _COUNT, _COUNT, _COUNT), (2,)),
    ConstantKind.RECURSOR: ((_HEADER, _NAMES, _COUNT, _COUNT, _COUNT, _COUNT, _RULES), (2, 2)),
}
#: The first words of the infos of each kind of constant.
INFO = {kind: header_of(tag, 1, 16) for tag, kind in enumerate(ConstantKind)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Rebuilt:
    """A rebuilt module: its file, the addresses of its constants, and facts about the submission's.

    `left_out` are the unsafe and partial constants, `mentioned` all names in the terms of the others;
    `is_open` is true if these terms contain a free variable or a hole.
    """

    file: memoryview
    constants: dict[Name, int]
    left_out: dict[Name, Safety]
    mentioned: set[Name]
    is_open: bool
    image: ModuleImage = field(repr=False)


def rebuild(lean: Lean, module: Module, image: ModuleImage, *, native: bool) -> Rebuilt:
    """Rebuild a module; raises `MalformedOlean` if an object has another shape than its place requires."""
    return _Builder(lean, module, image, native=native).rebuilt()


class Copies:
    """Puts constants and terms of a module into an image, beside a module that is rebuilt there."""

    def __init__(self, lean: Lean, module: Module, image: ModuleImage) -> None:
        self._builder, self._image = _Builder(lean, module, image, native=False), image

    def constant(self, name: Name) -> int:
        """Put a constant and return its address."""
        return self._builder.constant(name)

    def term(self, place: int) -> int:
        """Put an expression of the module."""
        return self._builder.terms.term(place)

    def levels(self, ref: int) -> int:
        """Put a list of levels of the module."""
        return self._builder.terms.levels(ref)

    def names(self, names: Sequence[Name]) -> int:
        """Put a list of names."""
        return self._image.list([self._image.name(each) for each in names])


class _Builder:
    def __init__(self, lean: Lean, module: Module, image: ModuleImage, *, native: bool) -> None:
        self._module, self._olean, self._image = module, module.olean, image
        self._trusted = Trusted(module.olean) if native else None
        self._lists: dict[int, int] = {}
        self.terms = TermWriter(lean, module.olean, image, self._trusted)
        self._copies: dict[int, Callable[[int], int]] = {
            _HEADER: self._header,
            _TERM: self.terms.term,
            _NAME: self._name,
            _NAMES: self._names,
            _COUNT: self._count,
            _HINTS: self._hints,
            _RULES: self._rules,
        }

    def rebuilt(self) -> Rebuilt:
        module, image = self._module, self._image
        left_out, constants = dict[Name, Safety](), dict[Name, int]()
        for name, info in module.names.items():
            safety = safety_of(module.olean, info)
            if safety is Safety.SAFE:
                constants[name] = self._constant(info)
            else:
                left_out[name] = safety
        if self._trusted is not None:
            require_free(module.names, self._trusted.axioms)
            constants |= {name: self._axiom(axiom) for name, axiom in self._trusted.axioms.items()}
        return Rebuilt(
            file=self._finished(constants),
            constants=constants,
            left_out=left_out,
            mentioned=self.terms.constants,
            is_open=self.terms.is_open,
            image=image,
        )

    def constant(self, name: Name) -> int:
        return self._constant(self._module.names[name])

    def _constant(self, info: int) -> int:
        olean, image = self._olean, self._image
        kind = self._module.kind_at(info)
        place = olean.object(info, 0)
        pointers, limits = _FIELDS[kind]
        held = [self._copies[what](olean.child(place, number)) for number, what in enumerate(pointers)]
        scalars = 0
        for number, limit in enumerate(limits):
            value = olean.scalar(place, len(pointers), number)
            if value >= limit:
                raise olean.wrong(place, f"{kind} with the marks that it has in Lean")
            scalars |= value << 8 * number
        value = image.put(VALUES[kind], *held, *([scalars] if limits else []))
        return image.put(INFO[kind], value)

    def _header(self, place: int) -> int:
        olean = self._olean
        olean.expect(place, CONSTANT, "name, parameters and type")
        name, parameters = self._name(olean.child(place, 0)), self._names(olean.child(place, 1))
        return self._image.put(CONSTANT, name, parameters, self.terms.term(olean.object(place, 2)))

    def _name(self, ref: int) -> int:
        return self._image.name(self._olean.name(ref))

    def _names(self, ref: int) -> int:
        """Put a list of names, once, because all members of a mutual family share one."""
        found = self._lists.get(ref)
        if found is None:
            names = [self._name(each) for each in self._olean.list(ref, "names")]
            found = self._lists[ref] = self._image.list(names)
        return found

    def _count(self, ref: int) -> int:
        number = self._olean.number(ref)
        if number > _MOST:
            raise MalformedOlean(f"a count of more than {_MOST}")
        return number << 1 | 1

    def _hints(self, ref: int) -> int:
        if ref in (~0, ~1):
            return ~ref << 1 | 1
        self._olean.expect(ref, HINTS, "hints")
        return self._image.put(HINTS, self._olean.words[ref + 1] & 0xFFFFFFFF)

    def _rules(self, ref: int) -> int:
        return self._image.list([self._rule(each) for each in self._olean.list(ref, "rules")])

    def _rule(self, place: int) -> int:
        olean = self._olean
        olean.expect(place, RULE, "rule of a recursor")
        name, fields = self._name(olean.child(place, 0)), self._count(olean.child(place, 1))
        return self._image.put(RULE, name, fields, self.terms.term(olean.object(place, 2)))

    def _axiom(self, axiom: Axiom) -> int:
        """Put an axiom about compiled code, with the type ``@Eq Bool c Bool.true``."""
        image = self._image
        equal = image.const(("Eq",), image.list([image.successor(NOTHING)]))
        constant = image.const(axiom.constant, self.terms.levels(axiom.levels))
        type_ = image.app(equal, image.const(("Bool",)), constant, image.const(("Bool", "true")))
        parameters = image.list([image.name(each) for each in axiom.parameters])
        header = image.put(CONSTANT, image.name(axiom.name), parameters, type_)
        return image.put(INFO[ConstantKind.AXIOM], image.put(VALUES[ConstantKind.AXIOM], header, 0))

    def _imports(self) -> int:
        image, found = self._image, list[int]()
        for each in self._module.imports:
            marks = each.import_all | each.is_exported << 8 | each.is_meta << 16
            found.append(image.put(IMPORT, image.name(each.module), marks))
        return image.array(found)

    def _finished(self, constants: dict[Name, int]) -> memoryview:
        image, imports = self._image, self._imports()
        names = image.array([image.name(name) for name in constants])
        infos, empty = image.array(list(constants.values())), image.array([])
        parts = imports, names, infos, empty, empty
        is_older = self._module.is_older
        root = image.put(OLDER_MODULE, *parts) if is_older else image.put(MODULE, *parts, 0)
        return image.finish(root, self._olean.start())
