irq-placement-title = The card's interrupts go to the wrong cores
