prelude
import Core

/-! Rewriting, calculation and computation: nothing here may give a message. -/

theorem by_rfl : 2 + 2 = 4 := by rfl

theorem by_eq_refl : 1 + 2 * 3 = 7 := by eq_refl

theorem by_decide : 17 / 5 = 3 ∧ 17 % 5 = 2 ∧ 2 ^ 10 = 1024 := by decide

theorem rewriting (a b c : Nat) (h : a = b) (k : b = c) : a + 1 = c + 1 := by
  rw [h, k]

theorem rewriting_back (a b : Nat) (h : a = b) : b + 0 = a := by
  rw [← h]
  rfl

theorem rewriting_a_hypothesis (a b c : Nat) (h : a = b) (k : a = c) : b = c := by
  rw [h] at k
  exact k

theorem rewriting_and_closing (a b c : Nat) (h : a = b) (k : b = c) : a = c := by
  rwa [h]

theorem substituting (a b : Nat) (h : a = b) : b = a := by
  subst h
  rfl

theorem triangle (a b : Nat) (h : a = b) : b = a := h ▸ rfl

theorem calculation (a b c d : Nat) (h : a = b) (k : b ≤ c) (l : c ≤ d) : a ≤ d := by
  calc a = b := h
    _ ≤ c := k
    _ ≤ d := l

theorem simplifying (n : Nat) (p : Prop) (h : n + 0 = 3 ∧ p ∧ True) : n = 3 ∧ p := by
  simp at h
  exact h

theorem simplifying_only (a b : Nat) (h : a = b) : b = a := by simp only [h]

theorem simplifying_using (p : Prop) (h : p ∧ True) : p := by simpa using h

theorem congruence (f : Nat → Nat) (a b : Nat) (h : a = b) : f a = f b := by congr

theorem choosing (a b : Nat) : (if a = b then a else b) = b := by
  split
  next h => exact h
  next => rfl
