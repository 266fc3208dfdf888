"""Takes the fleet, node states and the newest outcomes of the checks of drift. Compares each node with its specs.

Gives a sync report: nodes in sync, rolling out, drifted, held or unknown, and what differs on them.
"""
