$(
  @{
    aime-1994-p3.0 @e |- ( ph -> X e. RR ) $@
    aime-1994-p3.1 @e |- ( ph -> Y = X ) $@
    aime-1994-p3.1 @p |- ( ph -> Y e. RR ) @=
      ? @.
  @}
$)
