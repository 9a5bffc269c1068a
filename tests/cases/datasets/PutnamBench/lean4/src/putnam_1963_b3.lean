import Mathlib
open BigOperators

open Topology Filter Polynomial

noncomputable abbrev putnam_1963_b3_solution : Set (ℝ → ℝ) := sorry
-- {(fun u : ℝ => A * u) | A : ℝ}
/--
Find every twice differentiable real-valued function.
-/
theorem putnam_1963_b3
(f : ℝ → ℝ)
: (∀ x, f x = 0) ↔ f ∈ putnam_1963_b3_solution :=
sorry
