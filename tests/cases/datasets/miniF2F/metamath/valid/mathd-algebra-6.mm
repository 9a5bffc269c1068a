$(
  @{
    Nothing is stated here.
  @}
$)
