prelude
import Core
theorem unused (p : Prop) (h : True) : p → p := fun h => h
