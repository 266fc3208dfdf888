"""Takes a node, its credentials and the fleet's BMC quirks. Logs in by Redfish and reads, resets or updates.

Gives the readings of the channel `bmc`, firmware tasks, and typed errors.
"""
