"""Takes a node: its files, its tools and NVML. Reads every area in processes of its own, on time whatever hangs.

Gives one JSON document of readings. Standard library and NVML only, Python 3.10: it runs on the node.
"""
