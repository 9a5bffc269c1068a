prelude
import Core
theorem admitted (p : Prop) : p := sorry
