import Mathlib

set_option maxHeartbeats 0

open BigOperators Real Nat Topology Rat

theorem aime_1983_p2
  (x p : ℝ)
  (h₀ : 0 < p ∧ p < 15) :
  15 ≤ x := by sorry