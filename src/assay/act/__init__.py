"""Takes a fleet, its ledger and its evidence; observes, validates, decides, acts and reports, once or until stopped.

Gives ledger entries and effects on nodes, each verified by reading the world again.
Starts at `loop.reconcile_loop.ReconcileLoop.run`, `actions.action.load_action`.
"""
