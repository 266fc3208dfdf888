"""Takes the ledger, the inventory and the evidence; folds each ledger entry once a process and keeps what follows.

Gives node states, newest outcomes, fabric comparisons and the fleet snapshot that decisions read.
"""
