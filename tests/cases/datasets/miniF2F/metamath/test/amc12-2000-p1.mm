$(
  @{
    amc12-2000-p1.0 @e |- ( ph -> X e. NN ) $@
    @( (Contributed by nobody, 1-Jan-2021.) @)
    amc12-2000-p1 @p |- ( ph -> ( X + 1 ) e. NN ) @=
      ? @.
  @}
$)
