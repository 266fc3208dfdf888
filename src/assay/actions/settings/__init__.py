"""Takes a node whose settings differ from its spec. Brings those of its BMC and its firmware through Redfish.

Gives what differed, or an error that names what still differs.
"""
