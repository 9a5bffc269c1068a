prelude
import Core
theorem foo : Nat.shiftLeft 1 (2 ^ 34) % 3 = 1 := by decide
