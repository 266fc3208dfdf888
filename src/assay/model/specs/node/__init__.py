"""What a node of one kind must be, and which of its settings differ.

Takes the parsed YAML of a node spec, and readings. Gives a NodeSpec, or what is not as declared.
"""
