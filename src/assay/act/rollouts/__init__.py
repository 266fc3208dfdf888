"""Takes a new commit of the fleet, and the rollouts of the ledger: starts rollouts, and takes them forward.

Gives ledger entries: the adopted commit, orders for nodes, proofs, pauses and the end.
"""
