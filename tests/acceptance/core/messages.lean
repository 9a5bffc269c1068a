prelude
import Core

/-! Each line with a comment gives that message, and there are no others. -/

theorem unproved (p : Prop) : p := sorry -- warning: declaration uses `sorry`

theorem admitted (p : Prop) : p := by admit -- warning: declaration uses `sorry`

theorem wrong_number : 1 + 2 * 3 = 8 := by rfl -- error: Tactic `rfl` failed: The left-hand side

theorem wrong_decision : 2 + 2 = 5 := by decide -- error: Tactic `decide` proved that the proposition

theorem wrong_type (p q : Prop) (h : p) : q := h -- error: Type mismatch

theorem unknown_name (p : Prop) : p := h -- error: Unknown identifier `h`

theorem unknown_tactic (n : Nat) (h : n = 2) : 2 = n := by -- error: unsolved goals
  linarith -- error: unknown tactic

theorem unfinished (p q : Prop) (hp : p) : p ∧ q := by
  constructor
  · exact hp
  · skip -- error: unsolved goals

theorem no_rewrite (a b : Nat) (h : a = b) : b = 3 := by
  rw [Nat.add_comm] -- error: Tactic `rewrite` failed: Did not find an occurrence of the pattern
