"""Takes the declared schedules, the ledger and the clock; finds the slots that are due and does their jobs.

Gives the result of each slot as ledger entries, and when each node is polled next.
"""
