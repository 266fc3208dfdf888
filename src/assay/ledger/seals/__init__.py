"""Takes a ledger's seal and the names of anchors; stores the seal in each, out of reach of whoever alters the ledger.

Gives back up to where each anchor proves a ledger, and where the two contradict each other.
"""
