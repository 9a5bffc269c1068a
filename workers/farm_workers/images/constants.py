"""Image step, constants: which constants and axioms the declarations of a file rest on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from farm_workers.binding import table
from farm_workers.binding.lean import Lean
from farm_workers.binding.objects import NOTHING, dotted, elements, field, shared, tag

#: Constructors of `Lean.ConstantInfo`: an axiom has no value, those of `_VALUED` have one.
AXIOM, THEOREM = 0, 2
_VALUED = (1, THEOREM, 3)


class Constants:
    """The constants of a file's module, by name, and those that it imports, in the kernel's view."""

    def __init__(self, lean: Lean, kernel: int, own: Mapping[str, int]) -> None:
        """Take the kernel's environment behind the file, and the `ConstantInfo` of each constant in it."""
        self._lean, self._kernel, self._own = lean, kernel, own
        self._said: dict[int, str] = {}
        self._names: dict[str, int] = {}
        self._axioms: dict[str, frozenset[str]] = {}
        self._modules: set[int] | None = None

    def has(self, name: str) -> bool:
        """Return whether the file declares a constant."""
        return name in self._own

    def used(self, name: str) -> list[str]:
        """Return the constants that a proof uses, also in the lemmas that Lean made for it."""
        found, todo, seen = dict[str, None](), [name], {name}
        while todo:
            for each in self._of(self._own[todo.pop()], with_type=False):
                if each in self._own and each.startswith(f"{name}."):
                    if each not in seen:
                        seen.add(each)
                        todo.append(each)
                elif each != name:
                    found[each] = None
        return list(found)

    def of_modules(self, names: Iterable[str], environment: int, modules: Iterable[str]) -> list[str]:
        """Return the constants among some that one of these modules declares, in Lean's environment."""
        if self._modules is None:
            found = (
                self._lean.call(table.MODULE_INDEX, shared(environment), self._lean.name(*each.split(".")))
                for each in modules
            )
            self._modules = {field(each, 0) for each in found if each != NOTHING}
        if not self._modules:
            return []
        return [each for each in names if self._module_of(each, environment) in self._modules]

    def _module_of(self, name: str, environment: int) -> int | None:
        """Return the index of the module that declares a constant, None for one of the file."""
        known = self._names[name]
        found = self._lean.call(table.MODULE_OF, shared(environment), shared(known))
        return None if found == NOTHING else field(found, 0)

    def mentioned(self, name: str, *, in_value: bool) -> Iterator[str]:
        """Yield the constants of the file that the type of one mentions, or its value if `in_value`."""
        return (each for each in self._of(self._own[name], with_value=in_value) if each in self._own)

    def axioms(self, name: str) -> frozenset[str]:
        """Return the axioms that a constant rests on."""
        known = self._axioms.get(name)
        if known is None:
            known = self._axioms[name] = frozenset(self._reached(name))
        return known

    def _reached(self, name: str) -> Iterator[str]:
        todo, seen, is_own = [name], {name}, name in self._own
        while todo:
            info = self._info(todo[-1])
            current = todo.pop()
            if info == NOTHING:
                continue
            if tag(info) == AXIOM:
                yield current
            for each in self._of(info):
                if each in seen:
                    continue
                seen.add(each)
                # The axioms of an import are looked up once for all declarations of the file.
                if each in self._axioms or (is_own and each not in self._own):
                    yield from self.axioms(each)
                else:
                    todo.append(each)

    def _info(self, name: str) -> int:
        if name in self._own:
            return self._own[name]
        found = self._lean.call(table.FIND, shared(self._kernel), shared(self._names[name]))
        return NOTHING if found == NOTHING else field(found, 0)

    def _of(self, info: int, *, with_type: bool = True, with_value: bool = True) -> Iterator[str]:
        """Yield the constants in the value of a constant, and in its type."""
        # Of `ConstantInfo`, the value of its kind; of that, `ConstantVal` and the term.
        value = field(info, 0)
        terms = [field(field(value, 0), 2)] if with_type else []
        terms += [field(value, 1)] if with_value and tag(info) in _VALUED else []
        for term in terms:
            for name in elements(self._lean.call(table.USED_CONSTANTS, shared(term))):
                said = self._said.get(name)  # the file's terms keep their names alive
                if said is None:
                    said = self._said[name] = dotted(name)
                    self._names[said] = name
                yield said
