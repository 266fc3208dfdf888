"""Takes a fault's name, a node and arguments. Plants the fault in the node's state.

Gives the list of known faults.
"""
