prelude
import Core

/-! The axioms behind a proof are the ones that Lean itself would name. -/

theorem constructive (m n : Nat) : m + n = n + m := Nat.add_comm m n

theorem middle (p : Prop) : p ∨ ¬p := Classical.em p

theorem simplified (p : Prop) (h : p ∧ True) : p := by simpa using h

theorem admitted : 1 = 2 := sorry -- warning: declaration uses `sorry`

#print axioms constructive -- information: 'constructive' does not depend on any axioms
#print axioms middle -- information: 'middle' depends on axioms: [propext, Classical.choice, Quot.sound]
#print axioms simplified -- information: 'simplified' depends on axioms: [propext]
#print axioms admitted -- information: 'admitted' depends on axioms: [sorryAx]
