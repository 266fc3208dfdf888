"""Takes a fleet snapshot, and collects proposals for each node: faults, state transitions, people, racks, cordons.

Checks the proposals against requirements, limits and the circuit breaker. Gives decisions.
"""
