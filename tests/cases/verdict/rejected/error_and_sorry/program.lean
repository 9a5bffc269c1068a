prelude
import Core
theorem admitted (p : Prop) : p := sorry
theorem wrong : 1 + 1 = 3 := by rfl
