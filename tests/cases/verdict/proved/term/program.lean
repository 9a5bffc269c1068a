prelude
import Core
theorem swap (p q : Prop) (h : p ∧ q) : q ∧ p := ⟨h.right, h.left⟩
