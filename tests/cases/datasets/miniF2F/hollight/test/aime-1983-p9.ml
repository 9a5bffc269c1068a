let aime-1983-p9 = `!x:real. &0 < x ==> x = x`;;
