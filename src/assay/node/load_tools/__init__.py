"""Takes a node and how long to load it. Runs one tool of the node, also in a container.

Gives readings of what the tool said.
"""
