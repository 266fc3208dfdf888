"""Takes an effect that a decision asks for, on one node; cordons, drains, restarts, updates or documents the node.

Gives a verification: what reading the node, its BMC or its scheduler again says. One module is one action.
"""
