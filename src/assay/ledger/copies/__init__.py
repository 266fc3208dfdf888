"""Takes a ledger, or a copy of one; copies, archives and seals it, and verifies the copy.

Gives how its chains end, and up to where each anchor proves a ledger.
"""
