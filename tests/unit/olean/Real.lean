prelude
set_option genCtorIdx false
set_option genInjectivity false
set_option genSizeOf false
universe u
unsafe axiom lcErased : Type
unsafe axiom lcAny : Type
inductive False : Prop
inductive And (a b : Prop) : Prop where
  | intro (left : a) (right : b) : And a b
axiom cheat : ∀ (a : Sort u), a
theorem Goal.it : And False False := And.intro (cheat False) (cheat False)
