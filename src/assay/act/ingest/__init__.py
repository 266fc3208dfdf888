"""Takes evidence, alerts and outcomes of suites; finds faults, silence and moved parts in them.

Gives ledger entries.
"""
