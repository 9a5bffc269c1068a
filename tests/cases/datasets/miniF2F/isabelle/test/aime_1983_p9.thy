theory aime_1983_p9
  imports Complex_Main
begin

theorem aime_1983_p9:
  fixes x::real
  assumes "0<x"
  shows "x = x"
  sorry

end
