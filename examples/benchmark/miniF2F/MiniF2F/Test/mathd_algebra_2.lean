prelude
import Core

theorem mathd_algebra_2 (a b : Prop) (h : a → b) (k : b → False) : a → False := by sorry
