"""Takes the fleet, its images and what a booting machine asks.

Gives its node, its boot script, its first data and its one-time tokens. No document holds a secret.
"""
