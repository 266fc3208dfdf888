"""Takes the declared limits, the history of measurements and the ledger; joins them, as specs and history do not meet.

Gives the review of all limits, and what changed limits would have foreseen and cost.
"""
