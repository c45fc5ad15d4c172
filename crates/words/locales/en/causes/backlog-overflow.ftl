backlog-overflow-title = A core's receive backlog overflows
