${
  mathd-algebra-5.0 $e |- ph $.
  $( (Contributed by nobody, 1-Jan-2021.) $)
  mathd-algebra-5 $p |- ph $=
( id a1i ) AB
  C $.
$}
