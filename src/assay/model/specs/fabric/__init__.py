"""Takes a fabric design as parsed YAML; knows the geometry of a fat tree.

Gives a typed FabricDesign, or conflicts.
"""
