"""Takes ledger entries. Projects what each node is, what it owes, and which part is where. Pure.

Gives NodeState, the snapshot of the fleet, and sentences about entries.
"""
