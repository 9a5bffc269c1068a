prelude
import Core

/-! What the kernel computes on literals equals what the definitions say: the left sides are not known to it. -/

example : Nat.divModFuel 1000 1000 7 = (1000 / 7, 1000 % 7) := rfl
example : Nat.divModFuel 5 5 0 = (5 / 0, 5 % 0) := rfl
example : Nat.gcdFuel 84 84 120 = Nat.gcd 84 120 := rfl
example : Nat.gcdFuel 0 0 9 = Nat.gcd 0 9 := rfl
example : Nat.bitwise and 44 26 = Nat.land 44 26 := rfl
example : Nat.bitwise or 44 26 = Nat.lor 44 26 := rfl
example : Nat.bitwise bne 44 26 = Nat.xor 44 26 := rfl
example : Nat.bitwise or 0 26 = Nat.lor 0 26 := rfl
example : Nat.bitwise bne 44 0 = Nat.xor 44 0 := rfl
example : Nat.log2Fuel 1000 1000 = Nat.log2 1000 := rfl
example : Nat.log2Fuel 0 0 = Nat.log2 0 := rfl
example : Nat.shiftLeft 3 4 = 3 * 2 ^ 4 := rfl
example : Nat.shiftRight 51 4 = 51 / 2 ^ 4 := rfl
example : "ab" = String.ofList ['a', 'b'] := rfl

theorem sub_by_definition (n : Nat) : n - 3 = n.pred.pred.pred := rfl
example : 10 - 3 = (10 : Nat).pred.pred.pred := sub_by_definition 10
example : 2 - 3 = (2 : Nat).pred.pred.pred := sub_by_definition 2
theorem pow_by_definition (n : Nat) : n ^ 3 = 1 * n * n * n := rfl
example : 7 ^ 3 = 1 * 7 * 7 * 7 := pow_by_definition 7
