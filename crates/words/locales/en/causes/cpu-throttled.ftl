cpu-throttled-title = The processor is held back
