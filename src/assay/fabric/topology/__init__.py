"""Takes a FabricDesign and the fleet. Compiles every designed device and cable, and caches that by content. Gives a CompiledTopology, and what the loss of a device or cable costs in it."""
