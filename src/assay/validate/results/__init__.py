"""Takes two run files, and the runs before them. Pairs their outcomes by name and classifies each change.

Gives changes, groups of similar changes, flaky checks and measurements that shifted.
"""
