prelude
import Core
theorem wrong : 1 + 2 * 3 = 8 := by rfl
