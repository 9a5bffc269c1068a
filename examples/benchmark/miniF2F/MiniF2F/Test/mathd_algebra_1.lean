prelude
import Core

/-- The two sides of a conjunction can be swapped. -/
theorem mathd_algebra_1 (a b : Prop) (h : a ∧ b) : b ∧ a := by sorry
