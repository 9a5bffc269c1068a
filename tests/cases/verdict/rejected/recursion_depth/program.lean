prelude
import Core
theorem big : 2 ^ 100000000000 = 0 := by rfl
