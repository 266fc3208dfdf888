"""Takes the bytes of a log: the kernel's in any form in which it is written down, or a BMC's event log.

Gives the messages that may name a fault, and counts of lines. Forms are plug-ins.
"""
