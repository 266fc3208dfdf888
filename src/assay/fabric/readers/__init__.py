"""Takes the text that a fabric tool printed. Detects the format and parses it: one module a tool.

Gives a FabricDiscovery, whose `problems` name what could not be read.
"""
