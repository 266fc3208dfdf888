"""Takes the snapshot of a fleet and its policy. Proposes moves of nodes, and holds them to the limits. Pure.

Gives decisions, and what holds proposals back.
"""
