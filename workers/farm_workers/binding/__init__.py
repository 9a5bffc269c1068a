"""Binding: calls Lean's compiled functions, and reads its objects, as a toolchain describes them.

`table` declares all that the farm uses of Lean, by Lean's own names. A description says what one toolchain
has under these names; `modules` reads it from the toolchain's compiled modules. `bind` matches the two, and
refuses by name whatever differs. `lean` calls functions and reads fields through the result. No other module
knows a symbol of Lean's library or the place of a field.
"""
