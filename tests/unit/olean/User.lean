prelude
import Parts
set_option genCtorIdx false
theorem used (p : Prop) (h : p) : True := both
