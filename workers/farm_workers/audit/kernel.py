"""Audit step, the kernel's own names: constants that Lean's kernel computes, whatever their definition.

Sources in Lean 4: ``src/kernel/type_checker.cpp`` (`initialize_type_checker`: arithmetic on literals,
`String.mk`, later `String.ofList`, `Lean.reduceBool`, `Lean.reduceNat`, `eagerReduce`),
``src/kernel/quot.cpp`` (`initialize_quot`, and `Eq` in its check), ``src/kernel/inductive.cpp`` and
``src/kernel/expr.cpp`` (literals of `Nat` and `String`, with `Char.ofNat`, `List.nil`, `List.cons`).
"""

from __future__ import annotations

_NAMES = """
    Bool Bool.false Bool.true
    Nat Nat.zero Nat.succ Nat.rec
    Nat.add Nat.sub Nat.mul Nat.div Nat.mod Nat.pow Nat.gcd Nat.log2 Nat.beq Nat.ble
    Nat.land Nat.lor Nat.xor Nat.shiftLeft Nat.shiftRight
    Char Char.mk Char.ofNat String String.mk String.ofList List List.nil List.cons
    Eq Eq.refl Eq.rec Quot Quot.mk Quot.lift Quot.ind
    eagerReduce Lean.reduceBool Lean.reduceNat
"""

_AXIOMS = """
    propext Classical.choice Quot.sound sorryAx Lean.ofReduceBool Lean.ofReduceNat Lean.trustCompiler
    lcProof lcUnreachable lcAny lcErased lcVoid lcCast Quot.lcInv
"""

#: A module may declare none of these, except the library itself.
PRIMITIVES = frozenset(tuple[str, ...](name.split(".")) for name in _NAMES.split())

#: Axioms of Lean's library that prove any proposition, or trust the compiler; they are known as axioms even
#: if the declarations of the imports are unknown.
KNOWN_AXIOMS = frozenset(tuple[str, ...](name.split(".")) for name in _AXIOMS.split())

#: The functions that the kernel evaluates by compiled code, and the axiom that Lean reports for such a proof.
NATIVE = frozenset({("Lean", "reduceBool"), ("Lean", "reduceNat")})
TRUST_COMPILER = ("Lean", "trustCompiler")
#: The axiom in place of a missing proof.
SORRY = ("sorryAx",)
#: How the compiler was believed before each use got an axiom of its own, and all names of the kind: a module
#: in which one of them occurs is not checked by a kernel, which would run code.
OF_REDUCE_BOOL = ("Lean", "ofReduceBool")
BELIEVING = NATIVE | {OF_REDUCE_BOOL, ("Lean", "ofReduceNat"), TRUST_COMPILER}
