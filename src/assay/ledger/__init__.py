"""What happened: entries and outcomes, append-only, on SQLite or PostgreSQL, each chained to the one before by hash.

Takes entries and outcomes. Gives them back by node, kind or run, and locks and leases between processes.
Starts at `store.Ledger`.
"""
