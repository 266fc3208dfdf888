"""Takes the evidence of one scan. Reads counters and their growth, error rates, modules, partitions, switches.

Gives a FabricScan, for checks.
"""
