"""Takes what a person orders: who, why, and for which node or rollout. Command line and pages order in this one way.

Gives the entry to record, or a refusal.
"""
