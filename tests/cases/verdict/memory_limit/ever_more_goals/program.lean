prelude
import Core
-- Every step makes two goals of one.
theorem dup {p : Prop} (h k : p) : p := h
theorem big (p : Prop) : p ∨ ¬p := by
  repeat' apply dup
