"""Takes a node: its files, its tools and NVML. Reads every area in processes of its own, on time whatever hangs.

Gives one JSON document of readings.
"""
