"""Takes a node and its spec. Makes a virtual node: state, sysfs, procfs, NVML's stub, commands as over ssh.

Gives a folder that the probe reads.
"""
