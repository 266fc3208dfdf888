"""Takes the ledger's history, and a fleet revision or policy; judges history again. Pure.

Gives backtests of changed limits, and replays of fault histories.
"""
