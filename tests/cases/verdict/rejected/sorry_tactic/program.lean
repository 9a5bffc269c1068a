prelude
import Core
theorem admitted (p : Prop) : p := by
  sorry
