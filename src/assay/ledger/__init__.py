"""Takes entries and outcomes; stores them append-only in SQLite or PostgreSQL, each chained to the one before by hash.

Gives them back by node, kind or run, the newest outcome of each check, and locks and leases between processes.
"""
