"""The lab: a virtual fleet to rehearse on.

Takes a declared fleet and a scenario. Does virtual nodes, BMCs, fabric and scheduler. Gives the addresses where they
answer as an inventory overlay. Only the CLI imports it.
"""
