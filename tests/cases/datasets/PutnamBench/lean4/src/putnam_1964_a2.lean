import Mathlib

abbrev putnam_1964_a2_solution : ℕ := sorry

theorem helper : 1 = 1 := rfl

theorem putnam_1964_a2 (n : ℕ) : n = putnam_1964_a2_solution :=
sorry
