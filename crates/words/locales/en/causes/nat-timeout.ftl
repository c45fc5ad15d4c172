nat-timeout-title = The tunnel falls asleep behind a NAT
