import minif2f_import

open_locale big_operators
open_locale real

theorem mathd_algebra_1
  (x : ℝ)
  (h₀ : x + 1 = 3) :
  x = 2 :=
begin
  linarith,
end
