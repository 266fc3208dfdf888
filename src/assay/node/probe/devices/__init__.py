"""Takes sysfs, /proc and the firmware's tables. Reads PCI, HCAs, NICs, NVMe drives, DIMMs and error counters.

Gives one lazy branch for each.
"""
