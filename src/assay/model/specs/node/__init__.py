"""What a node of one kind must be.

Takes the parsed YAML of a node spec. Checks it against the model. Gives a typed, frozen NodeSpec, or conflicts.
"""
