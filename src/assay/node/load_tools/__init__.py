"""How the load tool `assay-load` is started on the node: as a program, or in a container by an image's digest.

Takes the declaration `load` of the inventory. Gives the command, or a reading that says what the node lacks for it.
"""
