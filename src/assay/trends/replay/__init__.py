"""Takes a history of faults and a policy; runs the real decisions in a simulated fleet, in the history's time.

Gives the decisions, time out of service, actions, tickets and breaker trips.
"""
