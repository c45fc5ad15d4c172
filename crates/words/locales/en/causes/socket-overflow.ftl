socket-overflow-title = The tunnel's UDP socket overflows
