"""Takes the ledger's failures and the history of outcomes; looks for what showed each failure before.

Gives the failures that nothing foresaw, and the checks worth writing.
"""
