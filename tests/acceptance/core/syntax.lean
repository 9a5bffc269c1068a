prelude
import Core

/-! A program's own notation, macros and options: nothing here may give a message. -/

infixl:65 " ⊞ " => Nat.add

notation "two" => 2

local notation a " and_also " b => a ∧ b

macro "close_with " t:term : tactic => `(tactic| first | exact $t | rfl)

macro_rules | `(tactic| trivial) => `(tactic| assumption)

theorem infix_and_notation : two ⊞ 3 = 5 := rfl

theorem local_notation (p q : Prop) (h : p and_also q) : q := by close_with h.2

theorem extended (p : Prop) (_ : p) : p := by trivial

section
variable (p : Prop)

set_option linter.unusedVariables false in
theorem with_options (h : p) (unused : p) : p := by
  set_option maxRecDepth 1000 in
  repeat' first | assumption | skip

end

open Nat in
theorem opened (n m : Nat) : n + m = m + n := add_comm n m
