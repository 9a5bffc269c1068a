let amc12-2000-p6 = let amc12-2000-p6 = `!p q. prime p /\ prime q ==> ~(p * q = 194)`;;
