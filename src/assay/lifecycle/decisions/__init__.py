"""Takes a fleet snapshot; collects proposals (faults, state transitions, people, racks, cordons) for each node.

Holds them to requirements, limits and the circuit breaker. Gives decisions.
"""
