prelude
import Core

theorem mathd_numbertheory_1 : True := by sorry
