prelude
import Core

/-- Not every proposition is true. -/
theorem amc12_2000_p1 (a : Prop) : a := by sorry
