"""Takes a fault's name, a node and arguments; plants the fault in the node's state; gives the list of known faults."""
