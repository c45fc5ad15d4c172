# Units that are words. The key is `unit-` and the unit as evidence has it.

unit-packets = packets
unit-segments = segments
unit-cores = cores
unit-microseconds = microseconds
unit-peers = peers
unit-rules = rules
unit-interrupts = interrupts
unit-connections = connections
unit-times = times
unit-segments-s = segments/s
unit-ns-byte = ns/byte
