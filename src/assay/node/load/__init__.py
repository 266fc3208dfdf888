"""Takes a lane: one device's inputs and arithmetic. Each test of the battery computes one thing on it.

Gives the arrays whose bits every healthy device of a kind must agree on.
"""
