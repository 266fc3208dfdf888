"""Takes an empty folder. Copies the example's parts that every fleet shares, and a few files of its own.

Gives a new fleet repository. Later, merges the parts of a newer version into it.
"""
