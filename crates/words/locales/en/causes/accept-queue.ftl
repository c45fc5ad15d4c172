accept-queue-title = Connections are made faster than a program accepts them
accept-queue-because = { $attempts } attempts to connect to { $host } found the queue of a listening program full, and were dropped to be tried again.
accept-queue-because-program = { $attempts } attempts to connect to { $host } found the queue of a listening program { $program } full, and were dropped to be tried again.
accept-queue-line-queue = queue of { $listener } (`ss -lnt`): longest, now
accept-queue-remedy-program = A longer backlog in the program's own settings (nginx `listen … backlog=4096`, Apache `ListenBacklog`), or more processes that accept
accept-queue-persistence-program = in the program's configuration
accept-queue-risk-program = a restart of the program; clients wait in the queue instead of trying again
accept-queue-undo-program = the old value
accept-queue-remedy-limit = Queues of up to { $queue } connections for programs that ask for them; they must be started again
accept-queue-risk-limit = some memory per waiting connection
accept-queue-refused = a larger net.core.somaxconn on { $host }
accept-queue-refused-why = it is { $limit } already: the program asks for less, or accepts too slowly
