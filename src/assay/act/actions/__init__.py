"""Takes an effect that a decision asks for, on one node. One module is one action.

Gives a verification: what reading the node, its BMC or its scheduler again says.
"""
