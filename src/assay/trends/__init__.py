"""Takes the ledger's history, and a fleet revision or policy; measures durations and judges history again. Pure.

Gives median durations, backtests of changed limits, and replays of fault histories.
"""
