softirq-budget-title = The kernel takes too few packets at a time
