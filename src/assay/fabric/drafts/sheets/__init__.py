"""Takes a point-to-point sheet (CSV) or a topology file. Names ports as the sheet and the inventory do.

Gives the draft of a FabricDesign that lists the cables of the sheet.
"""
