"""Reads the logs that people have: the kernel's in every form in which it is written down, and a BMC's event log."""
