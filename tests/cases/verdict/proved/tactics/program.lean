prelude
import Core
theorem swap (p q : Prop) (h : p ∧ q) : q ∧ p := by
  constructor
  exact h.right
  exact h.left
