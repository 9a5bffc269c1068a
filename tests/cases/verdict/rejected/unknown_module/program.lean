prelude
import Core
import Never.Was
theorem t : True := True.intro
