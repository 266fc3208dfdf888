"""Takes a node and the probe's arguments. Reaches the node as its inventory says; each way is a plug-in.

Gives the probe's document, or a failed leaf within the deadline.
"""
