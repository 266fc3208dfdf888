"""Takes what NVIDIA UFM's REST interface lists of a fabric, or UFM's event log. Parses links, ports and events.

Gives a FabricDiscovery, as the readers of all tools do.
"""
