"""Takes a node, its credentials and the fleet's BMC quirks. Logs in to the BMC and reads, resets or updates it.

Gives the readings of the channel `bmc`, firmware tasks, and typed errors.
"""
