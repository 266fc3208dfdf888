"""What runs on a node: the probe, the agent, burn-ins and loads. Python 3.10, standard library and NVML.

Takes a node: its files, tools and devices. Gives one document of readings, batches of messages, lines of results.
Starts at `probe.__main__.main`, `agent.__main__.NodeAgent.run`, `load.__main__.main`.
"""
