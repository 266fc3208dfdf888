"""The lab's BMCs: one Redfish service per virtual node, over HTTPS, all in one process.

Takes the nodes' state files. Gives Redfish answers.

Every request reads the state file, so a fault that another process plants shows at once. Only logins are in memory.
"""
