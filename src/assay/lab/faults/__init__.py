"""Takes a fault's name, a node and arguments. Does the planting of that fault in the node's state. Gives the closed list of faults that can be injected."""
