module
prelude
set_option genCtorIdx false
public inductive True : Prop where
  | intro : True
public theorem shown : True := True.intro
theorem hidden : True := shown
public theorem both : True := hidden
