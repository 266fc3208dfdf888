"""Takes who held which place, failures and returns to service. Gives how long parts last, and which come back soon.

Pure, with the standard library only; `table_stays` and `ledger_stays` read them.
"""
