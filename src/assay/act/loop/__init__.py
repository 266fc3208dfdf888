"""Takes a fleet, its ledger and its evidence; turns the loop, and keeps what each turn needs.

Gives passes: what was observed, decided and done.
"""
