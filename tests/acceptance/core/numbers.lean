prelude
import Core

/-! Induction and recursion on numbers: nothing here may give a message. -/

theorem zero_add (n : Nat) : 0 + n = n := by
  induction n with
  | zero => rfl
  | succ n ih =>
    show Nat.succ (0 + n) = n + 1
    rw [ih]

def factorial : Nat → Nat
  | 0 => 1
  | n + 1 => (n + 1) * factorial n

theorem factorial_computes : factorial 5 = 120 := by rfl

theorem factorial_pos (n : Nat) : 0 < factorial n := by
  induction n with
  | zero => decide
  | succ n ih =>
    unfold factorial
    have h : factorial n ≤ (n + 1) * factorial n := by
      rw [Nat.succ_mul]
      exact Nat.le_add_left _ _
    exact Nat.lt_of_lt_of_le ih h

def fibonacci (n : Nat) : Nat :=
  match n with
  | 0 => 0
  | 1 => 1
  | n + 2 => fibonacci n + fibonacci (n + 1)

theorem fibonacci_computes : fibonacci 20 = 6765 := by decide +kernel

theorem small (n : Nat) (h : n < 3) : n = 0 ∨ n = 1 ∨ n = 2 := by
  match n, h with
  | 0, _ => exact .inl rfl
  | 1, _ => exact .inr (.inl rfl)
  | 2, _ => exact .inr (.inr rfl)

theorem predecessor (n : Nat) (h : 0 < n) : ∃ m, n = m + 1 := by
  cases n with
  | zero => contradiction
  | succ m => exact ⟨m, rfl⟩

theorem injective (m n : Nat) (h : m + 1 = n + 1) : m = n := by injection h

theorem distributes (a b c : Nat) : a * (b + c) = c * a + b * a := by
  rw [Nat.mul_add, Nat.add_comm, Nat.mul_comm a c, Nat.mul_comm a b]

theorem divides : 3 ∣ 12 := ⟨4, rfl⟩

theorem order (a b : Nat) (h : ¬a ≤ b) : b < a := Nat.lt_of_not_ge h

theorem strong_induction (p : Nat → Prop) (h : ∀ n, (∀ m < n, p m) → p n) (n : Nat) : p n := by
  induction n using Nat.strongRecOn with
  | ind n ih => exact h n ih

inductive Parity where
  | even
  | odd
deriving DecidableEq

theorem parities_differ : Parity.even ≠ Parity.odd := by decide
