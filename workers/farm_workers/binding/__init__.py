"""Binding: calls Lean's compiled functions, and reads its objects, as a toolchain describes them.

`table` declares every function and field of Lean that the farm uses, by Lean's own names. A description has
the parameters and fields of one toolchain; `modules` reads it from the toolchain's compiled modules. `bind`
matches the two, and refuses each difference by name. `lean` calls functions and reads fields through the
result. No other module knows a symbol of Lean's library or the place of a field.
"""
