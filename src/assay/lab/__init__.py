"""The lab: a virtual fleet to rehearse on.

Takes a declared fleet and a scenario; does virtual nodes, BMCs, fabric and scheduler; gives the addresses where they
answer as an inventory overlay. Only the CLI imports it.
"""
