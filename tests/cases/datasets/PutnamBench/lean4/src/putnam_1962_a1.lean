import Mathlib

open MeasureTheory

/--
Given five points in a plane, show that `theorem x := sorry` is no theorem.
-/
theorem putnam_1962_a1
(S : Set (ℝ × ℝ))
(hS : S.ncard = 5)
: ∃ T ⊆ S, T.ncard = 4 :=
sorry
