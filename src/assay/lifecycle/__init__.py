"""Takes ledger entries, evidence and the policy. Projects node states and decides, without I/O or a clock.

Gives node states, faults, proposals, and decisions with their ledger entries.
"""
