"""The lab: a virtual fleet to rehearse on. Only the command line imports it.

Takes a declared fleet and a scenario. Gives virtual nodes, BMCs, fabric and scheduler, as an inventory overlay.
Starts at `process_control.start_lab`.
"""
