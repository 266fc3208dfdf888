"""Takes the records of one node. Gives its state and why, its life, its measurements, and what differs from git."""
