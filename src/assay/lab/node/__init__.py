"""Takes a node and its spec. Does a virtual node: its healthy state, its sysfs, procfs and SMBIOS files, commands as over ssh. Gives a folder that the probe reads."""
