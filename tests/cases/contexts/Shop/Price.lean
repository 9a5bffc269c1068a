prelude
import Core

/-! What things cost. -/

namespace Shop

/-- A price in cents. -/
structure Price where
  cents : Nat

/-- What is given away. -/
def free : Price := ⟨0⟩

/-- Two prices together. -/
def Price.both (a b : Price) : Price := ⟨a.cents + b.cents⟩

/-- What is given away adds nothing. -/
theorem Price.both_free (a : Price) : (a.both free).cents = a.cents := rfl

section Twice

variable (a : Price)

/-- The same thing, bought twice. -/
def Price.twice : Price := a.both a

theorem Price.twice_cents : a.twice.cents = a.cents + a.cents := rfl

end Twice

end Shop
