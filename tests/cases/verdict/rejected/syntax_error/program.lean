prelude
import Core
theorem unfinished : True :=
