"""Takes free nodes, a fabric design, and the results of collectives between nodes.

Gives the next nodes to run together, and the node, adapter or uplink that makes them slow, wrong or hang.
"""
