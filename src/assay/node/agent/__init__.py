"""Takes a node's kernel log, its GPUs' events and, on request, the probe's readings. Buffers them on disk.

Gives batches to the controller, each item once and in order. Also holds Slurm's hooks.
"""
