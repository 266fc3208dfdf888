"""The newest outcome of each check and subject, in the ledger's own database.

Takes outcomes of runs. Gives the newest ones, counts, and when each was proved.
"""
