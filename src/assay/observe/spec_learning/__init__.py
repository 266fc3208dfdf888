"""Takes a good node's stored evidence. Derives a node spec and its limits, without I/O.

Gives YAML text with review comments.
"""
