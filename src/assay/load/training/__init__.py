"""Takes lanes. Trains a small language model on them, forward, backward and update, spelled out in shared operations.

Gives each step's loss and the digest of the state, bit for bit the same on every healthy device of a kind.
"""
