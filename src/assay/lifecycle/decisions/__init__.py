"""Takes a fleet snapshot. Collects proposals (faults, state transitions, people, racks, cordons) and holds them to requirements, limits and the circuit breaker. Gives decisions."""
