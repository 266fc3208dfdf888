"""Takes a FabricDesign's YAML. Knows ports, cables and the geometry of a fat tree, and refuses impossible designs. Gives the typed design."""
