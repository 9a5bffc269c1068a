/-
theorem mathd_hidden : False := by sorry
-/
import Mathlib
open BigOperators Real Nat Topology

-- theorem mathd_also_hidden : False := by sorry

theorem mathd_algebra_1
  (x : ℝ)
  (h₀ : x + 1 = 3) :
  x = 2 := by sorry

/-- A doc comment with `:= by sorry` and theorem mathd_in_doc : False in it. -/
theorem mathd_algebra_2 (x : ℕ := 3) (h : (fun y => (let z := y; z)) x = 4) :
  x = 4 :=
  by sorry

open Nat in
@[simp] theorem amc12_2000_p1 (s : String) (h : s = ":= by sorry -- theorem x") : s.length = 23 := by
sorry

def twice (n : ℕ) : ℕ := 2 * n

theorem imo_1959_p1 (n : ℕ) (h₀ : 0 < n) : twice n = n + n := by
  -- a proof
  unfold twice
  omega
