"""Takes a firmware bundle and what a node's BMC shows. Brings the firmware through Redfish, in stages.

Gives what was written and which reset made it run, or an error that names what still differs.
"""
