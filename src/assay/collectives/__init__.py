"""Takes free nodes, a fabric design, and the results of collectives between pairs of nodes.

Finds the node, adapter or uplink that makes pairs slow, wrong or hang. Gives the next pairs to run, and a report.
"""
