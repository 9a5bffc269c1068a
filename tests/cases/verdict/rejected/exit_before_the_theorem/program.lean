prelude
import Core
#exit
theorem t : False := True.intro
