prelude
import Core
-- The kernel computes on, one native call of seconds after the other.
def slow : Nat → Nat
  | 0 => 0
  | n + 1 => slow n + Nat.gcd (3 ^ (12000000 + n)) (5 ^ (8000000 + n))
theorem endless : slow 1000 = 1000 := by decide +kernel
