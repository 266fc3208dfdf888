"""Takes a node and its spec. Does a virtual node: state, sysfs, procfs and SMBIOS files, commands as over ssh.

Gives a folder that the probe reads.
"""
