"""Takes what a person orders: who, why, and for which node or rollout. Gives the entry to record, or a refusal.

The command line and the pages give orders in this one way.
"""
