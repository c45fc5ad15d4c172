ring-overflow-title = The card's receive ring overflows
