"""Takes a fleet, its ledger and its evidence; observes, validates, decides, acts and reports, once or until stopped.

Gives ledger entries, effects on nodes, tickets and reports.
"""
