import Mathlib

set_option maxHeartbeats 0

open BigOperators Real Nat Topology Rat

/-- Half a proof is none. -/
theorem numbertheory_1 (n : ℕ) : n ≤ n + 1 := sorry
