"""Takes newest outcomes and what is declared. Compares each node with git. Pure.

Gives what is in sync, rolling out, drifted or unknown, and what differs.
"""
