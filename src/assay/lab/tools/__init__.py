"""The burn-in tools of a virtual node: each prints what the real one prints, with the numbers of the node's state."""
