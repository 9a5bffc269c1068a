prelude
import Core
-- Native code is told that two numbers are strings.
@[extern "lean_string_append"] axiom String.append (a b : Nat) : String
syntax (name := runaway) "now" : term
@[macro runaway] unsafe def expandRunaway : Lean.Macro := fun stx _ s =>
  EStateM.Result.ok (Lean.Syntax.atom .none (String.append 1 2)) s
theorem crash : now := True.intro
