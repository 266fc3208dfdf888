"""Takes nodes, BMCs, agents and log files. Does the verbs that collect evidence. Gives stored evidence and faults."""
