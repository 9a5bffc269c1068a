"""Audit step, auxiliary constants: identifies the constants that Lean names itself by their content.

Lean makes definitions out of parts of a text (``match_1``, ``_proof_2``) and uses one again wherever the same
part comes back: so the theorem's statement can use a definition that was made for a helper before it. The
kernel treats two definitions of the same content as equal, whatever their names are.
"""

from __future__ import annotations

import re

from farm_workers.audit.declarations import ConstantKind, Module
from farm_workers.audit.olean import Name
from farm_workers.audit.rests import with_sorry
from farm_workers.audit.terms import Reading
from farm_workers.audit.universes import by_position

_OWN = re.compile(r"(match|_\w+)_\d+")
#: How deep auxiliary constants are followed within each other; Lean's stand in each other twice at most.
_DEEPEST = 16


class Auxiliaries:
    """Gives a reading of a module the contents of its auxiliary constants in place of their names."""

    def __init__(self, module: Module, reading: Reading) -> None:
        self._module, self._reading = module, reading
        self._known: dict[Name, object] = {}
        self._open: list[Name] = []
        reading.key = self.key

    def has(self, name: Name) -> bool:
        """Return whether a name is that of an auxiliary definition or theorem of the module."""
        return (
            bool(name)
            and isinstance(name[-1], str)
            and _OWN.fullmatch(name[-1]) is not None
            and name in self._module.names
            and self._module.kind(name) in (ConstantKind.DEFINITION, ConstantKind.THEOREM)
        )

    def have_sorry(self) -> bool:
        """Return whether there is a sorry in one of them."""
        return any(self.has(name) for name in with_sorry(self._module, self._module.names))

    def key(self, name: Name) -> object:
        """Return the key of a constant: its name, or its content if it is auxiliary."""
        if not self.has(name):
            return name
        if name not in self._known:
            if name in self._open or len(self._open) >= _DEEPEST:
                # Equal to nothing, not even to the same constant of another module.
                return object()
            self._open.append(name)
            self._known[name] = self._content(name)
            self._open.pop()
        return self._known[name]

    def _content(self, name: Name) -> object:
        constant = self._module.constant(name)
        if constant is None or constant.value is None:
            return name
        terms, parameters = self._reading.terms, constant.parameters
        type_, value = (
            by_position(terms, self._reading.expression(each), parameters)
            for each in (constant.type, constant.value)
        )
        return constant.kind, constant.safety, len(parameters), type_, value
