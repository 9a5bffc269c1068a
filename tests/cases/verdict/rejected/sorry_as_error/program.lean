prelude
import Core
set_option warningAsError true
theorem admitted (p : Prop) : p := sorry
