"""The words and types that all rooms share: specs, readings, outcomes, entries of the ledger. No I/O.

Takes nothing. Gives plain data.
Starts at `fleet.Fleet`, `outcome.Outcome`, `ledger_entry.LedgerEntry`.
"""
