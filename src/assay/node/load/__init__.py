"""Takes a node's devices (GPUs, or a CPU in their place). Computes the same on each: a battery, or training.

Gives JSON lines, one a unit, with a digest of each device. It compares nothing. The only code that computes with numpy
or JAX, which are imported late.
"""
