prelude
import Core
/- error: sorry -/
-- declaration uses 'sorry'
theorem not_sorry (sorry' : True) : True := sorry'
