prelude
import Core
-- One request for more memory than there may be: the reservation limit stops it before it is ever used.
@[extern "lean_string_append"] axiom String.append (a b : String) : String
unsafe def grow (s : String) : String := grow (String.append s s)
syntax (name := runaway) "forever" : term
@[macro runaway] unsafe def expandRunaway : Lean.Macro := fun stx _ s =>
  EStateM.Result.ok (Lean.Syntax.atom .none (grow "x")) s
theorem big : forever := True.intro
