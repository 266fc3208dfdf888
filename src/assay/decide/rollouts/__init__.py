"""Takes a merge that is on its way, and what proves each node. Pure.

Gives waves, orders, proofs, pauses and the end.
"""
