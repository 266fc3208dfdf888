"""Takes a compiled topology and a discovery. Finds the fewest discrepancies that explain every port that differs.

Gives a FabricComparison, and tickets for technicians.
"""
