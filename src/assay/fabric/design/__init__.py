"""Takes a FabricDesign and the fleet. Compiles every device and cable, and caches the result by content.

Gives a CompiledTopology, and what the loss of a device or cable costs in it.
"""
