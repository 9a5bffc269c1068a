prelude
import Core

/-! Connectives, quantifiers, classical reasoning: nothing here may give a message. -/

theorem and_intro (p q : Prop) (hp : p) (hq : q) : p ∧ q := by
  constructor
  · exact hp
  · exact hq

theorem and_iff (p q : Prop) : p ∧ q ↔ q ∧ p := by
  constructor <;> intro h <;> exact ⟨h.2, h.1⟩

theorem or_cases (p q : Prop) (h : p ∨ q) : q ∨ p := by
  cases h with
  | inl hp => right; exact hp
  | inr hq => left; assumption

theorem or_rcases (p q r : Prop) (h : p ∨ q ∧ r) : r ∨ p := by
  rcases h with hp | ⟨_, hr⟩
  · exact .inr hp
  · exact .inl hr

theorem or_match (p q : Prop) (h : p ∨ q) : q ∨ p :=
  match h with
  | .inl hp => .inr hp
  | .inr hq => .inl hq

theorem not_intro (p q : Prop) (h : p → q) (no : ¬q) : ¬p := by
  intro hp
  apply no
  apply h
  assumption

theorem ex_falso (p q : Prop) (h : p) (no : ¬p) : q := by
  exfalso
  exact no h

theorem contradictory (p q : Prop) (_ : p) (_ : ¬p) : q := by contradiction

theorem exists_intro : ∃ n : Nat, n + 2 = 5 := by exists 3

theorem exists_anonymous : ∃ n m : Nat, n < m := ⟨0, 1, by decide⟩

theorem exists_elim (f : Nat → Nat) (h : ∃ n, f n = 0 ∧ 0 < n) : ∃ n, f n = 0 := by
  obtain ⟨n, hn, _⟩ := h
  exact ⟨n, hn⟩

theorem forall_elim (f : Nat → Nat) (h : ∀ n, f n = n) : f 3 = 3 := by
  specialize h 3
  exact h

theorem middle (p : Prop) : p ∨ ¬p := by
  by_cases h : p
  · exact .inl h
  · exact .inr h

theorem extensional (f g : Nat → Nat) (h : ∀ n, f n = g n) : f = g := by
  funext n
  exact h n

theorem subtype_coercion (n : {n : Nat // 0 < n}) : 0 < (n : Nat) := n.property

theorem bounded_exists : ∃ m ≤ 5, m = 3 := ⟨3, by decide, rfl⟩

theorem bounded_forall (p : Nat → Prop) (h : ∀ n ∈ [1, 2], p n) : p 2 := by
  apply h
  simp
