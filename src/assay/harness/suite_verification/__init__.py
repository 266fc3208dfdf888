"""Holds every check to its recordings: it passes on the good one, and fails on what must make it fail."""
