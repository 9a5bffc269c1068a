prelude
import Core
class Climbs (n : Nat) where
  x : Nat
instance climb (n : Nat) [Climbs (Nat.succ n)] : Climbs n := Climbs.mk 0
set_option maxRecDepth 100000000 in
set_option synthInstance.maxHeartbeats 0 in
set_option synthInstance.maxSize 100000000 in
set_option maxHeartbeats 0 in
theorem endless : Climbs.x 0 = 0 := Eq.refl _
